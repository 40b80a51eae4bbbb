"""One epoch of training, and evaluation."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.distributed as dist
from data import to_input
from distributed import is_main_process
from meters import AverageMeter
from torch import nn
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel


@contextmanager
def gradient_sync(model: nn.Module, wanted: bool) -> Iterator[None]:
    """Reduce gradients over the processes only where ``wanted``.

    Forward and backward both belong inside: DDP decides in the forward.
    """
    if isinstance(model, FSDPModule):
        model.set_requires_gradient_sync(wanted)
        yield
    elif isinstance(model, DistributedDataParallel) and not wanted:
        with model.no_sync():
            yield
    else:
        yield


def train_one_epoch(
    model: nn.Module,
    loader,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    device: torch.device,
    epoch: int,
    args: argparse.Namespace,
) -> float:
    """Train on all batches of the loader and return the mean loss over all processes.

    Raises ``FloatingPointError`` in every process when the loss is not finite in one.
    """
    model.train()
    criterion = nn.CrossEntropyLoss()
    losses, accuracy = AverageMeter(device), AverageMeter(device)
    began = time.perf_counter()
    for step, (images, labels) in enumerate(loader):
        images = to_input(images, device, train=True)
        labels = labels.to(device, non_blocking=True)
        window = step // args.accumulate * args.accumulate
        micro_batches = min(args.accumulate, len(loader) - window)
        last = step + 1 == window + micro_batches

        with gradient_sync(model, wanted=last):
            with torch.autocast(device.type, dtype=torch.float16, enabled=scaler.is_enabled()):
                logits = model(images)
                loss = criterion(logits, labels)
            scaler.scale(loss / micro_batches).backward()
        if last:
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()

        losses.update(loss, len(labels))
        accuracy.update((logits.argmax(dim=1) == labels).float().mean(), len(labels))
        if (step + 1) % args.log_every == 0:
            mean_loss, mean_accuracy = losses.compute(), accuracy.compute()
            pace = (time.perf_counter() - began) / (step + 1)
            if is_main_process():
                print(
                    f"epoch {epoch} step {step + 1}/{len(loader)}  loss {mean_loss:.4f}"
                    f"  acc {mean_accuracy:.4f}  {pace:.4f} s/step"
                )
    loss = losses.compute()
    if not math.isfinite(loss):
        raise FloatingPointError(f"the loss of epoch {epoch} is {loss}")
    return loss


@torch.no_grad()
def evaluate(model: nn.Module, loader, device: torch.device) -> float:
    """Accuracy over the validation set, each image counted once."""
    model.eval()
    counts = torch.zeros(2, dtype=torch.long, device=device)
    for images, labels in loader:
        logits = model(to_input(images, device))
        labels = labels.to(device, non_blocking=True)
        counts[0] += (logits.argmax(dim=1) == labels).sum()
        counts[1] += len(labels)
    dist.all_reduce(counts)
    correct, total = counts.tolist()
    return correct / total


@torch.no_grad()
def predict(model: nn.Module, loader, device: torch.device) -> dict[int, int]:
    """The classes that the model sees in this process's share, by the index of the image."""
    model.eval()
    classes = []
    for images, _ in loader:
        classes.append(model(to_input(images, device)).argmax(dim=1))
    return dict(zip(loader.batch_sampler.indices, torch.cat(classes).tolist(), strict=True))
