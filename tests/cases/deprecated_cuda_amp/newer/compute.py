"""Has all of the new names."""

import torch


def compute(model, images):
    scaler = torch.cuda.amp.GradScaler()  # DDP211
    with torch.cuda.amp.autocast():  # DDP211
        return scaler.scale(model(images))
