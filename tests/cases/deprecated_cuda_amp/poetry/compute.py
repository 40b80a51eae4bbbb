"""Poetry's way to say 1.8."""

import torch


def compute(model, images):
    with torch.cuda.amp.autocast():
        return model(images)
