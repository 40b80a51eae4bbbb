"""The model was wrapped, or the optimizer built, in an order in which one does not see the other.

FSDP replaces the parameters as it wraps (one flat, sharded tensor for many; `fully_shard` makes
`DTensor`s of them).  An optimizer that was built before holds the old ones: its `step` updates
nothing and its `zero_grad` clears nothing, and the loss stays where it is.  Wrap first, then
`optimizer = ...(model.parameters())`.

`SyncBatchNorm.convert_sync_batchnorm` makes new layers.  After `DistributedDataParallel` has
recorded the parameters, the new ones are not among those whose gradients it averages, and
PyTorch's documentation asks to convert first.

Plain DDP keeps the parameters as they are; an optimizer that was built before it works.

Bad (FSDP):

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = nn.Linear(64, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # DDP513
model = FullyShardedDataParallel(model)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

Bad (batch norm):

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = nn.Sequential(nn.Linear(64, 8), nn.BatchNorm1d(8)).cuda()
model = DistributedDataParallel(model)
model = nn.SyncBatchNorm.convert_sync_batchnorm(model)  # DDP513
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

Good (FSDP):

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = FullyShardedDataParallel(nn.Linear(64, 8).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

Good (batch norm):

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = nn.Sequential(nn.Linear(64, 8), nn.BatchNorm1d(8)).cuda()
model = DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(model))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
```

References:

* huggingface/accelerate#3256, an optimizer that updated nothing
* `FullyShardedDataParallel` and `SyncBatchNorm` in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP513", level="error")
def check(program: Program) -> Findings:
    for early in program.wrapped_early:
        if early.is_optimizer:
            message = (
                f"`{early.name}` holds the parameters from before `{early.wrap_text}` replaced "
                "them, so its steps change nothing: build it afterwards"
            )
        else:
            message = (
                f"`{early.name}` is wrapped already, and `{early.wrap_text}` has recorded the old "
                "layers: convert them before"
            )
        yield early.finding(message, related=early.places)
