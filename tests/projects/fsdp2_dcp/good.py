"""fully_shard, accumulation and distributed checkpoints that every rank writes and reads."""

import os

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_state_dict,
)
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUMULATE = 4


def build(words, device):
    layers = [nn.TransformerEncoderLayer(1024, 16, batch_first=True) for _ in range(12)]
    model = nn.Sequential(nn.Embedding(words, 1024), *layers, nn.Linear(1024, words)).to(device)
    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model[1:-1]:
        fully_shard(layer, mesh=mesh, mp_policy=policy)
    return fully_shard(model, mesh=mesh, mp_policy=policy)


def save(model, optimizer, step):
    weights, moments = get_state_dict(model, optimizer)
    dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=f"step-{step}")


def resume(model, optimizer, step):
    weights, moments = get_state_dict(model, optimizer)
    dcp.load({"model": weights, "optimizer": moments}, checkpoint_id=f"step-{step}")
    set_state_dict(model, optimizer, model_state_dict=weights, optim_state_dict=moments)


def export(model, path):
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    weights = get_model_state_dict(model, options=options)
    if dist.get_rank() == 0:
        torch.save(weights, path)


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    dataset = TensorDataset(torch.load("tokens.pt", map_location="cpu"))
    sampler = DistributedSampler(dataset)
    loader = DataLoader(dataset, batch_size=2, sampler=sampler, num_workers=2)
    model = build(32_000, local_rank)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    if "RESUME" in os.environ:
        resume(model, optimizer, int(os.environ["RESUME"]))
    step = 0
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for number, (tokens,) in enumerate(loader):
            last = (number + 1) % ACCUMULATE == 0
            model.set_requires_gradient_sync(last)
            tokens = tokens.to(local_rank)
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1).float(), tokens[:, 1:].flatten())
            (loss / ACCUMULATE).backward()
            if last:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                optimizer.zero_grad()
                step += 1
                if step % 1000 == 0:
                    save(model, optimizer, step)
    export(model, "weights.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
