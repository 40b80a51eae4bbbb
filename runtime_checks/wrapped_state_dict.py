"""The state of the wrapper has a `module.` before every name: the plain model cannot load it.

Counted: the tensors of the file that the plain model knows by name.  Compared: the parameters
before the save and after the load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from .context import device, scratch
from .harness import Check, Seen, needs
from .probes import digest
from .small import make_model, parameters_of

NEEDS = needs(shared_folder=True)
SETTINGS = {"tensors": 4}


def bad() -> Seen:
    path = scratch() / "model.pt"
    model = DistributedDataParallel(make_model().to(device()))
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)  # DDP403
    dist.barrier()

    plain = blank_model()
    state = torch.load(path, map_location="cpu")
    known = len(state.keys() & plain.state_dict().keys())
    raised = ""
    try:
        plain.load_state_dict(state)
    except RuntimeError as error:
        raised = str(error)
    same = digest(parameters_of(plain)) == digest(parameters_of(model).cpu())
    return {"known": known, "refused": "Missing key" in raised, "same": same}


def good() -> Seen:
    path = scratch() / "model.pt"
    model = DistributedDataParallel(make_model().to(device()))
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), path)
    dist.barrier()

    plain = blank_model()
    state = torch.load(path, map_location="cpu")
    known = len(state.keys() & plain.state_dict().keys())
    plain.load_state_dict(state)
    same = digest(parameters_of(plain)) == digest(parameters_of(model).cpu())
    return {"known": known, "refused": False, "same": same}


def blank_model() -> nn.Module:
    """The same modules with all parameters zero."""
    model = make_model()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return model


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    title = "tensors of the file that the model knows by name"
    yield Check(title, max(one["known"] for one in bad), "==", 0, of="bad")
    yield Check(title, min(one["known"] for one in good), "==", 4, of="good")
    title = "ranks whose load was refused"
    yield Check(title, sum(one["refused"] for one in bad), "==", len(bad), of="bad")
    yield Check(title, sum(one["refused"] for one in good), "==", 0, of="good")
    title = "ranks that loaded what was saved, bit by bit"
    yield Check(title, sum(one["same"] for one in bad), "==", 0, of="bad")
    yield Check(title, sum(one["same"] for one in good), "==", len(good), of="good")
