"""What is written to disk, and read back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from distributed import is_main_process
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.nn.parallel import DistributedDataParallel


def unwrap(model: nn.Module) -> nn.Module:
    """The model itself: what others load has no ``module.`` in its names."""
    return model.module if isinstance(model, DistributedDataParallel) else model


def save_atomically(state: dict[str, Any], path: Path) -> None:
    """Write beside the file and rename: readers find the old file or the new one, whole."""
    unfinished = path.with_name(path.name + ".unfinished")
    with open(unfinished, "wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def save_checkpoint(path: Path, model, optimizer, scheduler, scaler, epoch: int) -> None:
    """Everything that is needed to go on training, written by one process of all."""
    if not is_main_process():
        return
    state = {
        "model": unwrap(model).state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict(),
        "epoch": epoch,
    }
    save_atomically(state, path)


def save_weights(path: Path, model: nn.Module) -> None:
    """Only the weights, for those who use the model; written by one process of all."""
    if is_main_process():
        save_atomically(unwrap(model).state_dict(), path)


def save_sharded(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """A checkpoint of an FSDP model: a folder with the shards.  All processes must call it."""
    weights, moments = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=path)


def load_checkpoint(path: Path, model, optimizer, scheduler, scaler) -> int:
    """Read what ``save_checkpoint`` wrote and return the next epoch."""
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    scaler.load_state_dict(state["scaler"])
    return state["epoch"] + 1
