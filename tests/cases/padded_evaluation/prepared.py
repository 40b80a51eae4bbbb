"""Accelerate cuts off its own padding."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator()
    val_set = TensorDataset(torch.randn(101, 32), torch.randint(10, (101,)))
    loader = DataLoader(val_set, batch_size=32, num_workers=4)
    model, loader = accelerator.prepare(nn.Linear(32, 10), loader)
    model.eval()
    hits = []
    with torch.no_grad():
        for inputs, targets in loader:
            pair = accelerator.gather_for_metrics((model(inputs).argmax(1), targets))
            hits.append(pair[0] == pair[1])
    accelerator.print(f"accuracy {torch.cat(hits).float().mean().item():.4f}")


if __name__ == "__main__":
    main()
