"""Gradients are accumulated over several batches, and DDP averages them after every single one.

Only the last backward of a window has to be averaged; the sum of sums is the same.  Without
`no_sync()` each micro-batch sends all gradients over the wire: measured with windows of four, 20
all-reduces and 32.0 MB instead of 5 and 8.0 MB, exactly four times as much.  The results are
equal (to 4e-9); what it costs depends on how much of it the backward hides, and it is most
between nodes.

Put forward *and* backward of all but the last micro-batch into `with model.no_sync():`. The
wrapper of apex has `disable_allreduce()` and `enable_allreduce()` instead. With Accelerate
construct `Accelerator(gradient_accumulation_steps=N)` and enter `with
accelerator.accumulate(model):`, which holds under DeepSpeed, too.

`find_unused_parameters=True` is no obstacle: DDP remembers over the window which parameters were
used, and the gradients are equal, also where micro-batches or ranks use different ones. With
FSDP weigh it: there `no_sync` keeps unsharded gradients and costs memory.

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
for step in range(1000):  # DDP504
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean() / 4
    loss.backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
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

Cannot see: how long a window is when its length comes from the command line.  With one batch
there is nothing to gain.

References:

* pytorch/pytorch#43201, Lightning-AI/pytorch-lightning#2595
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP504", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for loop in program.unsynchronized:
        remedy = (
            f"construct `Accelerator(gradient_accumulation_steps=N)` and put the body of the loop "
            f"into `with {loop.context_text}:`"
            if loop.accelerator_text is not None
            else f"put forward and backward of the others into `with {loop.context_text}:`"
            if loop.has_context
            else f"call `{loop.model_text}.disable_allreduce()` before the others, and "
            "`enable_allreduce()` before the last"
        )
        yield loop.finding(
            f"`{loop.backward_text}` averages all gradients over the ranks in every micro-batch, "
            f"the step needs it once for {loop.length_text} of them: {remedy}",
            related=loop.chain,
            fix=loop.fix,
        )
