"""What lies beside a tensor, in a dictionary, in ``**options`` or in a group of an optimizer."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")


def forward(model, batch, info):
    images, labels = batch
    logits = model(images.to(device))
    info["loss"] = nn.functional.cross_entropy(logits, labels.to(device))
    hits = (logits.argmax(1).cpu() == labels).sum()  # DDP101
    info["scores"] = {"hits": hits, "worst": logits.min()}
    return info


def epoch(model, optimizer, loader, settings):
    info = dict(settings)
    for index, batch in enumerate(loader):
        info["index"] = index
        info = forward(model, batch, info)
        (info["loss"] / info["window"]).backward()
        if info["loss"] > 10:  # DDP102
            continue
        if info["scores"]["worst"] < -100:  # DDP102
            continue
        if info.get("scores")["hits"] > 3:
            continue
        if (index + 1) % info["window"] == 0 or info["index"] + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
        if info.get("clip", 0) > 0:
            nn.utils.clip_grad_value_(model.parameters(), info["clip"])


class Trainer:
    def __init__(self, **options):
        self.settings = options["settings"]
        self.model = options["model"].to(self.settings.device)
        self.optimizer = options["optimizer"]
        self.weight = options["weight"]

    def fit(self, loader):
        for images, labels in loader:
            scores = self.model(images.to(self.settings.device))
            loss = nn.functional.cross_entropy(scores, labels.to(self.settings.device))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.settings.passes > 3:
                continue
            if self.weight > 0.5:  # DDP102
                continue


def rates(model, optimizer, loader):
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        top = 0.0
        for group in optimizer.param_groups:
            top = max(top, group["lr"])
            if group["weight_decay"] > 0 and optimizer.param_groups[0]["lr"] < top:
                top = 1.0
            for weight in group["params"]:
                if weight.abs().max() > 100:  # DDP102
                    top = 0.0


def main(settings):
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    epoch(model, optimizer, loader, {"window": 4, "clip": 1.0})
    rates(model, optimizer, loader)
    weight = torch.ones((), device=device)
    Trainer(settings=settings, model=model, optimizer=optimizer, weight=weight).fit(loader)
