"""DeepSpeed is given no training data, so it shards none."""

import deepspeed
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=2)  # DDP304
    model = nn.Linear(32, 10)
    config = {"train_micro_batch_size_per_gpu": 32, "zero_optimization": {"stage": 3}}
    engine, _, _, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=config
    )
    for epoch in range(3):
        for inputs, targets in loader:
            outputs = engine(inputs.to(engine.device))
            loss = nn.functional.cross_entropy(outputs, targets.to(engine.device))
            engine.backward(loss)
            engine.step()


if __name__ == "__main__":
    main()
