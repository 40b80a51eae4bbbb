"""The script of one process: its options leave the wrapper out, and it makes no group."""

import json

import torch
from model import Model
from torch.utils.data import DataLoader, TensorDataset


def main():
    with open("one.json") as file:
        options = json.load(file)
    model = Model(options)
    data = TensorDataset(torch.randn(64, 8), torch.randint(3, (64,)))
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=2)
    for epoch in range(3):
        for x, y in loader:
            model.step(x, y)
        model.say(f"epoch {epoch}")
        model.save()


if __name__ == "__main__":
    main()
