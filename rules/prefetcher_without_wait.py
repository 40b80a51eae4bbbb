"""A prefetcher hands batches over too early, or lets their memory be reused too early.

A copy on a side stream runs beside the kernels of the step. Two things have to be said to keep
them apart. Before a batch is handed over, the consuming stream waits for the copy:
`torch.cuda.current_stream().wait_stream(self.stream)`. And the memory of a batch may not be
given to the next copy while kernels still read it: either
`tensor.record_stream(current_stream)`, or the side stream waits for the consumer before it
copies. One of the two is enough.

On a model of two streams and their allocator, with a copy slower than a step, the missing wait
spoiled 30 of 30 batches. With a step slower than the copy, the missing protection of the
memory spoiled 23 of 30, and either remedy none. With the speeds the other way round each
mistake stays invisible: training runs, on wrong data now and then.

Within `with torch.cuda.stream(s)` the current stream *is* `s`, so a wait of the current stream
belongs behind the `with`: inside it, `s` waits for itself.  A `yield` inside the `with` leaves
`s` the current stream of the whole training step, which then runs behind the copy and not
beside it; the batch after the last copy is handed over outside, and needs its wait.

`record_stream` works in place and returns nothing: `x = x.record_stream(s)` loses the tensor.

Bad (handed over before the copy is done):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Prefetcher:
    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        for images, labels in self.loader:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            yield images, labels  # DDP106


batches = Prefetcher(loader)
for images, labels in batches:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

Bad (memory reused while it is read):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Prefetcher:
    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        for images, labels in self.loader:
            with torch.cuda.stream(self.stream):  # DDP106
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            yield images, labels


batches = Prefetcher(loader)
for images, labels in batches:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

Good (the copy waits for the consumer):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Prefetcher:
    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        for images, labels in self.loader:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            yield images, labels


batches = Prefetcher(loader)
for images, labels in batches:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

Good (the allocator is told):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Prefetcher:
    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        for images, labels in self.loader:
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            images.record_stream(torch.cuda.current_stream())
            labels.record_stream(torch.cuda.current_stream())
            yield images, labels


batches = Prefetcher(loader)
for images, labels in batches:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

Cannot see: streams that are handed from thread to thread.

References:

* huggingface/pytorch-image-models#2784, NVIDIA/apex#304
* `torch.Tensor.record_stream` and "CUDA semantics: CUDA streams" in the PyTorch documentation
* `TORCH_CUDA_SANITIZER=1` finds such races at run time
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP106", level="error", fixes="unsafe")
def check(program: Program) -> Findings:
    for batch in program.side_streams.early():
        others = "; close the `with` before the other `yield`, too" if batch.inside else ""
        yield batch.finding(
            f"`{batch.given_text}` is handed over without waiting for the copy on "
            f"`{batch.stream_text}`: the step may read a batch that has not arrived; call "
            f"`torch.cuda.current_stream().wait_stream({batch.stream_text})` first{others}",
            related=batch.related,
            fix=batch.fix,
        )
    for region in program.side_streams.unkept():
        yield region.finding(
            "nothing keeps the memory of a batch until the step has read it: use "
            f"`record_stream`, or `{region.stream_text}.wait_stream(torch.cuda.current_stream())` "
            "before the copy",
            related=region.related,
            fix=region.fix,
        )
    for lost in program.side_streams.lost():
        yield lost.finding(
            f"`record_stream` returns nothing, so `{lost.name}` is None from here on: call it "
            "without assigning",
            fix=lost.fix,
        )
