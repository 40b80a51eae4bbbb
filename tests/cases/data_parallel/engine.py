"""Without ranks the model is wrapped for several GPUs, and an engine trains the wrapper."""

import argparse

import deepspeed
import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--local_rank", type=int, default=-1)
args = parser.parse_args()
model = nn.Linear(64, 8).cuda()
if args.local_rank == -1 and torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)  # DDP510
model, *_ = deepspeed.initialize(args=args, model=model, model_parameters=model.parameters())
for _ in range(1000):
    loss = model(torch.randn(256, 64, device=model.device)).square().mean()
    model.backward(loss)
    model.step()
