"""Gradients that nobody clears, and all the places where they are cleared."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def never_cleared(model, loader, criterion, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in loader:  # DDP204
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        criterion(model(images), labels).backward()
        optimizer.step()


def cleared_once(model, loader, criterion, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    optimizer.zero_grad()
    for step, (images, labels) in enumerate(loader):  # DDP204
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        criterion(model(images), labels).backward()
        optimizer.step()


def under_amp(model, loader, criterion, device, args):
    """Neither branch clears."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for images, labels in loader:  # DDP204
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        if args.amp:
            with torch.amp.autocast("cuda"):
                loss = criterion(model(images), labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            criterion(model(images), labels).backward()
            optimizer.step()


def one_of_two(generator, critic, loader, device):
    """The critic is cleared, the generator is not."""
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    for images, _ in loader:  # DDP204
        images = images.to(device, non_blocking=True)
        critic_optimizer.zero_grad()
        critic(generator(images).detach()).mean().backward()
        critic_optimizer.step()
        (-critic(generator(images)).mean()).backward()
        generator_optimizer.step()


class Trainer:
    def __init__(self, model, loader, device):
        self.model = model
        self.loader = loader
        self.device = device
        self.optimizer = torch.optim.AdamW(model.parameters())

    def fit(self, criterion):
        for images, labels in self.loader:  # DDP204
            self.fit_batch(images, labels, criterion)

    def fit_batch(self, images, labels, criterion):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        criterion(self.model(images), labels).backward()
        self.optimizer.step()


def toy(model, device):
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.25, foreach=True)
    for _ in range(10):  # DDP204
        model(torch.rand(20, 32, device=device)).sum().backward()
        optimizer.step()


class ClearingTrainer:
    """Clears in a method of its own."""

    def __init__(self, model, loader, device):
        self.model = model
        self.loader = loader
        self.device = device
        self.optimizer = torch.optim.AdamW(model.parameters())

    def fit(self, criterion):
        for images, labels in self.loader:
            self.before_batch()
            self.fit_batch(images, labels, criterion)

    def before_batch(self):
        self.optimizer.zero_grad()

    def fit_batch(self, images, labels, criterion):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        criterion(self.model(images), labels).backward()
        self.optimizer.step()


def through_the_model(model, loader, criterion, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        model.zero_grad(set_to_none=True)
        criterion(model(images), labels).backward()
        optimizer.step()


def by_hand(model, loader, criterion, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        criterion(model(images), labels).backward()
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad = None


def in_place_by_hand(model, loader, criterion, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        criterion(model(images), labels).backward()
        optimizer.step()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad.zero_()


def clear(*optimizers):
    for optimizer in optimizers:
        optimizer.zero_grad()


def in_a_helper(model, loader, criterion, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        clear(optimizer)
        criterion(model(images), labels).backward()
        optimizer.step()


def over_a_list(model, head, loader, criterion, device):
    optimizers = [
        torch.optim.SGD(model.parameters(), lr=0.1),
        torch.optim.SGD(head.parameters(), lr=0.01),
    ]
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        [optimizer.zero_grad() for optimizer in optimizers]
        criterion(head(model(images)), labels).backward()
        for optimizer in optimizers:
            optimizer.step()


def closure(model, loader, criterion, device):
    optimizer = torch.optim.LBFGS(model.parameters())
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)

        def evaluate():
            optimizer.zero_grad()
            loss = criterion(model(images), labels)
            loss.backward()
            return loss

        optimizer.step(evaluate)


def windows(model, loader, criterion, device, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        (criterion(model(images), labels) / args.accumulate).backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def new_model_each_time(loader, criterion, device):
    """Five runs of one step: each has fresh gradients."""
    for _ in range(5):
        model = nn.Linear(32, 10).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        images, labels = next(iter(loader))
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        criterion(model(images), labels).backward()
        optimizer.step()


def without_accumulating(model, loader, criterion, device):
    """`autograd.grad` returns the gradients and adds to none."""
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        gradients = torch.autograd.grad(criterion(model(images), labels), parameters)
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        optimizer.step()


def not_known_here(model, loader, criterion, optimizer, device):
    """Nobody calls this: the optimizer may be an engine that clears by itself."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        criterion(model(images), labels).backward()
        optimizer.step()


def other_steps(model, loader, criterion, device, environment, profiler):
    """Things that have a `step` and are no optimizers."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        criterion(model(images), labels).backward()
        environment.step(0)
        profiler.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--accumulate", type=int, default=4)
    args = parser.parse_args()
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 32).to(device)
    head = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    for _ in range(3):
        never_cleared(model, loader, criterion, device)
        cleared_once(model, loader, criterion, device)
        under_amp(model, loader, criterion, device, args)
        one_of_two(model, head, loader, device)
        Trainer(model, loader, device).fit(criterion)
        toy(model, device)
        ClearingTrainer(model, loader, device).fit(criterion)
        through_the_model(model, loader, criterion, device)
        by_hand(model, loader, criterion, device)
        in_place_by_hand(model, loader, criterion, device)
        in_a_helper(model, loader, criterion, device)
        over_a_list(model, head, loader, criterion, device)
        closure(model, loader, criterion, device)
        windows(model, loader, criterion, device, args)
        new_model_each_time(loader, criterion, device)
        without_accumulating(model, loader, criterion, device)


if __name__ == "__main__":
    main()
