"""T5 with FSDP: all ranks take the full state dict, one writes it."""

import functools
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import (
    FullStateDictConfig,
    FullyShardedDataParallel,
    MixedPrecision,
    StateDictType,
)
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from transformers import T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5Block


def save_model(model, path):
    policy = FullStateDictConfig(offload_to_cpu=True, rank0_only=True)
    with FullyShardedDataParallel.state_dict_type(model, StateDictType.FULL_STATE_DICT, policy):
        weights = model.state_dict()
    if dist.get_rank() == 0:
        torch.save(weights, path)


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    articles = torch.load("articles.pt", map_location="cpu")
    dataset = TensorDataset(articles["source"], articles["summary"])
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=4, sampler=sampler, num_workers=2, pin_memory=True)

    wrap = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={T5Block})
    half = torch.float16
    model = FullyShardedDataParallel(
        T5ForConditionalGeneration.from_pretrained("t5-3b"),
        auto_wrap_policy=wrap,
        mixed_precision=MixedPrecision(param_dtype=half, reduce_dtype=half, buffer_dtype=half),
        device_id=local_rank,
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    scaler = ShardedGradScaler()
    for epoch in range(3):
        sampler.set_epoch(epoch)
        totals = torch.zeros(2, device=local_rank)
        for source, summary in loader:
            source = source.to(local_rank, non_blocking=True)
            summary = summary.to(local_rank, non_blocking=True)
            loss = model(input_ids=source, labels=summary).loss
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            model.clip_grad_norm_(1.0)
            scaler.step(optimizer)
            scaler.update()
            totals += torch.stack([loss.detach(), torch.ones_like(loss)])
        dist.all_reduce(totals)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {(totals[0] / totals[1]).item():.4f}")
        save_model(model, f"t5-{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
