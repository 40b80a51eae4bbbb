"""The global rank is used as the number of a GPU, which fails on every node but the first.

Ranks count over all nodes, GPUs within one.  On the second node of two with eight GPUs each the
first rank is 8 and asks for `cuda:8`: `CUDA error: invalid device ordinal`, at start.  It works
on one machine, which is why it is found on the day the job is scaled up.  Use `LOCAL_RANK`, or
`rank % torch.cuda.device_count()`.

Bad:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

rank = int(os.environ["RANK"])
torch.cuda.set_device(rank)  # DDP506
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(64, 8).cuda())
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

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(64, 8).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

Cannot see: whether the job will ever run on more than one node.  The index that `mp.spawn` hands
to its function counts the processes of one node and is taken for what it is.  What only tests
call is left alone: a runner starts their few ranks on one machine.

References:

* "torchrun (Elastic Launch)" in the PyTorch documentation, on `RANK` and `LOCAL_RANK`
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP506", level="error", fixes="safe")
def check(program: Program) -> Findings:
    for use in program.ranks_as_devices:
        yield use.finding(
            f"`{use.rank_text}` is the rank in the whole job: from the second node on there is no "
            "GPU of that number; use the local rank",
            related=use.places,
            fix=use.localizing,
        )
