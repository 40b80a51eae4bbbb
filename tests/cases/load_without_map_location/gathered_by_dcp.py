"""The file is put together by `dcp_to_torch_save`, which allocates on the CPU."""

import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.nn.parallel import DistributedDataParallel

NAME = "whole.pth"


def gather(folder):
    target = Path(folder) / "whole"
    dcp_to_torch_save(folder, str(target / NAME))
    return target


def restore(folder):
    model = nn.Linear(64, 8)
    state = torch.load(Path(folder) / NAME, weights_only=True)
    model.load_state_dict(state["model"])
    return model.cuda()


def restore_another(model, folder):
    model.load_state_dict(torch.load(os.path.join(folder, "other.pth")))  # DDP404


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    if dist.get_rank() == 0:
        gather("run/10")
    dist.barrier()
    model = DistributedDataParallel(restore("run/10/whole"), device_ids=[local_rank])
    restore_another(model.module, "run")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
