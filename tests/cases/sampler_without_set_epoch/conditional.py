"""The sampler is there only on several GPUs; the epoch loop does not even look at the epoch."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from tqdm import tqdm, trange

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=90)
args = parser.parse_args()
local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
sampler = DistributedSampler(dataset) if dist.get_world_size() > 1 else None
shuffle = sampler is None
loader = DataLoader(dataset, batch_size=32, shuffle=shuffle, sampler=sampler, num_workers=4)
for _ in trange(args.epochs, disable=dist.get_rank() != 0):  # DDP301
    for inputs, targets in tqdm(loader, disable=dist.get_rank() != 0):
        loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
dist.destroy_process_group()
