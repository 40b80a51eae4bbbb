"""U-Net training with DDP and mixed precision.  torchrun --nproc-per-node 8 bad.py"""

import argparse
import os

import numpy as np
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Slices(Dataset):
    def __init__(self, path):
        arrays = np.load(path)
        self.images, self.masks = arrays["images"], arrays["masks"]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index]), torch.from_numpy(self.masks[index])


class UNet(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.down1 = nn.Conv2d(1, width, 3, padding=1)
        self.down2 = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.out = nn.Conv2d(2 * width, 2, 1)

    def forward(self, x):
        first = F.relu(self.down1(x))
        second = F.relu(self.down2(first))
        return self.out(torch.cat([first, F.relu(self.up(second))], dim=1))


def dice_loss(logits, masks):
    probabilities = logits.softmax(1)[:, 1]
    overlap = (probabilities * masks).sum()
    return 1 - 2 * overlap / (probabilities.sum() + masks.sum() + 1e-6)


def main(args):
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group(backend="nccl")

    dataset = Slices(args.data)
    sampler = DistributedSampler(dataset)
    loader = DataLoader(
        dataset, batch_size=args.batch_size, sampler=sampler, num_workers=4, pin_memory=True
    )
    model = DDP(UNet().cuda(), device_ids=[local_rank])
    optimizer = torch.optim.RMSprop(model.parameters(), lr=args.lr, momentum=0.9)
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp)

    for epoch in range(1, args.epochs + 1):
        sampler.set_epoch(epoch)
        model.train()
        for images, masks in loader:
            images = images.cuda(non_blocking=True)
            masks = masks.cuda(non_blocking=True)
            with torch.autocast("cuda", dtype=torch.float16, enabled=args.amp):
                logits = model(images)
                loss = F.cross_entropy(logits, masks) + dice_loss(logits, masks)

            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            nn.utils.clip_grad_norm_(model.parameters(), args.clip)  # DDP201
            scaler.step(optimizer)
            scaler.update()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: last loss {loss.item():.4f}")
            torch.save(model.module.state_dict(), f"unet_{epoch}.pth")

    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="slices.npz")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-5)
    parser.add_argument("--clip", type=float, default=1.0)
    parser.add_argument("--amp", action="store_true")
    main(parser.parse_args())
