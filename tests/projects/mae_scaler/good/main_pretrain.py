"""torchrun --nproc-per-node 8 main_pretrain.py --accum_iter 4"""

import argparse
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset, DistributedSampler

from engine_pretrain import train_one_epoch
from model import MaskedAutoencoder
from util import misc


class Patches(Dataset):
    """Images cut into patches beforehand: (images, 196, 768) bytes."""

    def __init__(self, path):
        self.values = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.values)

    def __getitem__(self, index):
        return torch.from_numpy(self.values[index] / np.float32(255))


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data_path", default="patches.npy")
    parser.add_argument("--output_dir", default="output")
    parser.add_argument("--epochs", type=int, default=400)
    parser.add_argument("--batch_size", type=int, default=64)
    parser.add_argument("--accum_iter", type=int, default=1)
    parser.add_argument("--mask_ratio", type=float, default=0.75)
    return parser.parse_args()


def main(args):
    misc.init_distributed_mode(args)
    device = torch.device("cuda")
    dataset = Patches(args.data_path)
    sampler = DistributedSampler(dataset, args.world_size, args.rank, shuffle=True)
    loader = DataLoader(
        dataset,
        sampler=sampler,
        batch_size=args.batch_size,
        num_workers=10,
        pin_memory=True,
        drop_last=True,
    )
    model = MaskedAutoencoder().to(device)
    model_without_ddp = model
    model = DistributedDataParallel(model, device_ids=[args.gpu])
    model_without_ddp = model.module
    optimizer = torch.optim.AdamW(model_without_ddp.parameters(), lr=1.5e-4, betas=(0.9, 0.95))
    loss_scaler = misc.NativeScalerWithGradNorm()
    Path(args.output_dir).mkdir(parents=True, exist_ok=True)
    for epoch in range(args.epochs):
        loader.sampler.set_epoch(epoch)
        train_one_epoch(model, loader, optimizer, device, epoch, loss_scaler, args)
        if epoch % 20 == 0 or epoch + 1 == args.epochs:
            misc.save_model(args, epoch, model_without_ddp, optimizer, loss_scaler)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(get_args())
