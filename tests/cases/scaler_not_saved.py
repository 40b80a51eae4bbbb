"""Checkpoints to resume from, with and without the scaler's state."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, loader, criterion, optimizer, scaler, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def forgets_it(model, loader, criterion, optimizer, device):
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(3):
        train_epoch(model, loader, criterion, optimizer, scaler, device)
        state = {
            "epoch": epoch,
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
        }
        torch.save(state, "last.pt")  # DDP212


class Trainer:
    """Forgets it in a method of its own."""

    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.scaler = torch.amp.GradScaler("cuda")

    def fit(self, loader, criterion):
        for epoch in range(3):
            train_epoch(self.model, loader, criterion, self.optimizer, self.scaler, self.device)
            self.save(epoch)
            self.export()

    def save(self, epoch):
        state = dict(epoch=epoch, model=self.model.state_dict())
        state["optimizer"] = self.optimizer.state_dict()
        torch.save(state, f"epoch{epoch}.pt")  # DDP212

    def export(self):
        torch.save(self.model.state_dict(), "weights.pt")
        torch.save({"model": self.model.state_dict(), "classes": 10}, "export.pt")


def keeps_it(model, loader, criterion, optimizer, device):
    scaler = torch.amp.GradScaler("cuda")
    for epoch in range(3):
        train_epoch(model, loader, criterion, optimizer, scaler, device)
        torch.save(
            {
                "epoch": epoch,
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "scaler": scaler.state_dict(),
            },
            "last.pt",
        )


def keeps_it_where_it_is_on(model, loader, criterion, optimizer, device, args):
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
    for epoch in range(3):
        train_epoch(model, loader, criterion, optimizer, scaler, device)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        if args.amp:
            state["scaler"] = scaler.state_dict()
        torch.save(state, f"epoch{epoch}.pt")


class LossScaler:
    def __init__(self):
        self._scaler = torch.amp.GradScaler("cuda")

    def __call__(self, loss, optimizer):
        self._scaler.scale(loss).backward()
        self._scaler.step(optimizer)
        self._scaler.update()

    def state_dict(self):
        return self._scaler.state_dict()


def keeps_it_through_a_wrapper(model, loader, criterion, optimizer, device):
    loss_scaler = LossScaler()
    for epoch in range(3):
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            with torch.amp.autocast("cuda"):
                loss = criterion(model(images), labels)
            loss_scaler(loss, optimizer)
        torch.save(
            {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "loss_scaler": loss_scaler.state_dict(),
            },
            f"epoch{epoch}.pt",
        )


def save_everything(path, **parts):
    torch.save({name: part.state_dict() for name, part in parts.items()}, path)


def keeps_it_in_a_helper(model, loader, criterion, optimizer, device):
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        train_epoch(model, loader, criterion, optimizer, scaler, device)
        save_everything("last.pt", model=model, optimizer=optimizer, scaler=scaler)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    forgets_it(model, loader, criterion, optimizer, device)
    Trainer(model, optimizer, device).fit(loader, criterion)
    keeps_it(model, loader, criterion, optimizer, device)
    keeps_it_where_it_is_on(model, loader, criterion, optimizer, device, args)
    keeps_it_through_a_wrapper(model, loader, criterion, optimizer, device)
    keeps_it_in_a_helper(model, loader, criterion, optimizer, device)


if __name__ == "__main__":
    main()
