"""The window is counted here, the gradients are cleared in the actor's file."""

import torch
from actor import Actor, TidyActor
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def train(actor, loader, accumulate):
    batches = iter(loader)
    for _ in range(len(loader) // accumulate):
        for _ in range(accumulate):
            actor.forward_backward(next(batches), accumulate)
        actor.optimizer_step()


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        train(Actor(model, optimizer, device), loader, 4)
        train(TidyActor(model, optimizer, device), loader, 4)


if __name__ == "__main__":
    main()
