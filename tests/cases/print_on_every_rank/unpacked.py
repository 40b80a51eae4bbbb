"""Only the first rank gets numbers from the evaluation; the others get what is not printed."""

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(64, 8))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def score():
    if dist.get_rank() == 0:
        return 0.5, 0.6
    return -1, 0.6


for epoch in range(10):
    loss = model(torch.randn(32, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    valid, test = score()
    if valid >= 0:
        print("score", valid, test)
    if test >= 0:
        print("score", test)  # DDP509
dist.destroy_process_group()
