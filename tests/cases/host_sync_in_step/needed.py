"""What the step needs on the host, with an algorithm that runs there, and what it could do without."""

import math

import numpy as np
import torch
from compiled import best_path
from scipy.optimize import linear_sum_assignment
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def align(score, mask):
    """The answer goes back to the device, in an array that was handed over for it."""
    costs = score.detach().cpu().numpy()
    lengths = mask.sum(1).cpu().numpy().astype(np.int32)
    path = np.zeros(costs.shape, dtype=np.int32)
    best_path(path, costs, lengths)
    return torch.from_numpy(path).to(score.device)


class Aligned(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        scores = self.layer(x)
        with torch.no_grad():
            path = align(scores, (x > 0).float())
        return (scores * path).sum(), scores.mean().item()  # DDP101


class Matcher(nn.Module):
    @torch.no_grad()
    def forward(self, found, wanted):
        costs = [torch.cdist(one, other) for one, other in zip(found, wanted)]
        pairs = [linear_sum_assignment(one.cpu()) for one in costs]
        return [(torch.as_tensor(i), torch.as_tensor(j)) for i, j in pairs]


class Criterion(nn.Module):
    def __init__(self, matcher):
        super().__init__()
        self.matcher = matcher

    def boxes(self, found, wanted, pairs, number):
        terms = [(one[i] - two[j]).abs().sum() for one, two, (i, j) in zip(found, wanted, pairs)]
        return {"boxes": torch.stack(terms).sum() / number}

    def forward(self, found, wanted):
        pairs = self.matcher(found, wanted)
        number = torch.as_tensor([len(wanted)], device=found.device).clamp(min=1).item()  # DDP101
        losses = {"hits": (found > 0.5).float().mean().cpu()}  # DDP101
        losses.update(self.boxes(found, wanted, pairs, number))
        return losses


def accuracy(logits, labels):
    """Counted in numpy, and added to the loss: it has no gradient, and could be counted later."""
    hits = logits.argmax(1).cpu().numpy() == labels.cpu().numpy()  # DDP101
    return np.count_nonzero(hits) / len(hits)


def matched(loader, net, optimizer):
    criterion = Criterion(Matcher())
    for x, y in loader:
        losses = criterion(net(x.cuda()).unsqueeze(0), y.cuda().unsqueeze(0))
        loss = sum(losses[key] for key in losses if key != "hits")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def aligned(loader, optimizer):
    net = Aligned().cuda()
    for x, y in loader:
        loss, mean = net(x.cuda())
        loss = loss + 1 - accuracy(x.cuda(), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(mean)


class Watch:
    """Whether the run goes on is decided step by step, from what the last steps were."""

    def __init__(self, log_only):
        self.log_only = log_only
        self.last = []
        self.bad = 0

    def is_spike(self, loss):
        if loss > 2 * sum(self.last) / len(self.last):
            self.bad += 1
            if self.bad > 5:
                return True
        return False

    def give_up(self):
        if self.log_only:
            print("a spike")
        else:
            raise RuntimeError("a spike")

    def look(self, loss):
        value = loss.item()
        if len(self.last) == 100 and self.is_spike(value):
            self.give_up()
        self.last.append(value)


def watched(loader, net, optimizer, enough):
    watch = Watch(log_only=False)
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        watch.look(loss)
        if loss.item() < enough:
            break


def finite(loader, net, optimizer):
    """What is not finite stays so: that can be asked later."""
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())
        value = loss.item()  # DDP101
        if not math.isfinite(value):
            raise RuntimeError("not a number")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    data = TensorDataset(torch.randn(4096, 8), torch.randn(4096, 8))
    loader = DataLoader(data, batch_size=64, num_workers=4)
    net = nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    matched(loader, net, optimizer)
    aligned(loader, optimizer)
    watched(loader, net, optimizer, 0.1)
    finite(loader, net, optimizer)


if __name__ == "__main__":
    main()
