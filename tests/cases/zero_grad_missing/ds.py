"""An entry point of its own: DeepSpeed's engine clears in its `step`."""

import deepspeed
import torch
from torch import nn
from torch.utils.data import TensorDataset


def main():
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    model = nn.Linear(32, 10)
    engine, optimizer, loader, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), training_data=data, config="ds.json"
    )
    for _ in range(3):
        for images, labels in loader:
            images = images.to(engine.device)
            labels = labels.to(engine.device)
            loss = nn.functional.cross_entropy(engine(images), labels)
            engine.backward(loss)
            engine.step()


if __name__ == "__main__":
    main()
