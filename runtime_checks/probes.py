"""Observers: they count what code does instead of trusting what it says.

    with host_reads() as reads:           # reads.count, reads.places: {"file.py:12 .item()": 3}
    with collectives() as traffic:        # traffic.count, .bytes: all-reduces, DDP's own too
    with collectives(model) as traffic:   # only the gradient reductions of this DDP model
    with saved_tensor_bytes() as saved:   # saved.bytes: what graphs keep for a backward now
    graph_nodes(loss)                     # autograd nodes that hang on a tensor
    with writers() as writes:             # writes.by_path: {"model.pt": 2}, torch.save calls
    digest(tensor or list)                # a hex string
    digests(module)                       # {"weight": "1f..."} in the module's own order

Each one can miss: what it does not see is in its docstring, and tests/runtime holds for each one
a thing that it must not count.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode

from ddp_lint.nosync import HostRead, host_sync_allowed, watch_host_reads


@dataclass(frozen=True)
class HostReads:
    """Reads of tensors by the host so far, by the innermost line that is not torch's own."""

    found: Counter[HostRead]

    @property
    def count(self) -> int:
        return sum(self.found.values())

    @property
    def places(self) -> dict[str, int]:
        """``{"train.py:12 .item()": 3}``, in the order in which they came about."""
        return {
            f"{os.path.basename(read.path)}:{read.line} {read.what}": times
            for read, times in self.found.items()
        }


@contextmanager
def host_reads(*, grad_scaler: bool = True) -> Iterator[HostReads]:
    """Count where the host takes a value from the device.  GradScaler's own question counts.

    On a GPU only tensors there count.  On a CPU every tensor stands for one there, except those
    that torch's loaders and optimizers keep on the host in any case.  Reads in other threads
    are not seen.
    """
    with watch_host_reads(grad_scaler=grad_scaler) as found:
        yield HostReads(found)


@dataclass
class Traffic:
    """All-reduces of this process and their bytes; ``other`` collectives by their names."""

    count: int = 0
    bytes: int = 0
    other: Counter[str] = field(default_factory=Counter)


@contextmanager
def collectives(model: nn.Module | None = None) -> Iterator[Traffic]:
    """Count collectives, or with a DDP ``model`` the gradient reductions of that model alone.

    A model can be watched once.  DDP lays its buckets anew after the first backward, so where a
    model has several, their number in the first step is not that of later ones; bytes are.
    """
    traffic = Traffic()
    if model is None:
        with _Collectives(traffic):
            yield traffic
        return
    if not isinstance(model, DistributedDataParallel):
        raise TypeError(f"only DDP reduces gradients, not {type(model).__name__}")
    watching = True

    # DDP refuses annotations that are strings, as all of this file's are.
    def hook(state, bucket):  # type: ignore[no-untyped-def]
        if watching:
            traffic.count += 1
            traffic.bytes += bucket.buffer().nbytes
        return allreduce_hook(model.process_group, bucket)

    model.register_comm_hook(None, hook)
    yield traffic
    watching = False


class _Collectives(TorchDispatchMode):
    """Sees collectives as torch dispatches them, those of DDP's reducer included."""

    def __init__(self, traffic: Traffic) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._traffic = traffic

    def __torch_dispatch__(
        self,
        func: Any,
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        if func.namespace == "c10d":
            name = func.overloadpacket.__name__.strip("_")
            if name == "allreduce":
                self._traffic.count += 1
                self._traffic.bytes += sum(tensor.nbytes for tensor in args[0])
            else:
                self._traffic.other[name] += 1
        return func(*args, **(kwargs or {}))


@dataclass
class Saved:
    """Bytes that autograd graphs made in the region hold for a backward at this moment.

    A tensor that two operations save counts twice, and parameters count.
    """

    bytes: int = 0


@contextmanager
def saved_tensor_bytes() -> Iterator[Saved]:
    """Follow what graphs save: counted when an operation saves it, until the graph lets go."""
    saved = Saved()

    class Packed:
        def __init__(self, tensor: torch.Tensor) -> None:
            # Detached, or the graph would hold itself alive and the probe make the leak.
            self.tensor = tensor.detach()
            saved.bytes += tensor.nbytes

        def __del__(self) -> None:
            saved.bytes -= self.tensor.nbytes

    with torch.autograd.graph.saved_tensors_hooks(Packed, lambda packed: packed.tensor):
        yield saved


def graph_nodes(tensor: torch.Tensor) -> int:
    """How many autograd nodes hang on a tensor: 0 where it is detached."""
    seen: set[Any] = set()
    waiting = [tensor.grad_fn] if tensor.grad_fn is not None else []
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [following for following, _ in node.next_functions if following]
    return len(seen)


@dataclass
class Writes:
    """How often this process called ``torch.save``, by the name of the file."""

    by_path: Counter[str] = field(default_factory=Counter)


@contextmanager
def writers() -> Iterator[Writes]:
    """Count this process's ``torch.save`` calls; what is written in other ways is not seen."""
    writes = Writes()
    original = torch.save

    def save(obj: object, f: Any, *args: Any, **kwargs: Any) -> None:
        name = f if isinstance(f, (str, os.PathLike)) else getattr(f, "name", "")
        writes.by_path[Path(name).name] += 1
        original(obj, f, *args, **kwargs)

    watched: Callable[..., None] = save
    torch.save = watched
    try:
        yield writes
    finally:
        torch.save = original


def digest(value: object) -> str:
    """A short name for a tensor's exact content, or for that of a nested list of numbers."""
    if isinstance(value, torch.Tensor):
        told = f"{value.dtype} {list(value.shape)}".encode()
        with host_sync_allowed():  # a probe of its own, not a read of the code under watch
            # Through uint8: bfloat16 has no NumPy type, what has no dimension no other view.
            flat = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
            return hashlib.sha256(told + flat.numpy().tobytes()).hexdigest()[:16]
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]


def digests(module: nn.Module) -> dict[str, str]:
    """The digest of every parameter and buffer by name, in the module's own order."""
    return {name: digest(tensor) for name, tensor in module.state_dict().items()}
