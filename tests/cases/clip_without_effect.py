"""Clipping when there is nothing to clip yet, or nothing left to do with it."""

import argparse

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_, clip_grad_value_
from torch.utils.data import DataLoader, TensorDataset


def before_the_backward(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        clip_grad_norm_(model.parameters(), 1.0)  # DDP210
        loss.backward()
        optimizer.step()


def after_the_step(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        clip_grad_value_(model.parameters(), 0.5)  # DDP210


def after_the_scaled_step(model, loader, criterion, optimizer, device):
    scaler = torch.amp.GradScaler("cuda")
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        clip_grad_norm_(model.parameters(), 1.0)  # DDP210


def limit_gradients(model):
    clip_grad_norm_(model.parameters(), 1.0)  # DDP210


class Trainer:
    """The order is only seen across the methods."""

    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device

    def fit(self, loader, criterion):
        for images, labels in loader:
            self.step(images, labels, criterion)
            limit_gradients(self.model)

    def step(self, images, labels, criterion):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        self.optimizer.zero_grad()
        criterion(self.model(images), labels).backward()
        self.optimizer.step()


def between(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def after_the_other_step(generator, critic, loader, device):
    """After the critic's step, before the generator's, whose gradients it clips."""
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    for images, _ in loader:
        images = images.to(device, non_blocking=True)
        critic_optimizer.zero_grad()
        critic(generator(images).detach()).mean().backward()
        clip_grad_norm_(critic.parameters(), 1.0)
        critic_optimizer.step()
        generator_optimizer.zero_grad()
        (-critic(generator(images)).mean()).backward()
        clip_grad_norm_(generator.parameters(), 1.0)
        generator_optimizer.step()


def weights_are_clipped(critic, generator, loader, device):
    """Not gradients: the weights, and after the step is where that belongs."""
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=5e-5)
    for images, _ in loader:
        images = images.to(device, non_blocking=True)
        optimizer.zero_grad()
        critic(generator(images).detach()).mean().backward()
        optimizer.step()
        for parameter in critic.parameters():
            parameter.data.clamp_(-0.01, 0.01)


def between_two_backwards(model, loader, criterion, optimizer, device):
    """The first loss is limited, the second one is not: unusual, but not without effect."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        model.weight.square().sum().backward()
        optimizer.step()


def on_either_branch(model, loader, criterion, optimizer, device, args):
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda", enabled=args.amp):
            loss = criterion(model(images), labels)
        if args.amp:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
        else:
            loss.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()


def what_is_left_over(model, loader, criterion, optimizer, device, args):
    """The last, incomplete window is clipped and stepped after the loop."""
    step = 0
    for step, (images, labels) in enumerate(loader, start=1):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        (criterion(model(images), labels) / args.accumulate).backward()
        if step % args.accumulate == 0:
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
    if step % args.accumulate != 0:
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--accumulate", type=int, default=4)
    args = parser.parse_args()
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 32).to(device)
    critic = nn.Linear(32, 1).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        before_the_backward(model, loader, criterion, optimizer, device)
        after_the_step(model, loader, criterion, optimizer, device)
        after_the_scaled_step(model, loader, criterion, optimizer, device)
        Trainer(model, optimizer, device).fit(loader, criterion)
        between(model, loader, criterion, optimizer, device)
        after_the_other_step(model, critic, loader, device)
        weights_are_clipped(critic, model, loader, device)
        between_two_backwards(model, loader, criterion, optimizer, device)
        on_either_branch(model, loader, criterion, optimizer, device, args)
        what_is_left_over(model, loader, criterion, optimizer, device, args)


if __name__ == "__main__":
    main()
