"""The loss is computed through `.module`, around DDP: gradients are never averaged over ranks.

`DistributedDataParallel` prepares its reducer in its own `forward`.  A loss that flows through
`model.module(x)`, through a name that stands for it, or through one of the inner model's methods
does not pass there.  The backward then computes local gradients only, each rank updates its own
copy, and the copies drift apart: measured, the gradients differed by 0.18 in the first step and
the weights by 0.43 after twenty, without any error.  What is saved in the end is rank 0's model,
trained on rank 0's share of the data.

Call the wrapper.  If the training step needs another method than `forward`, let `forward` choose
it (`model(x, mode="encode")`), or wrap a small module whose `forward` computes the whole loss.
`model.forward(x)` on the wrapper is fine, and so is everything under `no_grad`: evaluation,
sampling, an EMA copy.

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
raw_model = model.module
for _ in range(1000):
    loss = raw_model(torch.randn(32, 64, device=local_rank)).square().mean()  # DDP503
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
model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

Cannot see: gradients that a program averages on its own in a library it calls.

References:

* jingyaogong/minimind#853
* `torch.nn.parallel.DistributedDataParallel`, "Internal design" in the PyTorch notes on DDP
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP503", level="error", fixes="unsafe")
def check(program: Program) -> Findings:
    for call in program.around_calls:
        wrapper = f"`{call.wrapper_text}(...)`"
        remedy = "keep the wrapper, and call that" if call.is_namesake else f"call {wrapper}"
        yield call.finding(
            f"the loss goes through `{call.called_text}`, around the DDP wrapper "
            f"`{call.wrapper_text}`{call.where}: its gradients are not averaged, and the ranks "
            f"drift apart; {remedy}",
            related=call.places,
            fix=call.calling_the_wrapper,
        )
