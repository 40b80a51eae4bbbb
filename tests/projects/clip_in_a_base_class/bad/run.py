"""Denoise signals; --half trains in half precision."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from trainer import MixedPrecisionTrainer, Trainer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("signals")
    parser.add_argument("--half", action="store_true")
    args = parser.parse_args()
    clean = torch.load(args.signals)
    noisy = clean + 0.1 * torch.randn_like(clean)
    loader = DataLoader(TensorDataset(noisy, clean), batch_size=256, shuffle=True, num_workers=2)
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512)).cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    kind = MixedPrecisionTrainer if args.half else Trainer
    kind(model, optimizer, max_norm=1.0).fit(loader, epochs=30)
    torch.save(model.state_dict(), "denoiser.pt")


if __name__ == "__main__":
    main()
