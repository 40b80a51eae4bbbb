"""`nn.DataParallel` drives all GPUs from one process and is slower than DDP on one machine too.

In every step it copies the model to all GPUs, runs the replicas in threads that share one
interpreter lock, gathers the outputs on the first GPU and sums the gradients there: that card
fills up first and the others wait for it.  It cannot leave the machine, and PyTorch's own
documentation advises `DistributedDataParallel`.  It works, though, and moving to DDP means a
launcher, a sampler and guards; hence a note.

It is one where the model is trained.  Around a model that is only run there are no gradients to
sum, a wrapper may be there for the names in a checkpoint alone, and with one device
(`device_ids=[0]`) it calls the model as it is and copies nothing.  Where the program wraps the
same model in DistributedDataParallel too, it is what is left for a start without a launcher, and
nothing is said.

Bad:

```python
import torch
from torch import nn

model = nn.DataParallel(nn.Linear(64, 8).cuda())  # DDP510
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(256, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
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

References:

* `torch.nn.DataParallel` in the PyTorch documentation, its warning
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP510", level="note")
def check(program: Program) -> Findings:
    for call in program.data_parallel_calls:
        yield call.finding(
            f"`nn.DataParallel` copies `{call.model_text}` to every GPU in each step, from one "
            "process: DistributedDataParallel is faster, also on one machine"
        )
