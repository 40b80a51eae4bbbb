"""The names of mixed precision that PyTorch has moved."""

import torch
from torch import amp, nn
from torch.amp import autocast as region
from torch.cuda.amp import GradScaler, autocast  # DDP211
from torch.utils.data import DataLoader, TensorDataset


def imported_names(model, loader, criterion, optimizer, device):
    scaler = GradScaler()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with autocast():
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def full_names(model, loader, criterion, optimizer, device):
    scaler = torch.cuda.amp.GradScaler(enabled=True)  # DDP211
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.cuda.amp.autocast(dtype=torch.float16):  # DDP211
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


@torch.cuda.amp.autocast(False)  # DDP211
def in_full_precision(values):
    return values.float().sum()


def on_the_cpu(model, images):
    with torch.cpu.amp.autocast():  # DDP211
        return model(images)


class Square(torch.autograd.Function):
    @staticmethod
    @torch.cuda.amp.custom_fwd  # DDP211
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value * value

    @staticmethod
    @torch.cuda.amp.custom_bwd  # DDP211
    def backward(ctx, gradient):
        (value,) = ctx.saved_tensors
        return 2 * value * gradient


class Cube(torch.autograd.Function):
    @staticmethod
    @torch.amp.custom_fwd(device_type="cuda")
    def forward(ctx, value):
        ctx.save_for_backward(value)
        return value**3

    @staticmethod
    @torch.amp.custom_bwd(device_type="cuda")
    def backward(ctx, gradient):
        (value,) = ctx.saved_tensors
        return 3 * value**2 * gradient


def new_names(model, loader, criterion, optimizer, device):
    scaler = amp.GradScaler("cuda")
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with region("cuda"), torch.autocast("cuda"), torch.amp.autocast(device_type="cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        imported_names(model, loader, criterion, optimizer, device)
        full_names(model, loader, criterion, optimizer, device)
        new_names(model, loader, criterion, optimizer, device)
    print(in_full_precision(model.weight))
    print(on_the_cpu(model.cpu(), torch.zeros(1, 32)))
    print(Square.apply(torch.ones(())), Cube.apply(torch.ones(())))


if __name__ == "__main__":
    main()
