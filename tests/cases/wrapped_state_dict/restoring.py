"""Loads into whatever it is handed, by keyword."""

import os

import torch


def restore(path, **objects):
    if not os.path.isfile(path):
        return
    checkpoint = torch.load(path, map_location="cpu")
    for name, target in objects.items():
        if name in checkpoint and target is not None:
            target.load_state_dict(checkpoint[name])
