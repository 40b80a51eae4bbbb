"""Train a diffusion prior with Accelerate and DeepSpeed or FSDP; one process saves."""

import os

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Prior(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width + 1, 2048), nn.SiLU(), nn.Linear(2048, width))

    def forward(self, noisy, time):
        return self.net(torch.cat([noisy, time[:, None]], dim=1))


def main(steps=50_000, output="prior"):
    accelerator = Accelerator(mixed_precision="bf16")
    dataset = TensorDataset(torch.load("embeddings.pt", map_location="cpu"))
    loader = DataLoader(dataset, batch_size=512, shuffle=True, num_workers=4)
    model = Prior()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)

    step = 0
    while step < steps:
        for (clean,) in loader:
            time = torch.rand(len(clean), device=clean.device)
            noise = torch.randn_like(clean)
            noisy = clean * (1 - time[:, None]) + noise * time[:, None]
            loss = F.mse_loss(model(noisy, time), noise - clean)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            step += 1
            if accelerator.is_main_process and step % 1000 == 0:
                path = os.path.join(output, f"checkpoint-{step}")
                accelerator.save_state(path)  # DDP407
    accelerator.end_training()


if __name__ == "__main__":
    main()
