"""Language model steps; the time of a step is the mean over those between two lines."""

import os
import time

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x, mask):
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class Decoder(nn.Module):
    def __init__(self, words=50_304, length=512, width=384, heads=6, depth=6):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(depth))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        length = tokens.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(length, device=tokens.device)
        x = self.words(tokens) + self.places(torch.arange(length, device=tokens.device))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)


def get_batch(data, rank, device, batch=12, length=512):
    generator = np.random.default_rng((rank, time.time_ns()))
    starts = generator.integers(len(data) - length, size=batch)
    tokens = np.stack([data[start : start + length + 1] for start in starts]).astype(np.int64)
    return torch.from_numpy(tokens).pin_memory().to(device, non_blocking=True)


def main(steps=100_000):
    rank, local_rank = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    data = np.memmap("train.bin", dtype=np.uint16, mode="r")
    model = DDP(Decoder().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, betas=(0.9, 0.95))
    began = time.time()
    for step in range(steps):
        tokens = get_batch(data, rank, local_rank)
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = model(tokens[:, :-1])
            loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0 and rank == 0:
            seconds = (time.time() - began) / 100
            print(f"step {step}: loss {loss.item():.4f}, {seconds:.3f} s")
            began = time.time()
        if step % 5000 == 0 and rank == 0:
            torch.save(model.module.state_dict(), "decoder.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
