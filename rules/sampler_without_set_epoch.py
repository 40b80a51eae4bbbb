"""A shuffling DistributedSampler that is never told its epoch deals the same order every epoch.

`DistributedSampler` shuffles with a generator seeded by its own seed plus the epoch number, so
that all ranks agree on one permutation without talking to each other.  Nobody but the training
loop knows the epoch.  Without `set_epoch` the number stays 0: measured over three epochs on two
ranks, all three gave identical batches in identical order, and each rank saw the very same half
of the data every time.  With `set_epoch` the same position held the same sample in 2 % of the
cases, and half of a rank's share was new in each epoch.  Nothing fails and the loss still falls;
the model just sees far less variety, most of all where batches matter (batch norm, contrastive
losses, hard negatives).

Call it before the loader is iterated: after `iter(loader)` the order is already dealt, and epoch
1 replays epoch 0.

Bad:

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
for epoch in range(90):  # DDP301
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

Cannot see: whether an epoch number passed to `set_epoch` changes; a sampler class of your own
that reshuffles by itself is left alone.

References:

* `torch.utils.data.distributed.DistributedSampler`, the warning in its documentation
* pytorch/pytorch#31771, pytorch/pytorch#11324
* pytorch/examples#1076, rosinality/stylegan2-pytorch#319
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP301", level="error", fixes="safe")
def check(program: Program) -> Findings:
    for loop in program.epoch_loops:
        if loop.sampler.shuffles and not loop.is_told:
            told = loop.sampler_text
            where = f" where it is a `{loop.sampler_class}`" if loop.is_conditional else ""
            yield loop.finding(
                f"`{told}` is never told the epoch, so every epoch deals the order of the first "
                f"one: call `{told}.set_epoch({loop.counter or 'epoch'})` here{where}, "
                f"before `{loop.loader_text}` is iterated",
                related=loop.related,
                fix=loop.fix,
            )
