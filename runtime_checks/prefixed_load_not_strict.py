"""`strict=False` turns the error of a `module.` checkpoint into silence: nothing is loaded.

Counted: the tensors of the model that became those of the file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present
from torch.nn.parallel import DistributedDataParallel

from .context import device, scratch
from .harness import Check, Seen, needs
from .small import make_model

NEEDS = needs(shared_folder=True)
SETTINGS = {"tensors": 4}


def bad() -> Seen:
    path = scratch() / "model.pt"
    model = DistributedDataParallel(trained_model().to(device()))
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)  # DDP403
    dist.barrier()

    plain = make_model()
    state = torch.load(path, map_location="cpu")
    plain.load_state_dict(state, strict=False)  # DDP408
    return {"loaded": loaded(plain, model.module)}


def good() -> Seen:
    path = scratch() / "model.pt"
    model = DistributedDataParallel(trained_model().to(device()))
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)
    dist.barrier()

    plain = make_model()
    state = torch.load(path, map_location="cpu")
    consume_prefix_in_state_dict_if_present(state, "module.")
    plain.load_state_dict(state)
    return {"loaded": loaded(plain, model.module)}


def trained_model() -> nn.Module:
    """Every tensor differs from those of a fresh model."""
    model = make_model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(1)
    return model


def loaded(model: nn.Module, saved: nn.Module) -> int:
    """How many tensors of ``model`` are those of ``saved``."""
    pairs = zip(model.parameters(), saved.parameters(), strict=True)
    return sum(torch.equal(mine, theirs.cpu()) for mine, theirs in pairs)


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "tensors loaded"
    yield Check(title, max(one["loaded"] for one in bad), "==", 0, of="bad")
    yield Check(title, min(one["loaded"] for one in good), "==", 4, of="good")
