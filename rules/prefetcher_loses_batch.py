"""A prefetcher drops a batch, fails on the last one, or is empty from the second epoch on.

Four slips, each of which the proof runs on loaders of several lengths:

* One batch is kept back while the next is fetched, and nothing hands it over after the loop:
  every epoch has one batch less, and a loader of one batch has none.
* `next()` inside a generator: the end of the loader is a `StopIteration` there, which Python
  turns into a `RuntimeError`. It happens at the end of the first epoch, always.
* `iter(loader)` is called once for several epochs: the second epoch has no batch.
* A name that only the loop binds is handed over after it: an empty loader, as small shards
  with `drop_last` are, ends in an `UnboundLocalError`.

Bad (the last batch stays behind):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def ahead(loader):
    ready = None
    for batch in loader:  # DDP108
        if ready is not None:
            yield ready
        ready = [tensor.cuda(non_blocking=True) for tensor in batch]


for images, labels in ahead(loader):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

Bad (one iterator for all epochs):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = iter(loader)  # DDP108
for _ in range(10):
    for images, labels in batches:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
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


def ahead(loader):
    ready = None
    for batch in loader:
        if ready is not None:
            yield ready
        ready = [tensor.cuda(non_blocking=True) for tensor in batch]
    if ready is not None:
        yield ready


for _ in range(10):
    for images, labels in ahead(loader):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
```

Cannot see: a source that starts over by itself, unless it is made in the project.

References:

* huggingface/pytorch-image-models#2784
* PEP 479, `StopIteration` inside generators
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule

SAYS = {
    "kept back": "the last batch of every epoch is never handed over: yield `{name}` after the "
    "loop",
    "ends in an error": "`next({name})` in a generator raises RuntimeError when the loader ends: "
    "catch StopIteration and return",
    "used up": "`{name}` is used up after the first epoch, and later epochs train on nothing: "
    "iterate the loader itself",
    "unbound": "`{name}` is unbound when the loader is empty: bind it before the loop and ask for "
    "it here",
}


@rule("DDP108", level="error")
def check(program: Program) -> Findings:
    for lost in program.lost_batches:
        yield lost.finding(SAYS[lost.kind].format(name=lost.name), related=lost.related)
