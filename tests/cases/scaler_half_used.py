"""A GradScaler of which only some calls are made."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def plain_step(model, loader, criterion, optimizer, scaler, device):
    """The update is as large as the scale."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        optimizer.step()  # DDP206


def steps_once_more(model, loader, criterion, optimizer, scaler, device):
    """The plain step after the scaler's repeats the update, whether or not it was skipped."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.step()  # DDP206


def never_updated(model, loader, criterion, optimizer, scaler, device):
    """Raises at the second step."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)  # DDP206


def never_scaled(model, loader, criterion, optimizer, scaler, device):
    """Raises at the first step."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        loss.backward()  # DDP206
        scaler.step(optimizer)
        scaler.update()


def updated_between_the_steps(generator, critic, loader, scaler, device):
    """One scaled backward, two steps: the second unscales by a scale that has moved."""
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    for images, _ in loader:
        images = images.to(device, non_blocking=True)
        generator_optimizer.zero_grad()
        critic_optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = critic(generator(images)).mean()
        scaler.scale(loss).backward()
        scaler.step(generator_optimizer)
        scaler.update()
        scaler.step(critic_optimizer)
        scaler.update()  # DDP206


class Trainer:
    """Scaled in one method, stepped plainly in another."""

    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.scaler = torch.amp.GradScaler("cuda")

    def fit(self, loader, criterion):
        for images, labels in loader:
            self.backward(images, labels, criterion)
            self.step()

    def backward(self, images, labels, criterion):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        self.optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(self.model(images), labels)
        self.scaler.scale(loss).backward()

    def step(self):
        self.optimizer.step()  # DDP206


def whole(model, loader, criterion, optimizer, scaler, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaled = scaler.scale(loss)
        scaled.backward()
        scaler.step(optimizer)
        scaler.update()


def either_or(model, loader, criterion, optimizer, scaler, device, args):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda", enabled=args.amp):
            loss = criterion(model(images), labels)
        if args.amp:
            scaler.scale(loss).backward()
        else:
            loss.backward()
        if args.amp:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()


def either_or_by_the_scaler(model, loader, criterion, optimizer, device, scaler=None):
    """Whether there is a scaler is the switch."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda", enabled=scaler is not None):
            loss = criterion(model(images), labels)
        backward(loss, scaler)
        if scaler is None:
            optimizer.step()
        else:
            scaler.step(optimizer)
            scaler.update()


def backward(loss, scaler):
    if scaler is not None:
        scaler.scale(loss).backward()
    else:
        loss.backward()


def one_update_for_two(generator, critic, loader, scaler, device):
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    for images, _ in loader:
        images = images.to(device, non_blocking=True)
        critic_optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            critic_loss = -critic(generator(images).detach()).mean()
        scaler.scale(critic_loss).backward()
        scaler.step(critic_optimizer)
        generator_optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            generator_loss = critic(generator(images)).mean()
        scaler.scale(generator_loss).backward()
        scaler.step(generator_optimizer)
        scaler.update()


def a_backward_for_each_update(generator, critic, loader, scaler, device):
    """Scaled anew after each update: every step unscales by the scale of its own backward."""
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    for images, _ in loader:
        images = images.to(device, non_blocking=True)
        critic_optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            critic_loss = -critic(generator(images).detach()).mean()
        scaler.scale(critic_loss).backward()
        scaler.step(critic_optimizer)
        scaler.update()
        generator_optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            generator_loss = critic(generator(images)).mean()
        scaler.scale(generator_loss).backward()
        scaler.step(generator_optimizer)
        scaler.update()


def only_one_is_scaled(model, head, loader, criterion, scaler, device):
    """The head is trained in full precision with an optimizer of its own."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    head_optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        head_optimizer.zero_grad()
        criterion(head(images), labels).backward()
        head_optimizer.step()


def unscaled_first(model, loader, criterion, optimizer, scaler, device):
    """Unscaled by the scaler; the plain step that follows takes true gradients."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        optimizer.step()
        scaler.update()


def updated_in_a_helper(model, loader, criterion, optimizer, scaler, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        finish(optimizer, scaler)


def finish(optimizer, scaler):
    scaler.step(optimizer)
    scaler.update()


def switched_off(model, loader, criterion, optimizer, device):
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        optimizer.step()


class FeatureScaler:
    """Not a gradient scaler: it has a `scale` and nothing to unscale."""

    def scale(self, value):
        return value * 0.5


def another_kind_of_scaler(model, loader, criterion, optimizer, device):
    scaler = FeatureScaler()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        scaler.scale(criterion(model(images), labels)).backward()
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 32).to(device)
    head = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        plain_step(model, loader, criterion, optimizer, scaler, device)
        steps_once_more(model, loader, criterion, optimizer, scaler, device)
        never_updated(model, loader, criterion, optimizer, scaler, device)
        never_scaled(model, loader, criterion, optimizer, scaler, device)
        updated_between_the_steps(model, head, loader, scaler, device)
        Trainer(model, optimizer, device).fit(loader, criterion)
        whole(model, loader, criterion, optimizer, scaler, device)
        either_or(model, loader, criterion, optimizer, scaler, device, args)
        either_or_by_the_scaler(model, loader, criterion, optimizer, device)
        either_or_by_the_scaler(model, loader, criterion, optimizer, device, scaler)
        one_update_for_two(model, head, loader, scaler, device)
        a_backward_for_each_update(model, head, loader, scaler, device)
        only_one_is_scaled(model, head, loader, criterion, scaler, device)
        unscaled_first(model, loader, criterion, optimizer, scaler, device)
        updated_in_a_helper(model, loader, criterion, optimizer, scaler, device)
        switched_off(model, loader, criterion, optimizer, device)
        another_kind_of_scaler(model, loader, criterion, optimizer, device)


if __name__ == "__main__":
    main()
