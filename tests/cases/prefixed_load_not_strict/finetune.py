"""Reads them, leaves out the head, and notices nothing."""

import argparse

import torch
from torch import nn


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--resume", required=True)
    args = parser.parse_args()
    weights = torch.load(args.resume, map_location="cpu")["backbone"]
    weights = {name: value for name, value in weights.items() if not name.startswith("head.")}
    model = nn.Linear(32, 5)
    model.load_state_dict(weights, strict=False)  # DDP408
    model = model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
