"""python run.py images.pt"""

import sys

import torch
from lightning.pytorch import Trainer
from torch.utils.data import DataLoader, TensorDataset

from litmus.module import Adversarial


def main(path):
    dataset = TensorDataset(torch.load(path, map_location="cpu").flatten(1) * 2 - 1)
    loader = DataLoader(dataset, batch_size=256, shuffle=True, num_workers=4, drop_last=True)
    trainer = Trainer(accelerator="gpu", devices=-1, strategy="ddp", max_epochs=100)
    trainer.fit(Adversarial(), loader)


if __name__ == "__main__":
    main(sys.argv[1])
