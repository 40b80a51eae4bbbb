"""DeepSpeed knows the window and averages at its end."""

import deepspeed
import torch
from torch import nn

model = nn.Linear(32, 10)
config = {"train_micro_batch_size_per_gpu": 32, "gradient_accumulation_steps": 4}
engine, _, _, _ = deepspeed.initialize(
    model=model, model_parameters=model.parameters(), config=config
)
for _ in range(1000):
    loss = engine(torch.randn(32, 32, device=engine.device)).square().mean()
    engine.backward(loss)
    engine.step()
