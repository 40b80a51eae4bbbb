"""torchrun --nproc-per-node 4 train.py config.json"""

import json
import sys

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from speech import parallel
from speech.data import build_loader
from speech.model import Spotter


def main(path):
    with open(path, encoding="utf-8") as file:
        config = json.load(file)
    rank, device = parallel.start()
    loader = build_loader(config, "train")
    model = Spotter(config["keywords"]).to(device)
    model = DistributedDataParallel(model, device_ids=[device.index])
    optimizer = torch.optim.AdamW(model.parameters(), lr=config["lr"])
    for epoch in range(config["epochs"]):
        for spectrograms, keywords in loader:
            loss = nn.functional.cross_entropy(model(spectrograms.to(device)), keywords.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            torch.save(model.module.state_dict(), config["checkpoint"])
    parallel.stop()


if __name__ == "__main__":
    main(sys.argv[1])
