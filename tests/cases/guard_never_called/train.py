"""The guard comes from another file, and from an object whose flag is a property."""

import torch
from accelerate import Accelerator
from torch import nn

import utils


def main():
    accelerator = Accelerator()
    model = accelerator.prepare(nn.Linear(32, 10))
    weights = accelerator.unwrap_model(model).state_dict()
    if utils.is_main_process:  # DDP406
        torch.save(weights, "first.pt")
    if accelerator.is_main_process:
        torch.save(weights, "second.pt")
    if utils.is_main_process() and utils.get_rank() == 0:
        torch.save(weights, "third.pt")


if __name__ == "__main__":
    main()
