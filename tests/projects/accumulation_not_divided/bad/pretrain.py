"""Masked language model on one GPU whose memory holds 8 sentences; steps are of 128."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from steps import Accumulator

MASK, VOCABULARY = 4, 32_000


class Encoder(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, width)
        layer = nn.TransformerEncoderLayer(width, 8, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 6)
        self.head = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tokens")
    parser.add_argument("--accumulate", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()

    dataset = TensorDataset(torch.load(args.tokens, map_location="cpu"))
    loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=2)
    model = Encoder().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    accumulator = Accumulator(optimizer, args.accumulate)
    for epoch in range(args.epochs):
        for step, (tokens,) in enumerate(loader):
            tokens = tokens.cuda()
            masked = torch.rand(tokens.shape, device=tokens.device) < 0.15
            logits = model(tokens.masked_fill(masked, MASK))
            targets = tokens.masked_fill(~masked, -100)
            loss = nn.functional.cross_entropy(logits.transpose(1, 2), targets)
            accumulator.backward(loss)
            if step % 1000 == 0:
                print(f"epoch {epoch} step {step}: {loss.item():.3f}")
        torch.save(model.state_dict(), "encoder.pt")


if __name__ == "__main__":
    main()
