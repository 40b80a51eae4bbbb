"""A sharded evaluation reports the share of one rank as if it were the whole.

With a `DistributedSampler` each rank evaluates its part of the data.  If the counts are not
summed over the ranks, the number that rank 0 prints, logs or compares with the best one so far
is measured on a fraction of the set: on 1/8 of it with eight ranks, with an error bar almost
three times as wide.  Where each rank decides for itself (best checkpoint, early stopping), the
ranks decide differently, and then they part: some go on and wait for those that stopped.

Sum integers with `dist.all_reduce` and divide once.

Bad:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda().eval()
dataset = TensorDataset(torch.randn(101, 32), torch.randint(10, (101,)))
sampler = DistributedSampler(dataset, shuffle=False)
loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
correct = torch.zeros((), device=local_rank)
with torch.no_grad():
    for inputs, targets in loader:  # DDP512
        correct += (model(inputs.cuda()).argmax(1) == targets.cuda()).sum()
if dist.get_rank() == 0:
    print(f"accuracy {correct.item() / len(sampler):.4f}")
dist.destroy_process_group()
```

Good:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda().eval()
dataset = TensorDataset(torch.randn(101, 32), torch.randint(10, (101,)))
share = Subset(dataset, range(dist.get_rank(), len(dataset), dist.get_world_size()))
loader = DataLoader(share, batch_size=32, num_workers=4)
correct = torch.zeros((), device=local_rank)
with torch.no_grad():
    for inputs, targets in loader:
        correct += (model(inputs.cuda()).argmax(1) == targets.cuda()).sum()
dist.all_reduce(correct)
if dist.get_rank() == 0:
    print(f"accuracy {correct.item() / len(dataset):.4f}")
dist.destroy_process_group()
```

Cannot see: reductions inside a metric of a library that it does not know.

References:

* "ImageNet training in PyTorch", pytorch/examples, which reduces its meters
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP512", level="warning")
def check(program: Program) -> Findings:
    for evaluation in program.metrics.of_one_rank:
        yield evaluation.finding(
            f"each rank goes through its share of `{evaluation.dataset_text}` only, and "
            f"`{evaluation.value_text}` is never summed over the ranks: what is reported is one "
            "rank's part",
            related=evaluation.related,
        )
