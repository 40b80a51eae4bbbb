"""A metric of torchmetrics adds itself in compute()."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda().eval()
val_set = TensorDataset(torch.randn(101, 32), torch.randint(10, (101,)))
share = Subset(val_set, range(dist.get_rank(), len(val_set), dist.get_world_size()))
loader = DataLoader(share, batch_size=32, num_workers=4)
metric = MulticlassAccuracy(num_classes=10).to(local_rank)
with torch.no_grad():
    for inputs, targets in loader:
        metric.update(model(inputs.cuda()), targets.cuda())
accuracy = metric.compute()
if dist.get_rank() == 0:
    print(f"accuracy {accuracy.item():.4f}")
dist.destroy_process_group()
