"""Checkpoints of a sharded model."""

from pathlib import Path

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.checkpoint.stateful import Stateful


class TrainState(Stateful):
    def __init__(self, model, optimizer, scheduler):
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler
        self.step = 0

    def state_dict(self):
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {
            "model": model,
            "optimizer": optimizer,
            "scheduler": self.scheduler.state_dict(),
            "step": self.step,
        }

    def load_state_dict(self, state):
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )
        self.scheduler.load_state_dict(state["scheduler"])
        self.step = state["step"]


class Checkpoints:
    def __init__(self, folder, every):
        self.folder = Path(folder)
        self.every = every

    def maybe_save(self, state):
        if state.step % self.every == 0:
            dcp.save({"train": state}, checkpoint_id=self.folder / f"step-{state.step}")

    def load_newest(self, state):
        found = sorted(self.folder.glob("step-*"), key=lambda path: int(path.name[5:]))
        if found:
            dcp.load({"train": state}, checkpoint_id=found[-1])
