"""A GradScaler beside bfloat16, and scalers that are off where bfloat16 is on."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def always_on(model, loader, criterion, optimizer, device):
    scaler = torch.amp.GradScaler("cuda")  # DDP208
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


class Trainer:
    """Scaler and region are attributes, made in one method and used in another."""

    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.dtype = torch.bfloat16
        self.region = torch.amp.autocast("cuda", dtype=self.dtype)
        self.scaler = torch.amp.GradScaler("cuda", enabled=True)  # DDP208

    def fit(self, loader, criterion):
        for images, labels in loader:
            images = images.to(self.device, non_blocking=True)
            labels = labels.to(self.device, non_blocking=True)
            self.optimizer.zero_grad()
            with self.region:
                loss = criterion(self.model(images), labels)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer)
            self.scaler.update()


def on_for_float16_only(model, loader, criterion, optimizer, device, args):
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[args.precision]
    scaler = torch.amp.GradScaler("cuda", enabled=(args.precision == "fp16"))
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=dtype):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def off(model, loader, criterion, optimizer, device):
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def whichever_the_device_has(model, loader, criterion, optimizer, device):
    """Not known here which of the two it will be."""
    dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    scaler = torch.amp.GradScaler("cuda", enabled=dtype == torch.float16)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=dtype):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def float16(model, loader, criterion, optimizer, device):
    """bfloat16 is for the evaluation alone."""
    scaler = torch.amp.GradScaler("cuda")
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = torch.zeros((), device=device)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            correct += (model(images).argmax(1) == labels).sum()
    model.train()
    return correct.item()


def without_scaler(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--precision", choices=["bf16", "fp16"], default="bf16")
    args = parser.parse_args()
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        always_on(model, loader, criterion, optimizer, device)
        Trainer(model, optimizer, device).fit(loader, criterion)
        on_for_float16_only(model, loader, criterion, optimizer, device, args)
        off(model, loader, criterion, optimizer, device)
        whichever_the_device_has(model, loader, criterion, optimizer, device)
        float16(model, loader, criterion, optimizer, device)
        without_scaler(model, loader, criterion, optimizer, device)
        evaluate(model, loader, device)


if __name__ == "__main__":
    main()
