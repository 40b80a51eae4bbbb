"""The learning-rate schedule, stepped before or after the optimizer."""

import argparse

import torch
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, LRScheduler, ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset


def before_each_step(model, loader, criterion, optimizer, device):
    schedule = LambdaLR(optimizer, lambda step: min(1.0, step / 1000))
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        schedule.step()  # DDP209
        optimizer.step()


def before_each_scaled_step(model, loader, criterion, optimizer, device):
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=1000)
    scaler = torch.amp.GradScaler("cuda")
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        schedule.step()  # DDP209
        scaler.step(optimizer)
        scaler.update()


def before_each_epoch(model, loader, criterion, optimizer, device, args):
    schedule = CosineAnnealingLR(optimizer, T_max=args.epochs)
    for _ in range(args.epochs):
        schedule.step()  # DDP209
        train_epoch(model, loader, criterion, optimizer, device)


class LinearWarmup(LRScheduler):
    """A schedule of torch's kind: only the factor is its own."""

    def get_lr(self):
        return [base * min(1.0, self.last_epoch / 100) for base in self.base_lrs]


class OwnSchedule(LRScheduler):
    """Sets the rate of the step that comes, so it has to run before that step."""

    def step(self, epoch=None):
        self.last_epoch += 1
        for group, base in zip(self.optimizer.param_groups, self.base_lrs):
            group["lr"] = base * min(1.0, (self.last_epoch + 1) / 100)

    def get_lr(self):
        return [group["lr"] for group in self.optimizer.param_groups]


class HandMade:
    """No scheduler of torch's at all."""

    def __init__(self, optimizer):
        self.optimizer = optimizer
        self.count = 0

    def step(self):
        self.count += 1
        for group in self.optimizer.param_groups:
            group["lr"] = 0.1 * min(1.0, self.count / 100)


class Trainer:
    def __init__(self, model, optimizer, schedule, device):
        self.model = model
        self.optimizer = optimizer
        self.schedule = schedule
        self.device = device

    def fit(self, loader, criterion):
        for images, labels in loader:
            images = images.to(self.device, non_blocking=True)
            labels = labels.to(self.device, non_blocking=True)
            self.optimizer.zero_grad()
            criterion(self.model(images), labels).backward()
            self.take_step()

    def take_step(self):
        self.schedule.step()  # DDP209
        self.optimizer.step()


def own_schedules(model, loader, criterion, optimizer, device):
    own = OwnSchedule(optimizer)
    hand_made = HandMade(optimizer)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        own.step()
        hand_made.step()
        optimizer.step()


def with_an_explicit_epoch(model, loader, criterion, optimizer, device, args):
    schedule = CosineAnnealingLR(optimizer, T_max=args.epochs)
    for epoch in range(args.epochs):
        schedule.step(epoch)
        train_epoch(model, loader, criterion, optimizer, device)


def from_the_second_epoch_on(model, loader, criterion, optimizer, device, args):
    schedule = CosineAnnealingLR(optimizer, T_max=args.epochs)
    for epoch in range(args.epochs):
        if epoch > 0:
            schedule.step()
        train_epoch(model, loader, criterion, optimizer, device)


def by_a_metric(model, loader, criterion, optimizer, device, args):
    schedule = ReduceLROnPlateau(optimizer)
    best = float("inf")
    for _ in range(args.epochs):
        schedule.step(best)
        train_epoch(model, loader, criterion, optimizer, device)


def after(model, loader, criterion, optimizer, device, args):
    schedule = CosineAnnealingLR(optimizer, T_max=args.epochs)
    warmup = LinearWarmup(optimizer)
    for _ in range(args.epochs):
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            criterion(model(images), labels).backward()
            optimizer.step()
            warmup.step()
        schedule.step()


def one_of_two_optimizers(generator, critic, loader, device):
    """Each schedule follows its own optimizer, if not the other one."""
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    generator_schedule = CosineAnnealingLR(generator_optimizer, T_max=1000)
    critic_schedule = CosineAnnealingLR(critic_optimizer, T_max=1000)
    for images, _ in loader:
        images = images.to(device, non_blocking=True)
        critic_optimizer.zero_grad()
        critic(generator(images).detach()).mean().backward()
        critic_optimizer.step()
        critic_schedule.step()
        generator_optimizer.zero_grad()
        (-critic(generator(images)).mean()).backward()
        generator_optimizer.step()
        generator_schedule.step()


def not_known_here(model, loader, criterion, optimizer, schedule, device):
    """Nobody calls this: the schedule may be of any kind."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        schedule.step()
        optimizer.step()


def train_epoch(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    before_each_step(model, loader, criterion, optimizer, device)
    before_each_scaled_step(model, loader, criterion, optimizer, device)
    before_each_epoch(model, loader, criterion, optimizer, device, args)
    Trainer(model, optimizer, LinearWarmup(optimizer), device).fit(loader, criterion)
    own_schedules(model, loader, criterion, optimizer, device)
    with_an_explicit_epoch(model, loader, criterion, optimizer, device, args)
    from_the_second_epoch_on(model, loader, criterion, optimizer, device, args)
    by_a_metric(model, loader, criterion, optimizer, device, args)
    after(model, loader, criterion, optimizer, device, args)
    one_of_two_optimizers(model, nn.Linear(10, 1).to(device), loader, device)


if __name__ == "__main__":
    main()
