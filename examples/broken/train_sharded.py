"""The same training with FSDP instead of DDP, for models that do not fit on one device.

torchrun --standalone --nproc-per-node 2 train_sharded.py --output runs/broken-sharded
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from checkpoint import save_sharded
from data import CLASSES, make_loaders, make_synthetic
from distributed import init_distributed, is_main_process, shutdown
from engine import evaluate, train_one_epoch
from model import SmallNet
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from train import parse_args


def train(args: argparse.Namespace, device: torch.device) -> None:
    torch.manual_seed(args.seed)
    train_loader, val_loader = make_loaders(args)
    model = SmallNet(len(CLASSES)).to(device)
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for stage in model.features[:2]:
        fully_shard(stage, mesh=mesh)
    fully_shard(model, mesh=mesh)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scaler = torch.amp.GradScaler(device.type, enabled=not args.no_amp)

    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        loss = train_one_epoch(model, train_loader, optimizer, scaler, device, epoch, args)
        accuracy = evaluate(model, val_loader, device)
        if is_main_process():
            print(f"epoch {epoch}: loss {loss:.4f}, accuracy {accuracy:.1%}")
        save_sharded(args.output / f"epoch-{epoch}", model, optimizer)


def main() -> None:
    args = parse_args()
    device = init_distributed()
    if is_main_process():
        args.output.mkdir(parents=True, exist_ok=True)
        make_synthetic(args.data)
    dist.barrier()
    train(args, device)
    shutdown()


if __name__ == "__main__":
    main()
