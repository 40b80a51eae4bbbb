"""Train a new head on the frozen features of a trained classifier.

torchrun --standalone --nproc-per-node 2 finetune.py --resume runs/mended/last.pt
"""

from __future__ import annotations

import argparse

import torch
from checkpoint import save_weights
from data import CLASSES, make_loaders, to_input
from distributed import init_distributed, is_main_process, shutdown
from engine import evaluate
from meters import AverageMeter
from model import SmallNet
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from train import parse_args, prepare_data


def load_features(model: SmallNet, args: argparse.Namespace) -> None:
    """Take over everything but the head, which is for other classes."""
    state = torch.load(args.resume, map_location="cpu")["model"]
    head = model.head.state_dict(prefix="head.")
    model.load_state_dict(state | head)


def train(args: argparse.Namespace, device: torch.device) -> None:
    torch.manual_seed(args.seed)
    train_loader, val_loader = make_loaders(args)
    model = SmallNet(len(CLASSES))
    if args.resume:
        load_features(model, args)
    model.features.requires_grad_(False)
    features, head = model.features, model.head
    model = DistributedDataParallel(
        model.to(device), device_ids=[device] if device.type == "cuda" else None
    )
    optimizer = torch.optim.SGD(head.parameters(), lr=args.lr, momentum=0.9)
    scaler = torch.amp.GradScaler(device.type, enabled=not args.no_amp)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        train_loader.sampler.set_epoch(epoch)
        features.eval()  # the running statistics are frozen too
        losses = AverageMeter(device)
        for images, labels in train_loader:
            images = to_input(images, device, train=True)
            labels = labels.to(device, non_blocking=True)
            with torch.autocast(device.type, dtype=torch.float16, enabled=scaler.is_enabled()):
                loss = criterion(model(images), labels)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            nn.utils.clip_grad_norm_(head.parameters(), args.clip)
            scaler.step(optimizer)
            scaler.update()
            losses.update(loss, len(labels))
        mean = losses.compute()
        accuracy = evaluate(model, val_loader, device)
        if is_main_process():
            print(f"epoch {epoch}: loss {mean:.4f}, accuracy {accuracy:.1%}")
    save_weights(args.output / "head.pt", model)


def main() -> None:
    args = parse_args()
    device = init_distributed()
    prepare_data(args)
    train(args, device)
    shutdown()


if __name__ == "__main__":
    main()
