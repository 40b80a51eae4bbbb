"""Each rank prints the share that it works on: no other rank prints those lines."""

import torch
from accelerate import Accelerator, PartialState
from torch import nn

accelerator = Accelerator()
model = nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)


def sample(prompt):
    print(f"encoding {prompt}")
    return len(prompt)


for step in range(1000):
    loss = model(torch.randn(4, 8, device=accelerator.device)).square().mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    if step % 100 == 0 and accelerator.num_processes <= 1:
        for prompt in ["a cat", "a dog"]:
            sample(prompt)
    if step % 100 == 0:
        with PartialState().split_between_processes(["a cat", "a dog"]) as mine:
            for prompt in mine:
                sample(prompt)
        print("sampled")  # DDP509
