"""torchrun --nproc-per-node 4 train.py --clip-grad 1.0 --amp"""

import argparse
import os

import torch
import torch.distributed as dist
from timm import create_model
from timm.data import FastCollateMixup, create_dataset, create_loader
from timm.scheduler import CosineLRScheduler
from torch import nn
from torch.nn.parallel import DistributedDataParallel as NativeDDP

from loss_scaler import NativeScaler

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", default="imagenet")
parser.add_argument("--model", default="resnet50")
parser.add_argument("--epochs", type=int, default=300)
parser.add_argument("--clip-grad", type=float, default=None)
parser.add_argument("--amp", action="store_true")
parser.add_argument("--log-interval", type=int, default=50)


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, scheduler, loss_scaler):
    model.train()
    updates = epoch * len(loader)
    for index, (inputs, target) in enumerate(loader):
        with torch.autocast("cuda", dtype=torch.float16, enabled=args.amp):
            loss = loss_fn(model(inputs), target)
        optimizer.zero_grad()
        if loss_scaler is not None:
            loss_scaler(loss, optimizer, clip_grad=args.clip_grad, parameters=model.parameters())
        else:
            loss.backward()
            if args.clip_grad is not None:
                nn.utils.clip_grad_norm_(model.parameters(), args.clip_grad)
            optimizer.step()
        updates += 1
        scheduler.step_update(num_updates=updates)
        if index % args.log_interval == 0 and args.rank == 0:
            print(f"train {epoch} [{index}/{len(loader)}] loss {loss.item():.4f}")


def main():
    args = parser.parse_args()
    args.local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(args.local_rank)
    dist.init_process_group("nccl")
    args.rank = dist.get_rank()
    model = NativeDDP(create_model(args.model).cuda(), device_ids=[args.local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.4, momentum=0.9)
    scheduler = CosineLRScheduler(optimizer, t_initial=args.epochs, warmup_t=5)
    loss_scaler = NativeScaler() if args.amp else None
    loader = create_loader(
        create_dataset("", root=args.data_dir, split="train", is_training=True),
        input_size=(3, 224, 224),
        batch_size=256,
        is_training=True,
        num_workers=8,
        distributed=True,
        collate_fn=FastCollateMixup(mixup_alpha=0.2),
    )
    loss_fn = nn.CrossEntropyLoss().cuda()
    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        train_one_epoch(epoch, model, loader, optimizer, loss_fn, args, scheduler, loss_scaler)
        scheduler.step(epoch + 1)
        if args.rank == 0:
            torch.save(model.module.state_dict(), "last.pth")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
