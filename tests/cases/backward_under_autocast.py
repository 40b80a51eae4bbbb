"""The backward pass inside the autocast region, and outside of it."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def inside(model, loader, criterion, optimizer, device):
    scaler = torch.amp.GradScaler("cuda")
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
            scaler.scale(loss).backward()  # DDP207
            scaler.step(optimizer)
            scaler.update()


def inside_with_bfloat16(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast(device_type=device.type, dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
            loss.backward()  # DDP207
        optimizer.step()
        optimizer.zero_grad()


def several_contexts(model, loader, criterion, optimizer, device):
    context = torch.autocast("cuda", dtype=torch.bfloat16)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.profiler.record_function("step"), context:
            criterion(model(images), labels).backward()  # DDP207
        optimizer.step()


def accelerated(model, loader, criterion, optimizer):
    accelerator = Accelerator(mixed_precision="bf16")
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for images, labels in loader:
        with accelerator.autocast():
            loss = criterion(model(images), labels)
            accelerator.backward(loss)  # DDP207
        optimizer.step()
        optimizer.zero_grad()


def forward_and_backward(model, images, labels, criterion):
    criterion(model(images), labels).backward()  # DDP207


def in_a_helper(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            forward_and_backward(model, images, labels, criterion)
        optimizer.step()


def outside(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()


def switched_off(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", enabled=False):
            criterion(model(images), labels).backward()
        optimizer.step()


def switched_off_inside(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            output = model(images)
            with torch.autocast("cuda", enabled=False):
                criterion(output.float(), labels).backward()
        optimizer.step()


def another_context(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.profiler.record_function("step"):
            criterion(model(images), labels).backward()
        optimizer.step()


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        inside(model, loader, criterion, optimizer, device)
        inside_with_bfloat16(model, loader, criterion, optimizer, device)
        several_contexts(model, loader, criterion, optimizer, device)
        in_a_helper(model, loader, criterion, optimizer, device)
        outside(model, loader, criterion, optimizer, device)
        switched_off(model, loader, criterion, optimizer, device)
        switched_off_inside(model, loader, criterion, optimizer, device)
        another_context(model, loader, criterion, optimizer, device)
    accelerated(model, loader, criterion, optimizer)


if __name__ == "__main__":
    main()
