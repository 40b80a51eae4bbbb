"""FSDP and DCP: what all ranks must call, and what one rank may do with it."""

import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FullStateDictConfig, StateDictType
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP


def save_on_one(model, path):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)  # DDP407


def full_state(model):
    policy = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FSDP.state_dict_type(model, StateDictType.FULL_STATE_DICT, policy):
        return model.state_dict()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    model = FSDP(nn.Linear(32, 10).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(1000):
        loss = model(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    rank = dist.get_rank()
    if rank == 0:
        weights = model.state_dict()  # DDP407
        torch.save(weights, "first.pt")
        dcp.save({"model": weights}, checkpoint_id="second")  # DDP407
        state = FSDP.optim_state_dict(model, optimizer)  # DDP407
        torch.save(state, "third.pt")
    save_on_one(model, "fifth.pt")

    weights = full_state(model)
    if rank == 0:
        torch.save(weights, "sixth.pt")
    dcp.save({"model": model.state_dict()}, checkpoint_id="seventh")
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=options)
    if rank == 0:
        torch.save(weights, "eighth.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
