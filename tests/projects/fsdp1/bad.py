"""T5 with FSDP, saved the way that one saves a DDP model."""

import functools
import os

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecision
from torch.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from transformers import T5ForConditionalGeneration
from transformers.models.t5.modeling_t5 import T5Block


def save_model(model, path):
    if dist.get_rank() == 0:
        torch.save(model.state_dict(), path)  # DDP407


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
    t5 = T5ForConditionalGeneration.from_pretrained("t5-3b")
    optimizer = torch.optim.AdamW(t5.parameters(), lr=2e-5)  # DDP513
    model = FullyShardedDataParallel(
        t5,
        auto_wrap_policy=wrap,
        mixed_precision=MixedPrecision(param_dtype=half, reduce_dtype=half, buffer_dtype=half),
        device_id=local_rank,
    )
    scaler = ShardedGradScaler()
    for epoch in range(3):  # DDP301
        total = 0.0
        for source, summary in loader:
            source = source.to(local_rank, non_blocking=True)
            summary = summary.to(local_rank, non_blocking=True)
            loss = model(input_ids=source, labels=summary).loss
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            model.clip_grad_norm_(1.0)  # DDP201
            scaler.step(optimizer)
            scaler.update()
            total += loss.item()  # DDP101
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {total / len(loader):.4f}")
        save_model(model, f"t5-{epoch}.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
