"""Sharded: all ranks; otherwise the main process. The condition says so."""

import torch
from accelerate import Accelerator, DistributedType
from torch import nn


def main():
    accelerator = Accelerator()
    model = nn.Linear(32, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer = accelerator.prepare(model, optimizer)
    for step in range(1000):
        loss = model(torch.randn(32, 32, device=accelerator.device)).square().mean()
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
        deepspeed = accelerator.distributed_type == DistributedType.DEEPSPEED
        if deepspeed or accelerator.is_main_process:
            if step % 100 == 0:
                accelerator.save_state(f"checkpoint-{step}")


if __name__ == "__main__":
    main()
