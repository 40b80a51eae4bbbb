"""Train a small image classifier on all processes that torchrun starts.

    torchrun --standalone --nproc-per-node 2 train.py --output runs/broken

Without ``--data`` it makes a small synthetic data set below the output folder.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import torch
import torch.distributed as dist
from checkpoint import load_checkpoint, save_best, save_checkpoint
from data import CLASSES, make_loaders, make_synthetic
from distributed import init_distributed, is_main_process, shutdown
from engine import evaluate, predict, train_one_epoch
from model import SmallNet
from torch.nn.parallel import DistributedDataParallel


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, default=Path("runs/broken"))
    parser.add_argument("--data", type=Path, help="a folder with train/ and val/")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=8, help="per process")
    parser.add_argument("--accumulate", type=int, default=1, help="micro-batches per step")
    parser.add_argument("--lr", type=float, default=0.05)
    parser.add_argument("--clip", type=float, default=1.0, help="largest gradient norm")
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--log-every", type=int, default=4)
    parser.add_argument("--no-amp", action="store_true")
    parser.add_argument("--resume", type=Path, help="a checkpoint to go on from")
    parser.add_argument("--predictions", action="store_true", help="write predictions.json")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.data = args.data or args.output / "data"
    return args


def train(args: argparse.Namespace, device: torch.device) -> None:
    random.seed(args.seed)
    torch.manual_seed(args.seed)
    train_loader, val_loader = make_loaders(args)
    model = SmallNet(len(CLASSES)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    scaler = torch.amp.GradScaler(device.type, enabled=not args.no_amp)
    start_epoch = 0
    if args.resume:
        start_epoch = load_checkpoint(args.resume, model, optimizer, scheduler, scaler)
    model = DistributedDataParallel(model, device_ids=[device] if device.type == "cuda" else None)

    best = 0.0
    for epoch in range(start_epoch, args.epochs):  # DDP301
        loss = train_one_epoch(model, train_loader, optimizer, scaler, device, epoch, args)
        accuracy = evaluate(model, val_loader, device)
        scheduler.step()
        if is_main_process:  # DDP406
            with open(args.output / "log.jsonl", "a") as log:
                log.write(json.dumps({"epoch": epoch, "loss": loss, "accuracy": accuracy}) + "\n")
        save_checkpoint(args.output / "last.pt", model, optimizer, scheduler, scaler, epoch)
        if accuracy > best:
            best = accuracy
            save_best(args.output / "best.pt", model)

    if args.predictions:
        mine = predict(model, val_loader, device)
        if is_main_process():
            shards = [None] * dist.get_world_size()
            dist.gather_object(mine, shards)  # DDP501
            classes = [CLASSES[number] for turn in zip(*shards, strict=True) for number in turn]
            (args.output / "predictions.json").write_text(json.dumps(classes))


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
