"""A dataset that makes CUDA tensors breaks as soon as the loader has workers.

Workers are forked, and CUDA cannot be used in a forked process: `RuntimeError: Cannot
re-initialize CUDA in forked subprocess`.  With the `spawn` start method it runs, but each worker
opens its own CUDA context on GPU 0 (hundreds of megabytes each, and on rank 0's card whatever
the rank), copies sample by sample, and the tensors must outlive the worker.  Let the dataset
return CPU tensors and move the whole batch once, in the training loop.

It is loud, but only where workers are switched on: with `num_workers=0` the same dataset works,
so it tends to break on somebody else's machine.

Bad:

```python
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        return torch.full((32,), float(index)).cuda()  # DDP307


model = nn.Linear(32, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for points in DataLoader(Points(), batch_size=64, shuffle=True, num_workers=4):
    loss = model(points).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Good:

```python
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        return torch.full((32,), float(index))


model = nn.Linear(32, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for points in DataLoader(Points(), batch_size=64, shuffle=True, num_workers=4):
    loss = model(points.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

References:

* "Multiprocessing best practices" and "Data loading: multi-process, CUDA" in the PyTorch
  documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP307", level="error")
def check(program: Program) -> Findings:
    for spot in program.cuda_in_workers:
        loader = spot.loader
        workers = f"a worker of `{loader.name}`" if loader is not None else "a worker"
        yield spot.finding(
            f"`{spot.text}` runs in {workers}: CUDA cannot be used in a forked process; return "
            "CPU tensors and move the whole batch in the training loop",
            related=spot.related,
        )
