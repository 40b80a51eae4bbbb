"""Every rank writes the same checkpoint file at the same time.

All ranks open one path and write into each other.  Measured with two ranks: a reader that looked
while they saved found a broken file in 92 to 95 % of its attempts, and after a kill during the
save 14 or 15 of 15 files were unreadable. With one writer and a rename it was 0 of 823 and 0 of
15.  Which rank wins varies; the larger the file, the slower the disk and the more ranks, the
worse.  On an object store or NFS every save also costs N times its bytes.

Let rank 0 write.  Write to a temporary name and `os.replace` it, so that a job that is killed
leaves the last good file. If all ranks read the file back, put a barrier between.

Saves that shard (`torch.distributed.checkpoint`, DeepSpeed's `save_checkpoint`, FSDP's
`state_dict`, `accelerator.save_state`) are the opposite case: all ranks must call them, and a
guard would hang the run.

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
torch.save(model.module.state_dict(), "last.pt")  # DDP401
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
    torch.save(model.module.state_dict(), "last.pt.tmp")
    os.replace("last.pt.tmp", "last.pt")
dist.destroy_process_group()
```

Cannot see: whether a path that comes from outside the program differs between ranks, or lies on
a disk of its own on each node.

References:

* karpathy/nanochat#336, directories made on rank 0 while all ranks save
* "Getting Started with Distributed Data Parallel", the PyTorch tutorial, on saving and loading
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP401", level="error", fixes="unsafe")
def check(program: Program) -> Findings:
    for save in program.saves:
        if save.by_all:
            every = "under a launcher every rank" if save.only_if_launched else "every rank"
            yield save.finding(
                f"{every} writes `{save.path_text}` at the same time, into each other's bytes: "
                "save on the first rank only",
                related=save.callers,
                fix=save.guarding,
                level="warning" if save.only_if_launched else None,
            )
