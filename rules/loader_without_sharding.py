"""Under DistributedDataParallel the training loader gives every rank the whole dataset.

A `DataLoader` knows nothing of the process group.  Without a `DistributedSampler`, or a dataset
that shards itself, each rank walks through all of the data: N ranks do N times the work of one
epoch.  With `shuffle=False`, or with one seed set on all ranks before the loader is built, they
even compute the same batch at the same time, so that the averaged gradient is the gradient of a
single rank, and N - 1 GPUs do nothing but heat.  Nothing fails; the run just is not a
distributed one.

Bad:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4)  # DDP304
for epoch in range(90):
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
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
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
sampler = DistributedSampler(dataset)
loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
for epoch in range(90):
    sampler.set_epoch(epoch)
    for inputs, targets in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
```

Cannot see: a seed that differs on each rank makes the copies differ; the epoch is still N times
as long, but some programs count steps and want just that.

References:

* `torch.utils.data.distributed.DistributedSampler` in the PyTorch documentation
* "Getting Started with Distributed Data Parallel", the PyTorch tutorial
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP304", level="error", fixes="unsafe")
def check(program: Program) -> Findings:
    for loader in program.unsharded_loaders:
        same = "compute the same batches" if loader.in_same_order else "do the same work"
        yield loader.finding(
            f"every rank goes through all of `{loader.dataset_text}`: `{loader.loader.name}` has "
            f"no distributed sampler, so all ranks {same}",
            related=loader.related,
            fix=loader.fix,
        )
