"""One rank leaves the step on a value that only it has, and the ranks fall out of step.

`if torch.isnan(loss): continue` looks at this rank's loss.  The rank that skips does not run its
backward, so it does not take part in the gradient all-reduce of that step.  The others wait;
when the rank comes back with its next batch, its all-reduce pairs with a *different* step of
theirs.  Measured: from the skip on, every all-reduce joined different steps, one rank finished
with other weights than the rest, and the hang came at the very end.

With `raise`, `assert` or `sys.exit(1)` it depends on who looks on.  `mp.spawn` (with `join=True`)
and torchrun end the other ranks of the node as soon as they see one fail, so a program that only
`mp.spawn` starts is left alone, and elsewhere this is a warning: under a launcher that does not
look, and on the other nodes of a job, the others wait for the timeout.  `sys.exit()` is no
failure: measured under both, the others waited on.

Decide together: reduce the flag with `MAX` and let all ranks skip; or look at the gradient norm
after the backward, which is equal on all ranks; or give the rank a zero to go back through that
touches every parameter (`0 * sum(p.sum() for p in model.parameters())`; zero times a NaN loss is
NaN).

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
    if torch.isnan(loss):  # DDP102
        continue  # DDP502
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

Good (all ranks skip together, and the GPU is not asked in between):

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
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    finite = norm.isfinite()
    for parameter in model.parameters():
        parameter.grad = torch.where(finite, parameter.grad, 0)
    optimizer.step()
dist.destroy_process_group()
```

Cannot see: whether a value that comes from outside the program is the same on all ranks.

References:

* NVIDIA-NeMo/Automodel#2468, `continue` before the backward on one rank
* ecmwf/WeatherGenerator#2718
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP502", level="error")
def check(program: Program) -> Findings:
    for exit in program.local_exits:
        latest = " at the latest" if exit.at_the_latest else ""
        if exit.fails:
            others = (
                f"this one ends alone, and the others wait at `{exit.missed_text}`{latest} until "
                "the launcher ends them, or for the timeout where it does not"
            )
        else:
            others = (
                f"the others go on to `{exit.missed_text}`{latest} and wait, or pair with another "
                "step"
            )
        yield exit.finding(
            f"`{exit.test_text}` is decided by each rank for itself: {others}; decide on a value "
            "that is reduced over the ranks",
            related=exit.places,
            level="warning" if exit.fails else None,
        )
