"""Some ranks destroy the process group while others still use it: the error becomes a hang.

`destroy_process_group` in a `finally` also runs on the rank that has just failed.  The others
are in the middle of a collective that it will never join; tearing NCCL's communicator down waits
for outstanding work, so the failing rank hangs in its clean-up and its traceback is never
printed.  What remains is a timeout on the *healthy* ranks, ten minutes later with NCCL.  Under a
rank guard it is the same without any error: one rank closes, the others wait.

Destroy on success, on all ranks.  After an exception let it rise: the launcher ends the other
processes.

Bad:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(local_rank):
    model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
try:
    train(local_rank)
finally:
    dist.destroy_process_group()  # DDP514
```

Bad (on one rank):

```python
import os

import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
total = torch.ones((), device=local_rank)
dist.all_reduce(total)
if dist.get_rank() == 0:
    print(total.item())
    dist.destroy_process_group()  # DDP514
```

Good:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def train(local_rank):
    model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
train(local_rank)
dist.destroy_process_group()
```

References:

* pytorch/torchtitan#1342, sgl-project/SpecForge#781
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP514", level="error")
def check(program: Program) -> Findings:
    for call in program.divided_closings:
        yield call.finding(
            f"only ranks where `{call.test_text}` destroy the group: the others wait for them, or "
            "leave theirs open; destroy it on all ranks",
            related=call.places,
        )
    for closing in program.early_closings:
        yield closing.finding(
            f"this also runs on a rank that failed, while the others are in "
            f"`{closing.used_text}`: it hangs here and hides the error; "
            "destroy the group on success only",
            related=closing.places,
        )
