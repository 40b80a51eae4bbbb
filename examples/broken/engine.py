"""One epoch of training, and evaluation."""

from __future__ import annotations

import argparse
import time

import torch
import torch.distributed as dist
from distributed import is_main_process, reduce_mean
from meters import AverageMeter
from torch import nn


def train_one_epoch(
    model: nn.Module,
    loader,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    device: torch.device,
    epoch: int,
    args: argparse.Namespace,
) -> float:
    model.train()
    criterion = nn.CrossEntropyLoss()
    losses, accuracy, seconds = AverageMeter("loss"), AverageMeter("acc"), AverageMeter("s/step")
    began = time.perf_counter()
    for step, (images, labels) in enumerate(loader):  # DDP504
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.autocast(device.type, dtype=torch.float16, enabled=scaler.is_enabled()):
            logits = model(images)
            loss = criterion(logits, labels)
        if torch.isnan(loss):  # DDP102
            print(f"rank {dist.get_rank()}: NaN loss in step {step}, leaving this batch out")
            continue  # DDP502

        scaler.scale(loss / args.accumulate).backward()
        scaler.unscale_(optimizer)  # DDP202
        nn.utils.clip_grad_norm_(model.parameters(), args.clip)
        if (step + 1) % args.accumulate == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

        losses.update(loss, len(labels))
        correct = (logits.argmax(dim=1) == labels).float().mean().item()  # DDP101
        accuracy.update(correct, len(labels))
        dist.barrier()  # DDP103
        seconds.update(time.perf_counter() - began)
        began = time.perf_counter()
        if is_main_process() and step % args.log_every == 0:
            print(f"epoch {epoch} step {step}/{len(loader)}  {losses}  {accuracy}  {seconds}")
    return reduce_mean(losses.average, device)


@torch.no_grad()
def evaluate(model: nn.Module, loader, device: torch.device) -> float:
    """Accuracy over the validation set."""
    model.eval()
    correct = torch.zeros((), device=device)
    total = torch.zeros((), device=device)
    for images, labels in loader:
        logits = model(images.to(device, non_blocking=True))
        correct += (logits.argmax(dim=1) == labels.to(device, non_blocking=True)).sum()
        total += len(labels)
    dist.all_reduce(correct)
    dist.all_reduce(total)
    return (correct / total).item()


@torch.no_grad()
def predict(model: nn.Module, loader, device: torch.device) -> list[int]:
    """The classes that the model sees in this process's share of the images."""
    model.eval()
    classes = []
    for images, _ in loader:
        classes.append(model(images.to(device, non_blocking=True)).argmax(dim=1))
    return torch.cat(classes).tolist()
