"""All ranks load a file that one rank may still be writing.

Rank 0 saves under a guard; the others do not wait for it.  They come to `torch.load` first and
find no file, the file of the last run, or the first half of this one.  Measured with a reader
that did not wait, a file that is being written was broken in most attempts.  The rank that saved
reads it fine, so the error shows up on the other ranks only, and only sometimes.  A
`dist.barrier()` between the save and the load ends it.

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
model = nn.Linear(64, 8).cuda()
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "initial.pt")
model.load_state_dict(torch.load("initial.pt", map_location="cpu"))  # DDP405
model = DistributedDataParallel(model, device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
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
model = nn.Linear(64, 8).cuda()
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "initial.pt")
dist.barrier()
model.load_state_dict(torch.load("initial.pt", map_location="cpu"))
model = DistributedDataParallel(model, device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

References:

* "Getting Started with Distributed Data Parallel", the PyTorch tutorial, which has the barrier
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP405", level="error", fixes="unsafe")
def check(program: Program) -> Findings:
    for load in program.racing_loads:
        yield load.finding(
            f"the other ranks may read `{load.path_text}` before it is written at "
            f"{load.save_place}: put a barrier between",
            related=load.places,
            fix=load.waiting,
        )
