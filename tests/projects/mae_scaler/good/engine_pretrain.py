"""An epoch of masked autoencoding."""

from contextlib import nullcontext

import torch

from util import misc


def train_one_epoch(model, loader, optimizer, device, epoch, loss_scaler, args):
    model.train()
    optimizer.zero_grad()
    recent = torch.zeros((), device=device)
    for step, patches in enumerate(loader):
        patches = patches.to(device, non_blocking=True)
        update = (step + 1) % args.accum_iter == 0
        with nullcontext() if update else model.no_sync():
            with torch.autocast("cuda", dtype=torch.float16):
                loss = model(patches, args.mask_ratio)
            loss_scaler(
                loss / args.accum_iter,
                optimizer,
                parameters=model.parameters(),
                update_grad=update,
            )
        if update:
            optimizer.zero_grad()
        recent += loss.detach()
        if (step + 1) % 100 == 0:
            mean = misc.all_reduce_mean(recent / 100).item()
            recent.zero_()
            if misc.is_main_process():
                print(f"epoch {epoch} [{step + 1}/{len(loader)}] loss {mean:.4f}")
