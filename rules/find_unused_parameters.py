"""`find_unused_parameters=True` walks the whole graph after every forward, needed or not.

DDP then searches in each step for parameters that got no gradient.  It costs time in every
forward, keeps reduction from overlapping as well as it could, and forbids `no_sync` to save
anything.  It is needed where a forward leaves some parameters out from time to time.  It is
often set once to silence an error (`Expected to have finished reduction in the prior iteration`)
and stays after the cause has gone.  PyTorch warns when it finds none unused in the first step:
read the log.

The rule is off unless it is selected: only a run can tell whether the flag is needed.

Bad:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = nn.Linear(64, 8).cuda()
model = DistributedDataParallel(model, find_unused_parameters=True)  # DDP511
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

Good:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = nn.Linear(64, 8).cuda()
model = DistributedDataParallel(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

References:

* `torch.nn.parallel.DistributedDataParallel`, its parameter `find_unused_parameters`
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP511", level="note", on=False)
def check(program: Program) -> Findings:
    for search in program.unused_searches:
        yield search.finding(
            "DDP walks the whole graph for unused parameters after every forward pass: set it to "
            "False if the log of the first step says that none was found"
        )
