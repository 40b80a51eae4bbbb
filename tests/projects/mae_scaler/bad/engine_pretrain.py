"""An epoch of masked autoencoding."""

import math
import sys

import torch

from util import misc


def train_one_epoch(model, loader, optimizer, device, epoch, loss_scaler, args):
    model.train()
    optimizer.zero_grad()
    for step, patches in enumerate(loader):  # DDP504
        patches = patches.to(device, non_blocking=True)
        with torch.autocast("cuda", dtype=torch.float16):
            loss = model(patches, args.mask_ratio)

        value = loss.item()  # DDP101
        if not math.isfinite(value):
            print(f"loss is {value} on rank {args.rank}, stopping training")
            sys.exit(1)  # DDP502

        loss /= args.accum_iter
        update = (step + 1) % args.accum_iter == 0
        loss_scaler(loss, optimizer, parameters=model.parameters(), update_grad=update)
        if update:
            optimizer.zero_grad()
        torch.cuda.synchronize()  # DDP103

        mean = misc.all_reduce_mean(torch.tensor(value, device=device))
        if (step + 1) % 100 == 0 and misc.is_main_process():
            print(f"epoch {epoch} [{step + 1}/{len(loader)}] loss {mean.item():.4f}")
