"""Each rank loads the checkpoint onto the GPU that it was saved from.

Tensors remember their device.  A file that rank 0 wrote from `cuda:0` is read back to `cuda:0`
by all ranks: N copies of model and optimizer state pile up on the first GPU, together with a
CUDA context of each process, and the job that filled 90 % of its memory before the restart dies
of `out of memory` after it.  On a machine with fewer GPUs the load fails.  `map_location="cpu"`
costs a little host memory; `map_location=device` goes straight to the own card.

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
model.load_state_dict(torch.load("last.pt"))  # DDP404
model = DistributedDataParallel(model, device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "last.pt")
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
model.load_state_dict(torch.load("last.pt", map_location="cpu"))
model = DistributedDataParallel(model, device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "last.pt")
dist.destroy_process_group()
```

Cannot see: from which device a file was saved that another program wrote.

References:

* pytorch/examples#1078, huggingface/accelerate#1444, mlfoundations/open_clip#369
* `torch.load` in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP404", level="warning", fixes="safe")
def check(program: Program) -> Findings:
    for load in program.restoring_loads:
        if load.by_all and not load.is_placed and not load.is_of_the_cpu:
            wanted = load.ignored_parameter or '"cpu"'
            yield load.finding(
                f"every rank loads `{load.path_text}` onto the GPU that it was saved from: "
                f"give `map_location={wanted}`",
                related=load.callers,
                fix=load.placing,
            )
