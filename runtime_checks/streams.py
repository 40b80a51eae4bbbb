"""Batches on side streams, with copies and kernels that take their time.

    with slow_device(copy=3, kernel=1) as how:
        ...    # code that uses torch.cuda.Stream, .cuda(non_blocking=True), record_stream, ...

On a GPU each copy and each kernel is preceded by a pause of that many milliseconds on its own
stream, which makes a hazard happen every time instead of once a week.  Elsewhere the same code
runs on a model of streams and of torch's caching allocator.  The model counts time instead of
waiting for it: what a stream is given begins when the stream is free, copies write when they
end, kernels read when they begin, and the host runs ahead until it reads a value.  A tensor that
is let go gives its block back to the pool of the stream that it was made on, at once, unless
``record_stream`` said who else uses it.
"""

from __future__ import annotations

import math
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import torch
from torch.overrides import TorchFunctionMode

#: What a proof says of itself where the model stands in for a GPU; "" where there is one.
SIMULATED = (
    "" if torch.cuda.is_available() else "streams and allocator are a model that counts time"
)
#: Clock ticks of a GPU for one millisecond, near enough.
_MILLISECOND = 1_500_000
#: How long the host takes to launch something, in milliseconds.
_LAUNCH = 0.001


@contextmanager
def slow_device(copy: float, kernel: float) -> Iterator[None]:
    """Make copies to the device and kernels there take so many milliseconds each."""
    if torch.cuda.is_available():
        with _Pauses(copy, kernel):
            yield
        torch.cuda.synchronize()
        return
    model = _Device(copy, kernel)
    names: dict[str, Any] = {
        "Stream": model.new_stream,
        "stream": model.use,
        "current_stream": lambda: model.current,
        "synchronize": model.catch_up,
        "memory_reserved": lambda: model.reserved,
    }
    # Its parser refuses a stream that is no CUDA stream before a mode sees the call.
    record = patch.object(torch.Tensor, "record_stream", model.record)
    with patch.multiple(torch.cuda, **names), record, _Model(model):
        yield


def _sleep(milliseconds: float) -> None:
    """Keep the current stream busy."""
    torch.cuda._sleep(math.ceil(milliseconds * _MILLISECOND))


class _Pauses(TorchFunctionMode):
    """On a GPU: sleep on the stream before the work is put there."""

    def __init__(self, copy: float, kernel: float) -> None:
        super().__init__()
        self._copy, self._kernel = copy, kernel

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.cuda:
            _sleep(self._copy)
        elif func is torch.Tensor.sum and args[0].is_cuda:
            _sleep(self._kernel)
        return func(*args, **kwargs)


@dataclass
class Block:
    """Memory of one size; ``users`` are streams besides the one it was made on."""

    memory: torch.Tensor
    made_on: Stream
    users: list[Stream] = field(default_factory=list)
    #: From when on no recorded user needs it any more.
    usable_at: float = 0.0


class Stream:
    """Work in order; ``free_at`` is when what it was given so far is over."""

    def __init__(self) -> None:
        self.free_at = 0.0
        self.pool: list[Block] = []

    def wait_stream(self, other: Stream) -> None:
        self.free_at = max(self.free_at, other.free_at)


class _Device:
    def __init__(self, copy: float, kernel: float) -> None:
        self.copy, self.kernel = copy, kernel
        self.now = 0.0
        self.reserved = 0
        self.current = Stream()
        #: What is still to happen, by when.
        self._ahead: dict[float, list[Callable[[], None]]] = defaultdict(list)
        self._by_id: dict[int, Block] = {}

    def new_stream(self) -> Stream:
        return Stream()

    @contextmanager
    def use(self, stream: Stream) -> Iterator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    def owns(self, tensor: object) -> bool:
        return id(tensor) in self._by_id

    def empty_like(self, tensor: torch.Tensor) -> torch.Tensor:
        """Memory of the current stream, with whatever was in it."""
        block = self._allocate(tensor.numel(), tensor.dtype)
        made = block.memory.view(tensor.shape)
        self._by_id[id(made)] = block
        weakref.finalize(made, self._free, id(made))
        return made

    def _allocate(self, numel: int, dtype: torch.dtype) -> Block:
        pool = self.current.pool
        for block in pool:
            fits = block.memory.numel() == numel and block.memory.dtype == dtype
            if fits and block.usable_at <= self.now:
                pool.remove(block)
                return block
        memory = torch.full((numel,), -1, dtype=dtype)
        self.reserved += memory.nbytes
        return Block(memory, self.current)

    def _free(self, tensor: int) -> None:
        block = self._by_id.pop(tensor)
        block.usable_at = max((user.free_at for user in block.users), default=0.0)
        block.users.clear()
        block.made_on.pool.append(block)

    @property
    def record(self) -> Callable[[torch.Tensor, Stream], None]:
        """What stands for ``Tensor.record_stream``."""

        def record_stream(tensor: torch.Tensor, stream: Stream) -> None:
            self._by_id[id(tensor)].users.append(stream)

        return record_stream

    def launch(self, milliseconds: float, work: Callable[[], None], *, at_end: bool) -> None:
        """Put work on the current stream; it takes effect when it begins, or when it ends."""
        self.now += _LAUNCH
        begin = max(self.now, self.current.free_at)
        self.current.free_at = begin + milliseconds
        self._ahead[self.current.free_at if at_end else begin].append(work)

    def catch_up(self) -> None:
        """Let everything happen that was launched, in the order of its time."""
        ahead, self._ahead = self._ahead, defaultdict(list)
        for moment in sorted(ahead):
            for work in ahead[moment]:
                work()
            self.now = max(self.now, moment)
        self.now = max(self.now, self.current.free_at)


class _Model(TorchFunctionMode):
    """Sends what is done with tensors of the model to the model."""

    _READS = ("item", "tolist", "cpu", "numpy", "__float__", "__bool__", "__repr__")

    def __init__(self, device: _Device) -> None:
        super().__init__()
        self._device = device

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        device = self._device
        if func is torch.Tensor.cuda:
            return self._copied(args[0])
        if getattr(func, "__name__", "") in self._READS:
            device.catch_up()
            return func(*args, **kwargs)
        result = func(*args, **kwargs)
        if not isinstance(result, torch.Tensor) or not any(map(device.owns, args)):
            return result
        return self._computed(func, args, kwargs, result)

    def _copied(self, source: torch.Tensor) -> torch.Tensor:
        made = self._device.empty_like(source)
        # Not the tensor itself: the queue would keep it from being let go.
        target = made.detach()

        def work() -> None:
            target.copy_(source)

        self._device.launch(self._device.copy, work, at_end=True)
        return made

    def _computed(
        self, func: Any, args: tuple[Any, ...], kwargs: Any, shape: torch.Tensor
    ) -> torch.Tensor:
        made = self._device.empty_like(shape)
        target = made.detach()
        seen = [arg.detach() if isinstance(arg, torch.Tensor) else arg for arg in args]

        def work() -> None:
            target.copy_(func(*seen, **kwargs))

        self._device.launch(self._device.kernel, work, at_end=False)
        return made
