"""Every rank evaluates everything, so there is nothing to add."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda().eval()
val_set = TensorDataset(torch.randn(101, 32), torch.randint(10, (101,)))
loader = DataLoader(val_set, batch_size=32, num_workers=4)
correct = torch.zeros((), device=local_rank)
with torch.no_grad():
    for inputs, targets in loader:
        correct += (model(inputs.cuda()).argmax(1) == targets.cuda()).sum()
if dist.get_rank() == 0:
    print(f"accuracy {correct.item() / len(val_set):.4f}")
dist.destroy_process_group()
