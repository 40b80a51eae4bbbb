"""Train an image classifier on any number of GPUs, or on CPUs: the loop with everything right.

    torchrun --nproc-per-node 2 reference.py --data pictures --out runs/first

``pictures`` holds ``train/<class>/*.jpg`` and ``val/<class>/*.jpg``.  ``--out`` is a folder that
all nodes share; started again with the same one, the run goes on where it was, bit for bit (on
a GPU if ``torch.use_deterministic_algorithms`` was asked for too).
Copy it, put your model and your data in, and keep the order of the lines in ``train``.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image, ImageOps
from torch import nn
from torch.distributed.elastic.multiprocessing.errors import record
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, Dataset, DistributedSampler, Subset

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


@dataclass(frozen=True)
class Config:
    data: str = "pictures"
    out: str = "runs/first"
    image_size: int = 32
    epochs: int = 3
    max_steps: int = 0  # leave earlier, as a job with a time limit does; 0: no limit
    batch_size: int = 16  # per rank and micro-batch
    accumulate: int = 2  # micro-batches per optimizer step
    lr: float = 3e-3
    warmup_steps: int = 10
    clip: float = 1.0
    precision: str = "bf16"
    workers: int = 2
    log_every: int = 10  # optimizer steps
    save_every: int = 50
    seed: int = 0


# ---------------------------------------------------------------------------------------------
# Data: decoded once, not once per epoch.  Workers then only copy bytes.


def build_cache(pictures: Path, cache: Path, size: int) -> None:
    """Decode a folder of classes into one array that is mapped into memory.

    The cache appears under its name when it is complete, not before.
    """
    paths = sorted(pictures.glob("*/*.jpg"))
    names = sorted({path.parent.name for path in paths})
    growing = cache.with_name(f"{cache.name}.{os.getpid()}")
    growing.mkdir(parents=True)
    shape = (len(paths), size, size, 3)
    images = np.lib.format.open_memmap(growing / "images.npy", "w+", np.uint8, shape)
    for index, path in enumerate(paths):
        with Image.open(path) as image:
            image.draft("RGB", (size, size))  # JPEG decodes at a fraction of its size for less
            images[index] = np.asarray(ImageOps.fit(image.convert("RGB"), (size, size)))
    images.flush()
    labels = np.array([names.index(path.parent.name) for path in paths], np.int64)
    np.save(growing / "labels.npy", labels)
    os.replace(growing, cache)


class Pictures(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Pairs of an image [size, size, 3] in uint8 and its class."""

    def __init__(self, cache: Path) -> None:
        self.cache = cache
        labels = np.load(cache / "labels.npy")
        self.classes = int(labels.max()) + 1
        self.labels = torch.from_numpy(labels)
        self.images: Any = None

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if self.images is None:  # opened late, so that every worker has a mapping of its own
            self.images = np.load(self.cache / "images.npy", mmap_mode="r")
        return torch.from_numpy(self.images[index].copy()), self.labels[index]


class ResumableSampler(DistributedSampler[int]):
    """Deals this rank's share of an epoch from any place on, for a run that goes on."""

    skip = 0  # samples of the next epoch that were seen before the run was interrupted

    def __iter__(self) -> Iterator[int]:
        return itertools.islice(super().__iter__(), self.skip, None)

    def __len__(self) -> int:
        return super().__len__() - self.skip


def over_tensors(function: Callable[[torch.Tensor], Any], batch: Any) -> Any:
    """The same nesting of dicts, lists and tuples, with ``function`` applied to the tensors."""
    if isinstance(batch, torch.Tensor):
        return function(batch)
    if isinstance(batch, Mapping):
        return {key: over_tensors(function, value) for key, value in batch.items()}
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*(over_tensors(function, value) for value in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)(over_tensors(function, value) for value in batch)
    return batch


class Prefetcher:
    """A loader whose next batch is on its way to the GPU while this one is being used.

    Its batches must be pinned, or the copy waits.  On a CPU it hands through what it gets.
    """

    def __init__(self, loader: DataLoader[Any], device: torch.device) -> None:
        self.loader = loader
        self.device = device
        # One stream for all epochs: memory freed on one stream is not reused on another.
        self.stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        if self.stream is None:
            yield from self.loader
            return
        batches = iter(self.loader)
        ahead = self._start_copy(next(batches, None))
        while ahead is not None:
            batch = self._finish_copy(ahead)
            ahead = self._start_copy(next(batches, None))
            yield batch

    def _start_copy(self, batch: Any) -> Any:
        with torch.cuda.stream(self.stream):
            return over_tensors(lambda each: each.to(self.device, non_blocking=True), batch)

    def _finish_copy(self, batch: Any) -> Any:
        assert self.stream is not None
        current = torch.cuda.current_stream(self.device)
        current.wait_stream(self.stream)  # nothing is computed from a half-copied batch
        over_tensors(lambda each: each.record_stream(current), batch)  # nor is it overwritten
        return batch


def augment(images: torch.Tensor, seed: int) -> torch.Tensor:
    """Flip half of a uint8 batch, on the device.

    It depends on ``seed`` alone, so that a resumed run flips the same images.
    """
    draw = torch.Generator(images.device).manual_seed(seed)
    flip = torch.rand(len(images), 1, 1, 1, device=images.device, generator=draw) < 0.5
    return torch.where(flip, images.flip(2), images)


# ---------------------------------------------------------------------------------------------
# Model.


class Classifier(nn.Module):
    """A small convolutional network for uint8 images [batch, size, size, 3]."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 16, 3, stride=2, padding=1),
            nn.GroupNorm(4, 16),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.GroupNorm(4, 32),
            nn.ReLU(),
        )
        self.head = nn.Linear(32, classes)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.layers(images.permute(0, 3, 1, 2).float() / 127.5 - 1)
        logits: torch.Tensor = self.head(features.mean((2, 3)))
        return logits


def learning_rate(config: Config, step: int, last: int) -> float:
    """Linear warm-up, then half a cosine down to a tenth."""
    if step < config.warmup_steps:
        return config.lr * (step + 1) / config.warmup_steps
    done = (step - config.warmup_steps) / max(1, last - config.warmup_steps)
    return config.lr * (0.55 + 0.45 * math.cos(math.pi * min(1.0, done)))


# ---------------------------------------------------------------------------------------------
# Checkpoints: one rank writes, whoever reads sees all of one or all of the other.


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Write a checkpoint so that a crash at any moment leaves a complete one."""
    temporary = path.with_suffix(".tmp")
    with open(temporary, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


# ---------------------------------------------------------------------------------------------
# Training.


def setup() -> torch.device:
    """Join the process group that torchrun's variables describe; the device of this rank."""
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", init_method="env://", device_id=device)
        return device
    dist.init_process_group("gloo", init_method="env://")
    return torch.device("cpu")


def train(config: Config, device: torch.device) -> nn.Module:
    """Train, or go on with the training in ``config.out``.  Returns the unwrapped model."""
    rank, world_size = dist.get_rank(), dist.get_world_size()
    out = Path(config.out)
    if rank == 0:
        for part in ("train", "val"):
            if not (out / part).exists():
                build_cache(Path(config.data, part), out / part, config.image_size)
    dist.barrier()
    train_data, val_data = Pictures(out / "train"), Pictures(out / "val")

    sampler = ResumableSampler(train_data, shuffle=True, seed=config.seed, drop_last=True)
    loader = DataLoader(
        train_data,
        config.batch_size,
        sampler=sampler,
        drop_last=True,
        num_workers=config.workers,
        pin_memory=device.type == "cuda",
        persistent_workers=config.workers > 0,
    )
    batches = Prefetcher(loader, device)
    per_epoch = len(loader)
    steps_per_epoch = math.ceil(per_epoch / config.accumulate)

    torch.manual_seed(config.seed)
    plain_model = Classifier(train_data.classes).to(device)
    model = DistributedDataParallel(plain_model, [device] if device.type == "cuda" else None)
    settle_buckets(model, train_data[0][0][None].to(device))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.lr)
    dtype = PRECISIONS[config.precision]
    autocast = torch.autocast(device.type, dtype, enabled=dtype != torch.float32)
    scaler = torch.amp.GradScaler(device.type, enabled=dtype == torch.float16)

    checkpoint = out / "checkpoint.pt"
    step, first_epoch, seen = 0, 0, 0
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=device)
        plain_model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scaler.load_state_dict(state["scaler"])
        step, first_epoch, seen = state["step"], state["epoch"], state["seen"]

    loss_sum = torch.zeros((), device=device)
    summed = 0
    for epoch in range(first_epoch, config.epochs):
        sampler.set_epoch(epoch)
        sampler.skip = seen * config.batch_size
        for index, (images, labels) in enumerate(batches, start=seen):
            last_of_window = (index + 1) % config.accumulate == 0 or index + 1 == per_epoch
            window_start = index - index % config.accumulate
            window = min(config.accumulate, per_epoch - window_start)
            images = augment(images, (epoch * per_epoch + index) * world_size + rank)
            with nullcontext() if last_of_window else model.no_sync():
                with autocast:
                    loss = cross_entropy(model(images), labels) / window
                scaler.scale(loss).backward()
            loss_sum += loss.detach()
            if not last_of_window:
                continue

            for group in optimizer.param_groups:
                group["lr"] = learning_rate(config, step, config.epochs * steps_per_epoch)
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), config.clip)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            summed += 1

            if step % config.log_every == 0:
                dist.all_reduce(loss_sum)
                if rank == 0:
                    mean = loss_sum.item() / (summed * world_size)
                    print(f"epoch {epoch} step {step}: loss {mean:.4f}", flush=True)
                loss_sum.zero_()
                summed = 0
            leave = step == config.max_steps
            if rank == 0 and (step % config.save_every == 0 or leave):
                progress = {"step": step, "epoch": epoch, "seen": index + 1}
                save_checkpoint(checkpoint, snapshot(plain_model, optimizer, scaler, progress))
            if leave:
                return plain_model
        seen = 0
        correct, total = evaluate(plain_model, val_data, device, config)
        if rank == 0:
            print(f"epoch {epoch}: {correct} of {total} right", flush=True)
            progress = {"step": step, "epoch": epoch + 1, "seen": 0}
            save_checkpoint(checkpoint, snapshot(plain_model, optimizer, scaler, progress))
    return plain_model


def settle_buckets(model: DistributedDataParallel, images: torch.Tensor) -> None:
    """Make DDP lay out its buckets for good, which it does after the first backward.

    From three ranks on the order of a sum depends on the layout.  A run that goes on would start
    with the first one again, and differ in the last bits from a run that did not stop.
    """
    model(images).sum().backward()
    model.zero_grad(set_to_none=True)


def snapshot(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    progress: dict[str, int],
) -> dict[str, Any]:
    """What a run needs to go on; ``model`` is the unwrapped one, so that anyone can load it."""
    states: dict[str, Any] = {"model": model, "optimizer": optimizer, "scaler": scaler}
    return {name: part.state_dict() for name, part in states.items()} | progress


@torch.inference_mode()
def evaluate(
    model: nn.Module, dataset: Pictures, device: torch.device, config: Config
) -> tuple[int, int]:
    """How many of all images are classified right, and how many there are: exact.

    Ranks take every n-th image, so shards may differ by one and nothing is counted twice; what
    is added up are integers.  ``model`` is the unwrapped one: with shards of different sizes
    ranks must not meet before the end.
    """
    shard = Subset(dataset, range(dist.get_rank(), len(dataset), dist.get_world_size()))
    loader = DataLoader(
        shard, config.batch_size, num_workers=config.workers, pin_memory=device.type == "cuda"
    )
    counts = torch.zeros(2, dtype=torch.int64, device=device)
    model.eval()
    # No prefetcher here: one made for each evaluation would leave a stream's memory behind.
    for images, labels in loader:
        labels = labels.to(device, non_blocking=True)
        counts[0] += (model(images.to(device, non_blocking=True)).argmax(1) == labels).sum()
        counts[1] += len(labels)
    model.train()
    dist.all_reduce(counts)
    correct, total = counts.tolist()
    return correct, total


@record
def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for each in fields(Config):
        option = f"--{each.name.replace('_', '-')}"
        choices = tuple(PRECISIONS) if each.name == "precision" else None
        parser.add_argument(option, type=type(each.default), default=each.default, choices=choices)
    config = Config(**vars(parser.parse_args()))
    device = setup()
    train(config, device)
    # Reached by every rank or by none: a rank that failed must not wait here for the others,
    # it ends with its traceback, and torchrun ends the rest.
    gc.collect()  # models first, or the group's threads may outlive it
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
