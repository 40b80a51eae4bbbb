"""`no_sync()` around the backward alone changes nothing: DDP reads the flag in its forward.

The wrapper decides in `forward` whether the coming backward will be averaged.  A forward before
the `with` has decided already, so every micro-batch is averaged all the same: measured, 20
all-reduces with the forward outside and 20 without any `no_sync`, where 5 are enough.  It looks
like an optimisation and is none.  Forward alone inside is enough; usually both are.

Bad:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean() / 4
    if (step + 1) % 4 == 0:
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    else:
        with model.no_sync():  # DDP505
            loss.backward()
dist.destroy_process_group()
```

Good:

```python
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(1000):
    last = (step + 1) % 4 == 0
    with nullcontext() if last else model.no_sync():
        loss = model(torch.randn(32, 64, device=local_rank)).square().mean() / 4
        loss.backward()
    if last:
        optimizer.step()
        optimizer.zero_grad()
dist.destroy_process_group()
```

References:

* speechbrain/speechbrain#1802
* `DistributedDataParallel.no_sync` in the PyTorch documentation, its warning
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP505", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for late in program.late_no_syncs:
        yield late.finding(
            f"`{late.context_text}` is entered after the forward: DDP has decided there, so every "
            "backward is averaged all the same; put the forward inside",
            related=late.chain,
            fix=late.fix,
        )
