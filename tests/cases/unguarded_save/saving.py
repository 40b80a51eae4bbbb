"""Saves for several programs; whether they are guarded is up to the callers."""

import shutil

import torch


def save_checkpoint(state, is_best, filename="checkpoint.pt"):
    torch.save(state, filename)  # DDP401
    if is_best:
        shutil.copyfile(filename, "best.pt")


def save_guarded(state, filename):
    torch.save(state, filename)


def is_primary(args):
    return args.rank == 0
