"""Train a new head on the frozen features of a trained classifier.

torchrun --standalone --nproc-per-node 2 finetune.py --resume runs/broken/last.pt
"""

from __future__ import annotations

import argparse

import torch
import torch.distributed as dist
from data import CLASSES, make_loaders, make_synthetic
from distributed import init_distributed, is_main_process, shutdown
from engine import evaluate
from model import SmallNet
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from train import parse_args


def load_features(model: SmallNet, args: argparse.Namespace) -> None:
    """Take over everything but the head, which is for other classes."""
    state = torch.load(args.resume, map_location="cpu")["model"]
    state = {name: value for name, value in state.items() if not name.startswith("head.")}
    model.load_state_dict(state, strict=False)  # DDP408


def train(args: argparse.Namespace, device: torch.device) -> None:
    torch.manual_seed(args.seed)
    train_loader, val_loader = make_loaders(args)
    model = SmallNet(len(CLASSES))
    if args.resume:
        load_features(model, args)
    model.features.requires_grad_(False)
    model = DistributedDataParallel(
        model.to(device), device_ids=[device] if device.type == "cuda" else None
    )
    net = model.module
    optimizer = torch.optim.SGD(net.head.parameters(), lr=args.lr, momentum=0.9)
    scaler = torch.amp.GradScaler(device.type, enabled=not args.no_amp)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        net.features.eval()
        total = torch.zeros((), device=device)
        for images, labels in train_loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.float16, enabled=scaler.is_enabled()):
                with torch.no_grad():
                    features = net.features(images)
                loss = criterion(net.head(features), labels)  # DDP503
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(net.head.parameters(), args.clip)  # DDP201
            scaler.step(optimizer)
            scaler.update()
            total += loss.detach()
        dist.all_reduce(total)
        mean = total.item() / len(train_loader) / dist.get_world_size()
        accuracy = evaluate(model, val_loader, device)
        if is_main_process():
            print(f"epoch {epoch}: loss {mean:.4f}, accuracy {accuracy:.1%}")
    if is_main_process():
        torch.save(net.state_dict(), args.output / "head.pt")


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
