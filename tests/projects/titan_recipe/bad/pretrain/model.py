"""A decoder."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.words = nn.Embedding(config.words, config.width)
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(config.width, config.width // 64, batch_first=True)
            for _ in range(config.layers)
        )
        self.norm = nn.RMSNorm(config.width)
        self.output = nn.Linear(config.width, config.words, bias=False)

    def forward(self, tokens):
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1], tokens.device)
        hidden = self.words(tokens)
        for layer in self.layers:
            hidden = layer(hidden, src_mask=mask, is_causal=True)
        return self.output(self.norm(hidden))


def cross_entropy(logits, labels):
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
