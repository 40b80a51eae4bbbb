"""A new side stream is made for every epoch.

The allocator keeps a pool of memory for each stream, and a freed block only serves the stream
that it was allocated on. A prefetcher that makes a stream when it is iterated leaves the pool
of the last epoch behind: reserved memory grows from epoch to epoch, until the streams that
PyTorch hands out in turn (32) have all been used, or memory has run out. On the proof's model
of streams and their allocator every epoch after the first reserves more, and none does with
one stream.

Make the stream once, next to the loader, and use it for all epochs.

Bad:

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

    def __iter__(self):
        stream = torch.cuda.Stream()  # DDP107
        for images, labels in self.loader:
            stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(stream)
            yield images, labels


batches = Prefetcher(loader)
for _ in range(10):
    for images, labels in batches:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
```

Good:

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
for _ in range(10):
    for images, labels in batches:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
```

Cannot see: an epoch loop outside of the project that iterates a prefetcher of the project.

References:

* huggingface/pytorch-image-models#2781 and #2784, libffcv/ffcv#308
* "CUDA semantics: memory management" in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP107", level="warning")
def check(program: Program) -> Findings:
    for stream in program.repeated_streams:
        yield stream.finding(
            f"`{stream.text}` makes a new stream in each epoch: the allocator keeps a memory pool "
            "for each, so reserved memory grows; make it once and keep it",
            related=stream.related,
        )
