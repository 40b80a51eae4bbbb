"""Each rank writes the predictions of its share; another program puts them together."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = nn.Linear(32, 10).cuda().eval()
val_set = TensorDataset(torch.randn(101, 32), torch.randint(10, (101,)))
share = Subset(val_set, range(dist.get_rank(), len(val_set), dist.get_world_size()))
loader = DataLoader(share, batch_size=32, num_workers=4)
predictions = []
with torch.no_grad():
    for inputs, _ in loader:
        predictions.append(model(inputs.cuda()).argmax(1))
torch.save(torch.cat(predictions), f"predictions_{dist.get_rank()}.pt")
dist.destroy_process_group()
