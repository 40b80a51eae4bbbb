"""Clipping under a GradScaler: scaled gradients, and gradients unscaled in time."""

import argparse

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset


def never_unscaled(model, loader, criterion, optimizer, scaler, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # DDP201
        scaler.step(optimizer)
        scaler.update()


def unscaled_too_late(model, loader, criterion, optimizer, scaler, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaled = scaler.scale(loss)
        scaled.backward()
        nn.utils.clip_grad_value_(model.parameters(), clip_value=0.5)  # DDP201
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()


class Trainer:
    """The plain branch needs no unscale, the scaled one does."""

    def __init__(self, model, optimizer, device, use_amp, max_norm):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.use_amp = use_amp
        self.max_norm = max_norm
        self.scaler = torch.amp.GradScaler("cuda", enabled=use_amp)

    def run(self, loader, criterion):
        for images, labels in loader:
            self.run_batch(images, labels, criterion)

    def run_well(self, loader, criterion):
        for images, labels in loader:
            self.run_batch_well(images, labels, criterion)

    def run_batch(self, images, labels, criterion):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        with torch.amp.autocast("cuda", enabled=self.use_amp):
            loss = criterion(self.model(images), labels)
        self.optimizer.zero_grad()
        if self.use_amp:
            self.scaler.scale(loss).backward()
            clip_grad_norm_(self.model.parameters(), self.max_norm)  # DDP201
            self.scaler.step(self.optimizer)
            self.scaler.update()
        else:
            loss.backward()
            clip_grad_norm_(self.model.parameters(), self.max_norm)
            self.optimizer.step()

    def run_batch_well(self, images, labels, criterion):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        with torch.amp.autocast("cuda", enabled=self.use_amp):
            loss = criterion(self.model(images), labels)
        self.optimizer.zero_grad()
        self.backward(loss)
        self.clip()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def clip(self):
        self.scaler.unscale_(self.optimizer)
        clip_grad_norm_(self.model.parameters(), self.max_norm)


def clip_all(parameters, limit):
    clip_grad_norm_(parameters, limit)  # DDP201


def clip_in_a_helper(model, loader, criterion, optimizer, scaler, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        clip_all(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def the_other_optimizer(generator, critic, loader, scaler, device):
    """Only one of the two models has its gradients unscaled."""
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    for images, _ in loader:
        images = images.to(device, non_blocking=True)
        generator_optimizer.zero_grad()
        critic_optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = critic(generator(images)).mean()
        scaler.scale(loss).backward()
        scaler.unscale_(generator_optimizer)
        clip_grad_norm_(generator.parameters(), 1.0)
        clip_grad_norm_(critic.parameters(), 1.0)  # DDP201
        scaler.step(generator_optimizer)
        scaler.step(critic_optimizer)
        scaler.update()


def unscaled_in_time(model, loader, criterion, optimizer, scaler, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def under_the_same_switch(model, loader, criterion, optimizer, device, args):
    """Scaled, unscaled and stepped under one switch, clipped under another."""
    scaler = torch.amp.GradScaler("cuda") if args.amp else None
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
            scaler.unscale_(optimizer)
        if args.clip > 0:
            clip_grad_norm_(model.parameters(), args.clip)
        if args.amp:
            scaler.step(optimizer)
            scaler.update()
        else:
            optimizer.step()


def only_when_clipping(model, loader, criterion, optimizer, scaler, device, args):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        if args.clip != 0.0:
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), args.clip)
        scaler.step(optimizer)
        scaler.update()


def two_loops_over_the_optimizers(model, head, loader, criterion, scaler, device):
    optimizers = {
        "model": torch.optim.SGD(model.parameters(), lr=0.1),
        "head": torch.optim.SGD(head.parameters(), lr=0.01),
    }
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.amp.autocast("cuda"):
            loss = criterion(head(model(images)), labels)
        scaler.scale(loss).backward()
        for optimizer in optimizers.values():
            scaler.unscale_(optimizer)
        for optimizer in optimizers.values():
            clip_grad_norm_(optimizer.param_groups[0]["params"], 1.0)
        for optimizer in optimizers.values():
            scaler.step(optimizer)
        scaler.update()
        for optimizer in optimizers.values():
            optimizer.zero_grad(set_to_none=True)


def unscaled_by_hand(model, loader, criterion, optimizer, scaler, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        inverse = 1.0 / scaler.get_scale()
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                parameter.grad.mul_(inverse)
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


class LossScaler:
    """Backward, unscale, clip and step behind one call, as many repositories have it."""

    def __init__(self):
        self._scaler = torch.amp.GradScaler("cuda")

    def __call__(self, loss, optimizer, parameters, clip=None, update=True):
        self._scaler.scale(loss).backward()
        if not update:
            return None
        self._scaler.unscale_(optimizer)
        norm = clip_grad_norm_(parameters, clip) if clip is not None else None
        self._scaler.step(optimizer)
        self._scaler.update()
        return norm


def behind_one_call(model, loader, criterion, optimizer, device):
    scale_and_step = LossScaler()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        optimizer.zero_grad()
        scale_and_step(loss, optimizer, model.parameters(), clip=1.0)


def switched_off(model, loader, criterion, optimizer, device):
    """A scaler that is disabled hands everything through."""
    scaler = torch.amp.GradScaler("cuda", enabled=False)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def no_scaler(model, loader, criterion, optimizer, device):
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--clip", type=float, default=1.0)
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
        never_unscaled(model, loader, criterion, optimizer, scaler, device)
        unscaled_too_late(model, loader, criterion, optimizer, scaler, device)
        trainer = Trainer(model, optimizer, device, args.amp, args.clip)
        trainer.run(loader, criterion)
        trainer.run_well(loader, criterion)
        clip_in_a_helper(model, loader, criterion, optimizer, scaler, device)
        the_other_optimizer(model, head, loader, scaler, device)
        unscaled_in_time(model, loader, criterion, optimizer, scaler, device)
        under_the_same_switch(model, loader, criterion, optimizer, device, args)
        only_when_clipping(model, loader, criterion, optimizer, scaler, device, args)
        two_loops_over_the_optimizers(model, head, loader, criterion, scaler, device)
        behind_one_call(model, loader, criterion, optimizer, device)
        switched_off(model, loader, criterion, optimizer, device)
        no_scaler(model, loader, criterion, optimizer, device)
    unscaled_by_hand(model, loader, criterion, optimizer, scaler, device)


if __name__ == "__main__":
    main()
