"""For your own tests: fail when a training step waits for the device.

    from ddp_lint.nosync import host_sync_allowed, no_host_sync

    def test_training_step_never_waits():
        model, optimizer, batches = make_everything()
        train_step(model, optimizer, next(batches))        # warm-up may wait
        with no_host_sync():
            for step in range(3):
                loss = train_step(model, optimizer, next(batches))
                with host_sync_allowed():                  # logging, every N steps
                    print(loss.item())

The test fails with the file and line of every read: ``.item()``, ``.cpu()``, ``float(loss)``,
``if loss > x``, ``print(loss)``, ``x[mask]`` and the like, also deep in a helper, and calls of
``synchronize()``.

With a GPU only tensors on it count, and CUDA's own sync debug mode reports what these watches
miss.  Without one every tensor stands for a tensor on the device, so that the test is worth
having on a CI machine too; a value that lives on the host on purpose has to be read outside, or
within ``host_sync_allowed()``.  Reads in other threads are not seen.

Torch is imported when a region is entered, not before.
"""

from __future__ import annotations

import linecache
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import FrameType
from typing import Any

#: How methods and functions that bring a value to the host are called in reports, by the name
#: that torch calls them by.
READS = {
    "item": ".item()",
    "tolist": ".tolist()",
    "cpu": ".cpu()",
    "numpy": ".numpy()",
    "__array__": "numpy.asarray()",
    "__bool__": "bool()",
    "__int__": "int()",
    "__float__": "float()",
    "__complex__": "complex()",
    "__index__": "use as an index",
    "__format__": "formatting",
    "__repr__": "printing",
    "__contains__": "in",
    "equal": "equal()",
    "allclose": "allclose()",
    "is_nonzero": "is_nonzero()",
    "nonzero": "nonzero()",
    "argwhere": "argwhere()",
    "masked_select": "masked_select()",
    "unique": "unique()",
    "unique_consecutive": "unique_consecutive()",
    "bincount": "bincount()",
    "__getitem__": "indexing by a mask",
}
#: Parts of torch that read tensors of theirs which stay on the host also on a GPU machine.
_HOST_SIDE = ("utils/data/", "optim/")
_REALLY_READS = ("optim/lbfgs.py",)
_GRAD_SCALER = "amp/grad_scaler.py"

_allowed: ContextVar[bool] = ContextVar("host_sync_allowed", default=False)


@dataclass(frozen=True)
class HostRead:
    """One place at which the host waited: the innermost line that is not torch's own."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        source = linecache.getline(self.path, self.line).strip()
        return f"{self.path}:{self.line}: {self.what}" + (f"    {source}" if source else "")


class HostSyncError(AssertionError):
    """Something in the region waited for the device; ``reads`` counts it by place."""

    def __init__(self, reads: Counter[HostRead]) -> None:
        total = sum(reads.values())
        times = "once" if total == 1 else f"{total} times"
        lines = [f"  {read}" + (f"  ({n} times)" if n > 1 else "") for read, n in reads.items()]
        super().__init__("\n".join([f"the host waited for the device {times}:", *lines]))
        self.reads = reads


@contextmanager
def no_host_sync(*, grad_scaler: bool = False) -> Iterator[Counter[HostRead]]:
    """Raise ``HostSyncError`` at the end of the region if the host waited for the device in it.

    ``GradScaler.step()`` asks once a step whether a gradient overflowed; that is its nature, so
    it counts only with ``grad_scaler=True``.  An exception of the region's own goes through.
    """
    with watch_host_reads(grad_scaler=grad_scaler) as reads:
        yield reads
    if reads:
        raise HostSyncError(reads)


@contextmanager
def host_sync_allowed() -> Iterator[None]:
    """A stretch within ``no_host_sync`` that may wait: logging, evaluation, a checkpoint."""
    token = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(token)


@contextmanager
def watch_host_reads(*, grad_scaler: bool = True) -> Iterator[Counter[HostRead]]:
    """Count where the host waits for the device, and raise nothing."""
    import torch

    reads: Counter[HostRead] = Counter()
    root = os.path.dirname(torch.__file__) + os.sep
    on_gpu = torch.cuda.is_available()

    inside: ContextVar[bool] = ContextVar("inside_a_read", default=False)

    def note(what: str) -> None:
        if _allowed.get() or inside.get():
            return
        nearest, blamed = _frames(root)
        if nearest.startswith(root):
            part = nearest[len(root) :].replace(os.sep, "/")
            if part.startswith(_HOST_SIDE) and part not in _REALLY_READS and not on_gpu:
                return
            if part == _GRAD_SCALER and not grad_scaler:
                return
        reads[HostRead(blamed.f_code.co_filename, blamed.f_lineno, what)] += 1

    with ExitStack() as stack:
        stack.enter_context(_calls_of_synchronize(note))
        if on_gpu:
            stack.enter_context(_cuda_warnings(note))
        stack.enter_context(_function_mode(note, inside, on_gpu))
        yield reads


def _frames(root: str) -> tuple[str, FrameType]:
    """The file that made the call, and the frame of the innermost line that is not torch's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    assert frame is not None
    nearest = blamed = frame
    while blamed.f_code.co_filename.startswith(root) and blamed.f_back is not None:
        blamed = blamed.f_back
    return nearest.f_code.co_filename, blamed


def _function_mode(
    note: Callable[[str], None], inside: ContextVar[bool], on_gpu: bool
) -> AbstractContextManager[object]:
    """A mode that sees each call of torch's Python API, with the caller on the stack."""
    import torch
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):
        def __torch_function__(
            self,
            func: Callable[..., Any],
            types: object,
            args: tuple[Any, ...] = (),
            kwargs: dict[str, Any] | None = None,
        ) -> Any:
            kwargs = kwargs or {}
            what = _read(func, args, kwargs, on_gpu)
            if not what:
                return func(*args, **kwargs)
            note(what)
            # What a read does on its way, as CUDA reports it, is this read and no further one.
            token = inside.set(True)
            try:
                return func(*args, **kwargs)
            finally:
                inside.reset(token)

    def _read(
        func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], on_gpu: bool
    ) -> str:
        name = getattr(func, "__name__", "")
        source = args[0] if args else kwargs.get("input")
        if not isinstance(source, torch.Tensor) or (on_gpu and source.device.type == "cpu"):
            return ""
        if name == "__getitem__":
            return READS[name] if _is_mask(args[1]) else ""
        if name == "to" and on_gpu:
            return ".to('cpu')" if _goes_to_cpu(args[1:], kwargs) else ""
        return READS.get(name, "")

    def _is_mask(index: object) -> bool:
        parts = index if isinstance(index, tuple) else (index,)
        return any(
            isinstance(part, torch.Tensor) and part.dtype in (torch.bool, torch.uint8)
            for part in parts
        )

    def _goes_to_cpu(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        target = kwargs.get("device", args[0] if args else None)
        if isinstance(target, torch.Tensor):
            target = target.device
        if kwargs.get("non_blocking") or not isinstance(target, (str, torch.device)):
            return False
        return torch.device(target).type == "cpu"

    mode: AbstractContextManager[object] = Mode()
    return mode


@contextmanager
def _calls_of_synchronize(note: Callable[[str], None]) -> Iterator[None]:
    import torch

    def watched(module: object) -> Callable[[], None]:
        original: Callable[..., Any] = vars(module)["synchronize"]

        def synchronize(*args: Any, **kwargs: Any) -> Any:
            note("synchronize()")
            return original(*args, **kwargs)

        vars(module)["synchronize"] = synchronize
        return lambda: vars(module).update(synchronize=original)

    modules = [torch.cuda, torch.cpu]
    if hasattr(torch, "accelerator"):
        modules.append(torch.accelerator)
    with ExitStack() as stack:
        for module in modules:
            stack.callback(watched(module))
        yield


@contextmanager
def _cuda_warnings(note: Callable[[str], None]) -> Iterator[None]:
    """CUDA's sync debug mode, heard through the warnings that it gives."""
    import torch

    before = torch.cuda.get_sync_debug_mode()
    with warnings.catch_warnings():
        # Python shows a warning once per place unless told otherwise.
        warnings.filterwarnings("always", message=_CUDA_SAYS)
        show = warnings.showwarning

        def hear(message: Warning | str, *args: Any, **kwargs: Any) -> None:
            if _CUDA_SAYS in str(message):
                note("a synchronizing CUDA operation")
            else:
                show(message, *args, **kwargs)

        warnings.showwarning = hear
        torch.cuda.set_sync_debug_mode("warn")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode(before)


_CUDA_SAYS = "called a synchronizing CUDA operation"
