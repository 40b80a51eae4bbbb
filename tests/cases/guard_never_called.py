"""Guards that are functions, tested with and without being called."""

import os

import torch
import torch.distributed as dist
from torch import nn


def is_main_process():
    return not dist.is_initialized() or dist.get_rank() == 0


class Context:
    def is_master(self):
        return dist.get_rank() == 0

    @property
    def is_first(self):
        return dist.get_rank() == 0


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    context = Context()
    model = nn.Linear(32, 10).cuda()
    if is_main_process:  # DDP406
        torch.save(model.state_dict(), "first.pt")
    if not is_main_process:  # DDP406
        print("the other ranks wait")
    if model.training and is_main_process:  # DDP406
        torch.save(model.state_dict(), "second.pt")
    verbose = 1 if is_main_process else 0  # DDP406
    if context.is_master:  # DDP406
        torch.save(model.state_dict(), "third.pt")
    if is_main_process():
        torch.save(model.state_dict(), "fourth.pt")
    if context.is_master() or context.is_first:
        torch.save(model.state_dict(), "fifth.pt")
    main_process = is_main_process()
    if main_process:
        torch.save(model.state_dict(), "sixth.pt")
    callback = is_main_process if verbose else None
    if callback is not None and callback():
        torch.save(model.state_dict(), "seventh.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
