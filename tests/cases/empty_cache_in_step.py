"""Giving the cached memory back, on every step and where it belongs."""

import argparse
import gc

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def every_step(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        del images, labels, loss
        gc.collect()
        torch.cuda.empty_cache()  # DDP104


def every_optimizer_step(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels) / args.accumulate
        loss.backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()  # DDP104


def free_memory():
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()  # DDP104


def in_a_helper(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        free_memory()
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def out_of_memory(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        try:
            criterion(model(images), labels).backward()
        except torch.cuda.OutOfMemoryError:
            torch.cuda.empty_cache()
            continue
        optimizer.step()


def out_of_memory_by_message(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        try:
            criterion(model(images), labels).backward()
            optimizer.step()
        except RuntimeError as error:
            if "out of memory" not in str(error):
                raise
            torch.cuda.empty_cache()


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    torch.cuda.empty_cache()
    model.eval()
    total = torch.zeros((), device=device)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        total += criterion(model(images), labels)
        torch.cuda.empty_cache()
    model.train()
    return total.item() / len(loader)


def around_the_evaluation(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        if step % args.eval_every == 0:
            torch.cuda.empty_cache()
            print(evaluate(model, loader, criterion, device))
            torch.cuda.empty_cache()
        if step % 500 == 499:
            torch.cuda.empty_cache()


def asked_for(model, loader, criterion, optimizer, device, args):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        if args.empty_cache:
            torch.cuda.empty_cache()
        if torch.cuda.memory_reserved() > 0.9 * args.memory_limit:
            torch.cuda.empty_cache()


def once_per_epoch(model, loader, criterion, optimizer, device):
    torch.cuda.empty_cache()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
    torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--eval-every", type=int, default=1000)
    parser.add_argument("--memory-limit", type=int, default=2**33)
    parser.add_argument("--empty-cache", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        every_step(model, loader, criterion, optimizer, device)
        every_optimizer_step(model, loader, criterion, optimizer, device, args)
        in_a_helper(model, loader, criterion, optimizer, device)
        out_of_memory(model, loader, criterion, optimizer, device)
        out_of_memory_by_message(model, loader, criterion, optimizer, device)
        around_the_evaluation(model, loader, criterion, optimizer, device, args)
        asked_for(model, loader, criterion, optimizer, device, args)
        once_per_epoch(model, loader, criterion, optimizer, device)


if __name__ == "__main__":
    main()
