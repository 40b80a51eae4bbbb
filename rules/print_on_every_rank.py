"""Every rank prints the same line, again and again.

With eight ranks the log has each line eight times, interleaved, and the numbers differ because
each rank has its own batch: nobody can tell which one to believe.  Guard it, let a logger of
level `ERROR` speak on the other ranks, or put the rank into the text if all of them are meant.

What a rank has for itself, as the memory of its GPU, is left to everybody: there is no fix. A
line that shows two values which the code compares is there to find the rank that differs, and
is not reported.

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
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0:
        print(f"step {step}: loss {loss.item():.3f}")  # DDP509
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
for step in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 100 == 0 and dist.get_rank() == 0:
        print(f"step {step}: loss {loss.item():.3f}")
dist.destroy_process_group()
```

Cannot see: a launcher that sends the output of the other ranks to files of their own (`torchrun
--redirects`, SLURM).

References:

* `torchrun --local-ranks-filter` and `--redirects` in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP509", level="note", fixes="unsafe")
def check(program: Program) -> Findings:
    for line in program.repeated_prints:
        if not line.on_every_rank or line.tells_the_rank or line.is_last_word:
            continue
        if not line.shows_a_check:
            yield line.finding(
                "every rank prints this again and again: print on the first rank only, or put "
                "the rank into the text",
                related=line.callers,
                fix=line.guarding,
            )
