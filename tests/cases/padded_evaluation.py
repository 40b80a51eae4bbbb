"""An evaluation over padded shares, in functions, with the counts summed by a helper."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def reduce_sum(value):
    value = value.clone()
    dist.all_reduce(value, op=dist.ReduceOp.SUM)
    return value


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    correct = torch.zeros((), device=device)
    seen = torch.zeros((), device=device)
    for inputs, targets in loader:
        targets = targets.to(device)
        correct += (model(inputs.to(device)).argmax(1) == targets).sum()
        seen += len(targets)
    return (reduce_sum(correct) / reduce_sum(seen)).item()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = nn.Linear(32, 10).cuda()
    val_set = TensorDataset(torch.randn(101, 32), torch.randint(10, (101,)))
    val_sampler = DistributedSampler(val_set)  # DDP305
    val_loader = DataLoader(val_set, batch_size=32, sampler=val_sampler, num_workers=4)
    accuracy = evaluate(model, val_loader, local_rank)
    if dist.get_rank() == 0:
        print(f"accuracy {accuracy:.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
