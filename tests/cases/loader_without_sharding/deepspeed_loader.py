"""DeepSpeed makes the loader from the training data that it is given."""

import deepspeed
import torch
from torch import nn
from torch.utils.data import TensorDataset


def main():
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    model = nn.Linear(32, 10)
    config = {"train_micro_batch_size_per_gpu": 32, "zero_optimization": {"stage": 3}}
    engine, _, loader, _ = deepspeed.initialize(
        model=model,
        model_parameters=model.parameters(),
        training_data=dataset,
        config=config,
    )
    for epoch in range(3):
        for inputs, targets in loader:
            outputs = engine(inputs.to(engine.device))
            loss = nn.functional.cross_entropy(outputs, targets.to(engine.device))
            engine.backward(loss)
            engine.step()


if __name__ == "__main__":
    main()
