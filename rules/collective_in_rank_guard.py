"""Only some ranks reach a collective: they wait for the others, or pair with the wrong call.

Every rank of a group must call the same collectives in the same order.  Under `if rank == 0:`
one rank calls one that the others do not.  If the others are done, it waits: with NCCL for ten
minutes by default, with gloo for thirty, and then the job dies.  If they are not done, it is
worse: the extra call pairs with the *next* collective of the others.  Measured with two ranks,
rank 0's extra `all_reduce` met the loss of the following step, and rank 1 went on with 21.0
where 30.0 was right, without any message.

Many collectives do not look like one: the forward of a DDP model with buffers (batch norm)
broadcasts them, `SyncBatchNorm` reduces in each training forward,
`accelerator.gather_for_metrics`, `wait_for_everyone`, `prepare` and `save_state` talk to all
ranks, and so does `self.log(..., sync_dist=True)`.  An early `return` or `continue` on some
ranks guards everything after it.  The guard may also hide in a loop condition: a
`tqdm(disable=rank != 0)` does not count, so `while bar.n < bar.total` never ends on the other
ranks.

Call it on all ranks and guard only what is done with the result.  For work of one rank inside a
collective program use the unwrapped model.

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
    if step % 100 == 0 and dist.get_rank() == 0:
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)  # DDP501
        print(step, mean.item())
dist.destroy_process_group()
```

Bad (after an early return, through a helper):

```python
import os

import torch
import torch.distributed as dist


def mean_over_ranks(value):
    dist.all_reduce(value, op=dist.ReduceOp.AVG)
    return value.item()


def report(accuracy):
    if dist.get_rank() != 0:
        return
    print(f"accuracy {mean_over_ranks(accuracy):.4f}")  # DDP501


local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
report(torch.rand((), device=local_rank))
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
    if step % 100 == 0:
        mean = loss.detach().clone()
        dist.all_reduce(mean, op=dist.ReduceOp.AVG)
        if dist.get_rank() == 0:
            print(step, mean.item())
dist.destroy_process_group()
```

Good (both arms call it):

```python
import os

import torch
import torch.distributed as dist

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
if dist.get_rank() == 0:
    seed = torch.randint(2**31, (1,), device=local_rank)
    dist.broadcast(seed, src=0)
else:
    seed = torch.empty(1, dtype=torch.long, device=local_rank)
    dist.broadcast(seed, src=0)
torch.manual_seed(seed.item())
dist.destroy_process_group()
```

Cannot see: a rank test that is computed outside the program, or collectives inside a library
that is not known to it.

References:

* huggingface/accelerate#2785, #2733, #2690: `gather_for_metrics` and waits under a guard
* pytorch/pytorch#54059, the DDP forward on one rank; pytorch/pytorch#48988, SyncBatchNorm
* huggingface/transformers#31532, a disabled progress bar as a loop condition
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP501", level="error")
def check(program: Program) -> Findings:
    for call in program.divided_calls:
        yield call.finding(
            f"only ranks where `{call.test_text}` reach `{call.text}`{call.where}: they wait for "
            "the others, or pair with their next collective; call it on all ranks",
            related=call.places,
        )
    for loop in program.bar_loops:
        yield loop.finding(
            f"`{loop.bar.as_string()}` is off on the other ranks and stays at 0, so this loop "
            "never ends there: count the steps yourself",
            related=loop.places,
        )
