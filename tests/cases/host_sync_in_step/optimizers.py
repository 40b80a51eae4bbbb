"""Loops that train by an optimizer of the project's own, by hand, or with the rest elsewhere."""

import environments
import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import DataLoader, TensorDataset


class SignDescent(Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                weight.add_(weight.grad.sign(), alpha=-group["lr"])


def own_optimizer(model, loader):
    descent = SignDescent(model.parameters(), 0.1)
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
        model.zero_grad()
        loss.backward()
        descent.step()
        print(loss.item())  # DDP101


def by_hand(model, loader):
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for weight in model.parameters():
                weight -= 0.1 * weight.grad
        print(loss.item())  # DDP101


def by_acting(model, environment):
    """The next observation waits for the action: nothing can be put off."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen, _ = environment.reset()
    for _ in range(10_000):
        with torch.no_grad():
            actions = model(torch.tensor(seen).cuda()).argmax(dim=1).cpu().numpy()
        seen, reward, *_ = environment.step(actions)
        loss = (model(torch.tensor(seen).cuda()).mean() - torch.tensor(reward).mean()).square()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())  # DDP101


class Library:
    """Whoever uses it calls the one and then the other."""

    def __init__(self, model):
        self.model = model.cuda()
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def accumulate(self, parts):
        total = 0.0
        for part in parts:
            loss = self.model(part.cuda()).square().mean()
            total += loss.item()  # DDP101
            loss.backward()
        return total

    def accumulate_next(self, batches):
        return self.accumulate(next(batches))

    def update(self):
        self.optimizer.step()
        self.optimizer.zero_grad()


def main():
    data = TensorDataset(torch.randn(64, 8), torch.randint(3, (64,)))
    loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=4)
    own_optimizer(nn.Linear(8, 3).cuda(), loader)
    by_hand(nn.Linear(8, 3).cuda(), loader)
    by_acting(nn.Linear(8, 3).cuda(), environments.make())


if __name__ == "__main__":
    main()
