"""Accelerate as a helper for mixed precision: nn.DataParallel drives all GPUs from one process, and
what is prepared is a dictionary, which comes back as it was."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(mixed_precision="fp16")


class Transparent(nn.DataParallel):
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)


def build():
    return {"encoder": nn.Linear(32, 16), "head": nn.Linear(16, 10)}


def main():
    models = build()
    for name in models:
        models[name] = Transparent(models[name].to(accelerator.device))
    parameters = [p for model in models.values() for p in model.parameters()]
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    data = TensorDataset(torch.randn(4096, 32))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
    models, optimizer, loader = accelerator.prepare(models, optimizer, loader)
    for epoch in range(10):
        for (batch,) in loader:
            loss = models["head"](models["encoder"](batch)).square().mean()
            optimizer.zero_grad()
            accelerator.backward(loss)
            optimizer.step()
        print("epoch", epoch)
        torch.save(models["encoder"].state_dict(), f"{epoch}.pth")


if __name__ == "__main__":
    main()
