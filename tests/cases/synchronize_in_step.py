"""Waiting for the device, on every step and where it belongs."""

import argparse
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def timed(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        torch.cuda.synchronize()  # DDP103
        began = time.perf_counter()
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        torch.cuda.synchronize(device)  # DDP103
        print(f"{time.perf_counter() - began:.3f} s")


def timed_by_events(model, loader, criterion, optimizer, device):
    """Without the second one, ``elapsed_time()`` raises."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()  # DDP103
        begin.record()
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        end.record()
        torch.cuda.synchronize()  # DDP103
        print(begin.elapsed_time(end))


def wait():
    if torch.cuda.is_available():
        torch.cuda.synchronize()  # DDP103


def in_a_helper(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        wait()


def every_optimizer_step(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels) / args.accumulate
        loss.backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            torch.cuda.synchronize()  # DDP103


def only_on_a_gpu(model, loader, criterion, optimizer, device):
    """Whether there is a GPU is no gate: where there is one, every step waits."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        if device.type == "cuda":
            torch.cuda.synchronize()  # DDP103


def gated(model, loader, criterion, optimizer, device, args):
    began = time.perf_counter()
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        if step % args.log_every == 0:
            torch.cuda.synchronize()
            print(f"{time.perf_counter() - began:.3f} s")
        if step == 10:
            torch.cuda.synchronize()
            began = time.perf_counter()


def asked_for(model, loader, criterion, optimizer, device, args, synchronous=False):
    """A switch that the user sets to measure: off unless asked for."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        if args.profile:
            torch.cuda.synchronize()
        if synchronous:
            torch.cuda.synchronize()


def once_per_epoch(model, loader, criterion, optimizer, device):
    torch.cuda.synchronize()
    began = time.perf_counter()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
    torch.cuda.synchronize()
    print(f"{time.perf_counter() - began:.3f} s for the epoch")


def with_events(model, loader, criterion, optimizer, device, args):
    """Timing that the device does on its own; read every now and then."""
    start = torch.cuda.Event(enable_timing=True)
    end = torch.cuda.Event(enable_timing=True)
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        start.record()
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        end.record()
        if step % args.log_every == 0:
            end.synchronize()
            print(f"{start.elapsed_time(end):.1f} ms")


@torch.no_grad()
def benchmark(model, loader, device):
    """Not training: this loop exists to be timed."""
    model.eval()
    for images, _ in loader:
        began = time.perf_counter()
        model(images.to(device, non_blocking=True))
        torch.cuda.synchronize()
        print(f"{time.perf_counter() - began:.3f} s")
    model.train()


def benchmark_backward(model, criterion, device):
    """A backward is timed, but nothing is trained."""
    images = torch.randn(64, 32, device=device)
    labels = torch.randint(10, (64,), device=device)
    for _ in range(100):
        began = time.perf_counter()
        model.zero_grad()
        criterion(model(images), labels).backward()
        torch.cuda.synchronize()
        print(f"{time.perf_counter() - began:.3f} s")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log-every", type=int, default=100)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--profile", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        timed(model, loader, criterion, optimizer, device)
        timed_by_events(model, loader, criterion, optimizer, device)
        in_a_helper(model, loader, criterion, optimizer, device)
        every_optimizer_step(model, loader, criterion, optimizer, device, args)
        only_on_a_gpu(model, loader, criterion, optimizer, device)
        gated(model, loader, criterion, optimizer, device, args)
        asked_for(model, loader, criterion, optimizer, device, args)
        once_per_epoch(model, loader, criterion, optimizer, device)
        with_events(model, loader, criterion, optimizer, device, args)
    benchmark(model, loader, device)
    benchmark_backward(model, criterion, device)


if __name__ == "__main__":
    main()
