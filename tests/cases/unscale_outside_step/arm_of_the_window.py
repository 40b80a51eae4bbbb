"""A window has an arm of its own, where its length is more than one."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, num_workers=4)


def train(model, optimizer, scaler, config):
    for index, (images, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        if config.train.window > 1:
            scaler.scale(loss / config.train.window).backward()
            if config.train.clip:
                scaler.unscale_(optimizer)  # DDP202
                nn.utils.clip_grad_norm_(model.parameters(), config.train.clip)
            if (index + 1) % config.train.window == 0:
                scaler.step(optimizer)
                optimizer.zero_grad()
                scaler.update()
        else:
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()


def clips_without_a_window(model, optimizer, scaler, config):
    for index, (images, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        scaler.scale(loss / config.train.window).backward()
        if config.train.window == 1:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if (index + 1) % config.train.window == 0:
            scaler.step(optimizer)
            optimizer.zero_grad()
            scaler.update()


def main(config):
    model = nn.Linear(32, 10).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    train(model, optimizer, scaler, config)
    clips_without_a_window(model, optimizer, scaler, config)
