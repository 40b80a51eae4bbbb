"""What is written to disk, and read back."""

from __future__ import annotations

import os
from pathlib import Path

import torch
import torch.distributed.checkpoint as dcp
from distributed import is_main_process
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict


def save_checkpoint(path: Path, model, optimizer, scheduler, scaler, epoch: int) -> None:
    """Everything that is needed to go on training."""
    state = {
        "model": model.state_dict(),  # DDP403
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "scaler": scaler.state_dict(),
        "epoch": epoch,
    }
    torch.save(state, path)  # DDP401


def save_best(path: Path, model) -> None:
    """Only the weights, for those who use the model."""
    if int(os.environ["LOCAL_RANK"]) == 0:
        torch.save(model.module.state_dict(), path)  # DDP402


def save_sharded(path: Path, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """A checkpoint of an FSDP model: a folder with the shards."""
    weights, moments = get_state_dict(model, optimizer)
    if is_main_process():
        dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=path)  # DDP407


def load_checkpoint(path: Path, model, optimizer, scheduler, scaler) -> int:
    """Read what ``save_checkpoint`` wrote and return the next epoch."""
    state = torch.load(path, map_location="cpu")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    scheduler.load_state_dict(state["scheduler"])
    scaler.load_state_dict(state["scaler"])
    return state["epoch"] + 1
