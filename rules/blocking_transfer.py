"""Pinned memory and `non_blocking=True` are used one without the other.

A copy to the device overlaps with computation only if both hold: the batch lies in pinned
memory (`pin_memory=True` in the loader) and the copy is asked not to block. A pinned loader
whose batches are moved with a plain `.to(device)` has paid for the pinning and still waits.
`non_blocking=True` on pageable memory is accepted in silence: the driver stages the copy, and
the host waits.

A small matter next to a slow loader, hence a note. Do not pin by hand before each copy:
`tensor.pin_memory().to(device, non_blocking=True)` can take twice as long as a plain
`.to(device)`.

Bad (pinned, but blocking):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    images = images.to(device)  # DDP105
    labels = labels.to(device)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

Bad (not blocking, but not pinned):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    images = images.to(device, non_blocking=True)  # DDP105
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
for images, labels in loader:
    images = images.to(device, non_blocking=True)
    labels = labels.to(device, non_blocking=True)
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images), labels).backward()
    optimizer.step()
```

Cannot see: whether a batch of an own type can be pinned (it needs a `pin_memory` method).

References:

* "A guide on good usage of `non_blocking` and `pin_memory()`" in the PyTorch tutorials
* NVIDIA/apex#304, allenai/allennlp#4670
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP105", level="note", fixes="safe")
def check(program: Program) -> Findings:
    for transfer in program.transfers:
        if transfer.pinned:
            message = (
                f"`{transfer.loader.name}` pins its batches, but `{transfer.text}` blocks until "
                "the copy is done: add `non_blocking=True`"
            )
        else:
            message = (
                f"`non_blocking=True` does nothing here: `{transfer.loader.name}` does not pin "
                "its batches; add `pin_memory=True`"
            )
        yield transfer.finding(message, related=transfer.related, fix=transfer.fix)
