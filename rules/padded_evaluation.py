"""DistributedSampler repeats samples to make the shares even, and the metric counts them twice.

Every rank must take the same number of batches, so `DistributedSampler` fills up with samples
from the start of the dataset.  Measured with 101 samples on two ranks: 102 were counted and the
accuracy was off by 0.007.  The error is at most `padding / total`: nothing for 50,000 images on
8 ranks, up to 2.9 % for 101 on 8 and 17.5 % for 33 on 8.  With `shuffle=True` (the default)
random samples are repeated: the same ones each time or, where `set_epoch` is called, other ones
in each epoch, so that the number wobbles although the model stands still (+0.003, then -0.007).

Exact ways: give each rank every N-th sample without padding and sum integers; or gather the
predictions with their indices and cut them to `len(dataset)`; or `drop_last=True` plus the few
that remain on every rank; or `accelerator.gather_for_metrics`.  Sum counts, and do not average
averages: a mean of batch means was off by 0.024 on the same data.

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
sampler = DistributedSampler(dataset, shuffle=False)  # DDP305
correct = torch.zeros((), device=local_rank)
with torch.no_grad():
    for inputs, targets in DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4):
        correct += (model(inputs.cuda()).argmax(1) == targets.cuda()).sum()
dist.all_reduce(correct)
if dist.get_rank() == 0:
    print(f"accuracy {correct.item() / len(dataset):.4f}")
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
correct = torch.zeros((), device=local_rank)
with torch.no_grad():
    for inputs, targets in DataLoader(share, batch_size=32, num_workers=4):
        correct += (model(inputs.cuda()).argmax(1) == targets.cuda()).sum()
dist.all_reduce(correct)
if dist.get_rank() == 0:
    print(f"accuracy {correct.item() / len(dataset):.4f}")
dist.destroy_process_group()
```

With shares of uneven length, evaluate the plain module and not its DDP wrapper: a wrapper with
batch norm broadcasts its buffers in the first forward after training, and a rank without a batch
would be missed.

Cannot see: whether the length of the dataset divides by the number of ranks.  Then nothing is
padded.

References:

* pytorch/pytorch#25162, open since 2019
* pytorch/vision#4559, published numbers that were affected
* roboflow/rf-detr#1507, 21 images that became 22
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP305", level="warning")
def check(program: Program) -> Findings:
    for evaluation in program.metrics.padded:
        sampler = evaluation.sampler
        assert sampler is not None
        changing = ", and other ones in each epoch" if evaluation.repeats_others else ""
        yield sampler.finding(
            f"`{evaluation.sampler_name}` repeats samples of `{evaluation.dataset_text}` until "
            f"the shares are even, and `{evaluation.reduction_text}` counts them "
            f"twice{changing}: the result is off by up to (ranks - 1) / samples",
            related=evaluation.related_to_sampler,
        )
