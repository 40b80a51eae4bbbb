"""How many batches make a step is said by the DeepSpeed plugin alone, which averages by itself."""

import torch
from accelerate import Accelerator
from torch import nn


def prepared(accelerator):
    model = nn.Linear(32, 10)
    return accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))


def by_expression(accelerator):
    plugin = accelerator.state.deepspeed_plugin
    every = plugin.deepspeed_config["gradient_accumulation_steps"] if plugin is not None else 1
    model, optimizer = prepared(accelerator)
    for step in range(1000):
        loss = model(torch.randn(32, 32, device=accelerator.device)).square().mean() / every
        accelerator.backward(loss)
        if step % every == 0:
            optimizer.step()
            optimizer.zero_grad()


def by_statement(accelerator):
    if accelerator.state.deepspeed_plugin is not None:
        every = accelerator.state.deepspeed_plugin.deepspeed_config["steps"]
    else:
        every = 1
    model, optimizer = prepared(accelerator)
    for step in range(1000):
        loss = model(torch.randn(32, 32, device=accelerator.device)).square().mean() / every
        accelerator.backward(loss)
        if step % every == 0:
            optimizer.step()
            optimizer.zero_grad()


def otherwise_several(accelerator):
    if accelerator.state.deepspeed_plugin is not None:
        every = accelerator.state.deepspeed_plugin.deepspeed_config["steps"]
    else:
        every = 8
    model, optimizer = prepared(accelerator)
    for step in range(1000):  # DDP504
        loss = model(torch.randn(32, 32, device=accelerator.device)).square().mean() / every
        accelerator.backward(loss)
        if step % every == 0:
            optimizer.step()
            optimizer.zero_grad()


if __name__ == "__main__":
    by_expression(Accelerator())
    by_statement(Accelerator())
    otherwise_several(Accelerator())
