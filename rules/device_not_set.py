"""The NCCL group is used before the process has chosen its GPU, or it never chooses one.

Until `torch.cuda.set_device` is called the current device of every process is GPU 0.  An object
collective then runs on GPU 0 for all ranks: NCCL refuses (`Duplicate GPU detected`) or waits
forever, and each process leaves a context of a few hundred megabytes there.  So do every bare
`.cuda()` and pinned memory.  For a barrier NCCL takes the GPU that the group has used first, and
before that guesses it: the global rank modulo the number of GPUs, which may be another process's.
`DistributedDataParallel(..., device_ids=[...])` does not set the device.

Call `torch.cuda.set_device(local_rank)` before `init_process_group`, or hand it `device_id=`.

Where nothing in the program relies on the current device before it is set, or ever, the run
works; then it is a note: the order breaks when somebody adds a bare `.cuda()` or an object
collective, and some versions of PyTorch communicate as they set the group up.

Bad:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")  # DDP507
dist.barrier()
model = DistributedDataParallel(nn.Linear(64, 8).to(local_rank), device_ids=[local_rank])
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
dist.barrier()
model = DistributedDataParallel(nn.Linear(64, 8).to(local_rank), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

Good (the group is told its device):

```python
import os

import torch
import torch.distributed as dist

device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl", device_id=device)
dist.barrier()
dist.destroy_process_group()
```

Cannot see: `CUDA_VISIBLE_DEVICES` set by a launcher so that each process has one GPU.

References:

* pytorch/examples#1142, pytorch/examples#1285
* ray-project/ray#42751, a barrier before `set_device`
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP507", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for group in program.unplaced_groups:
        guessed = "NCCL guesses a GPU for it from the global rank"
        if group.choice is None:
            goes = f"`{group.use_text}` of all ranks goes to GPU 0"
            if group.use is None or group.is_guessed:
                goes = "pinned memory, object collectives and a bare `.cuda()` go to GPU 0"
            message = (
                f"no process chooses its GPU: {goes}; "
                "call `torch.cuda.set_device(local_rank)` before this"
            )
        elif group.use is not None:
            where = guessed if group.is_guessed else "all ranks are on GPU 0 there"
            message = (
                f"`{group.use_text}` runs before the device is chosen at {group.choice_place}: "
                f"{where}; choose it before the group is made"
            )
        else:
            message = (
                f"the device is chosen only afterwards, at {group.choice_place}: what is sent in "
                "between one day goes to GPU 0 from all ranks; choose it before"
            )
        yield group.finding(message, related=group.places, fix=group.reordering, level=group.level)
