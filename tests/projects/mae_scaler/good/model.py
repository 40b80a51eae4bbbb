"""An autoencoder that sees a quarter of the patches."""

import torch
from torch import nn


class MaskedAutoencoder(nn.Module):
    def __init__(self, patch=768, width=512, depth=8):
        super().__init__()
        self.embed = nn.Linear(patch, width)
        self.mask = nn.Parameter(torch.zeros(width))
        layer = nn.TransformerEncoderLayer(width, 8, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth)
        self.predict = nn.Linear(width, patch)

    def forward(self, patches, mask_ratio):
        hidden = torch.rand(patches.shape[:2], device=patches.device) < mask_ratio
        tokens = torch.where(hidden[..., None], self.mask, self.embed(patches))
        error = (self.predict(self.encoder(tokens)) - patches).square().mean(-1)
        return (error * hidden).sum() / hidden.sum()
