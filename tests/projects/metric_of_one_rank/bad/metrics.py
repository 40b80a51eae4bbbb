"""Numbers about a split."""

import torch


class Accuracy:
    def __init__(self, device):
        self.counts = torch.zeros(2, dtype=torch.long, device=device)

    def update(self, logits, labels):
        self.counts[0] += (logits.argmax(dim=1) == labels).sum()
        self.counts[1] += labels.numel()

    def compute(self):
        right, seen = self.counts.tolist()
        return right / max(seen, 1)
