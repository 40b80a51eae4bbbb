"""A file that it imports needs a PyTorch older than the new names."""

import torch
from models import MODELS
from torch.cuda.amp import autocast

model = MODELS["Net"](32, 10)
with autocast():
    model(torch.randn(4, 32, device="cuda"))
