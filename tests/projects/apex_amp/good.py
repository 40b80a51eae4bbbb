"""ImageNet features with apex: the loss scale is off before the master gradients are clipped."""

import argparse

import torch
import torch.distributed as dist
from apex import amp
from apex.optimizers import FusedSGD
from apex.parallel import DistributedDataParallel
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--local_rank", type=int, default=0)
    parser.add_argument("--opt-level", default="O2")
    parser.add_argument("--epochs", type=int, default=90)
    args = parser.parse_args()

    torch.cuda.set_device(args.local_rank)
    dist.init_process_group("nccl", init_method="env://")
    features = torch.load("features.pt", map_location="cpu")
    dataset = TensorDataset(features["values"], features["labels"])
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=256, sampler=sampler, num_workers=2)

    model = nn.Sequential(nn.Linear(2048, 4096), nn.ReLU(), nn.Linear(4096, 1000)).cuda()
    optimizer = FusedSGD(model.parameters(), lr=0.1, momentum=0.9)
    model, optimizer = amp.initialize(model, optimizer, opt_level=args.opt_level)
    model = DistributedDataParallel(model)
    criterion = nn.CrossEntropyLoss().cuda()

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for step, (values, labels) in enumerate(loader):
            loss = criterion(model(values.cuda()), labels.cuda())
            optimizer.zero_grad()
            with amp.scale_loss(loss, optimizer) as scaled_loss:
                scaled_loss.backward()
            nn.utils.clip_grad_norm_(amp.master_params(optimizer), 1.0)
            optimizer.step()
            if step % 100 == 0 and dist.get_rank() == 0:
                print(f"epoch {epoch} [{step}/{len(loader)}] {loss.item():.4f}")
        if dist.get_rank() == 0:
            state = {
                "model": model.module.state_dict(),
                "optimizer": optimizer.state_dict(),
                "amp": amp.state_dict(),
            }
            torch.save(state, "apex.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
