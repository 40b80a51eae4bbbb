"""Each rank evaluates its share, and rank 0 speaks for all."""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = torch.zeros((), device="cuda")
    seen = 0
    for inputs, targets in loader:  # DDP512
        correct += (model(inputs.cuda()).argmax(1) == targets.cuda()).sum()
        seen += len(targets)
    model.train()
    return correct.item() / seen


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = DistributedDataParallel(nn.Linear(32, 10).cuda(), device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)
    val_set = TensorDataset(torch.randn(101, 32), torch.randint(10, (101,)))
    val_sampler = DistributedSampler(val_set, shuffle=False)
    val_loader = DataLoader(val_set, batch_size=32, sampler=val_sampler, num_workers=4)
    best = 0.0
    for epoch in range(90):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            loss = nn.functional.cross_entropy(model(inputs.cuda()), targets.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        accuracy = evaluate(model.module, val_loader)
        if dist.get_rank() == 0 and accuracy > best:
            best = accuracy
            torch.save(model.module.state_dict(), "best.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
