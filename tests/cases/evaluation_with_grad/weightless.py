"""What records nothing: a forward under `no_grad`, and modules without weights. What does: a
model that was built out of sight and switched to evaluation here."""

import torch
import zoo
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Best(nn.Module):
    @torch.no_grad()
    def forward(self, scores):
        return scores.argmax(1)


class Boxes(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, scores):
        """The whole body is one region."""
        with torch.no_grad():
            return (scores * self.scale).topk(self.limit)


class Shift(nn.Module):
    """No weights: there is nothing to record for."""

    def __init__(self, mean, stats):
        super().__init__()
        self.mean = mean
        self.stats = stats
        self.shrink = nn.AvgPool1d(2)
        self.register_buffer("spread", torch.ones(()))

    def forward(self, batch):
        return self.shrink((batch - self.mean) / self.spread / self.stats["largest"])


def with_model(loader, device):
    model = zoo.build("small").to(device)
    model.eval()
    shift, best = Shift(0.5, {"largest": 2.0}).to(device), Best()
    for (batch,) in loader:  # DDP602
        print(best(model(shift(batch.to(device)))).tolist())


def without_model(loader, device):
    shift, best, boxes = Shift(0.5, {"largest": 2.0}).to(device), Best(), Boxes(10)
    shift.eval()
    for (batch,) in loader:
        shifted = shift(batch.to(device))
        print(best(shifted).tolist(), boxes(shifted))


def main():
    device = torch.device("cuda")
    loader = DataLoader(TensorDataset(torch.randn(64, 8)), batch_size=8, num_workers=4)
    with_model(loader, device)
    without_model(loader, device)


if __name__ == "__main__":
    main()
