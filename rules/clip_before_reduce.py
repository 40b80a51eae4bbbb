"""Gradients are clipped on each rank before a hand-written all-reduce averages them.

Without DDP a backward leaves each rank the gradient of its own share of the batch. Clipped there,
each share is scaled by a factor of its own: a rank with long gradients counts for less, and the
average points elsewhere than the gradient of the whole batch. It is never longer than the limit
but often shorter, since what the ranks agree on is only a part of each share. Measured on two
ranks, one with inputs ten times as large as the other's: the first steps use 0.68 to 0.77 of the
length that was meant, in directions whose cosine with the right one is 0.72 to 0.82.

Average first, then clip: after the all-reduce all ranks hold the same gradient and cut it by the
same factor. DDP averages within `backward`, so under DDP a clip after it is right.

Bad:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=4)
torch.manual_seed(0)
model = nn.Linear(32, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda()).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # DDP213
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        optimizer.step()
dist.destroy_process_group()
```

Good:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=4)
torch.manual_seed(0)
model = nn.Linear(32, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    sampler.set_epoch(epoch)
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda()).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
dist.destroy_process_group()
```

Cannot see: sums within a group of some of the ranks, and gradients that a hook sums during the
backward.

References:

* `torch.nn.utils.clip_grad_norm_` and `torch.distributed.all_reduce` in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP213", level="error")
def check(program: Program) -> Findings:
    for clip in program.rank_clips:
        yield clip.finding(
            f"`{clip.name}` cuts this rank's gradients by a factor of its own, and "
            f"`{clip.summing_text}` sums them only then: the average is not the clipped gradient "
            "of the batch; clip after it",
            related=clip.chain,
        )
