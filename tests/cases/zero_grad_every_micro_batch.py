"""Gradients cleared inside the window that accumulates them, and where they may be."""

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def cleared_before_each_backward(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()  # DDP205
        loss = criterion(model(images), labels) / args.accumulate
        loss.backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()


def cleared_at_the_wrong_depth(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        should_step = (step + 1) % args.accumulate == 0
        (criterion(model(images), labels) / args.accumulate).backward()
        if should_step:
            optimizer.step()
        optimizer.zero_grad()  # DDP205


def one_of_two_at_the_wrong_depth(model, head, loader, criterion, device, args):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    head_optimizer = torch.optim.SGD(head.parameters(), lr=0.01)
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        should_step = (step + 1) % args.accumulate == 0
        (criterion(head(model(images)), labels) / args.accumulate).backward()
        if should_step:
            optimizer.step()
            optimizer.zero_grad()
            head_optimizer.step()
        head_optimizer.zero_grad()  # DDP205


def cleared_in_the_inner_loop(model, loader, criterion, optimizer, device, args):
    batches = iter(loader)
    for _ in range(len(loader) // args.accumulate):
        for _ in range(args.accumulate):
            images, labels = next(batches)
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            model.zero_grad()  # DDP205
            (criterion(model(images), labels) / args.accumulate).backward()
        optimizer.step()


class Trainer:
    """The step asks for the window, the clearing in the method before it does not."""

    def __init__(self, model, optimizer, device, accumulate, use_amp):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.accumulate = accumulate
        self.use_amp = use_amp
        self.scaler = torch.amp.GradScaler("cuda", enabled=use_amp)
        self.step = 0

    def fit(self, loader, criterion):
        for images, labels in loader:
            self.step += 1
            self.fit_batch(images, labels, criterion)

    def fit_batch(self, images, labels, criterion):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        should_step = self.step % self.accumulate == 0
        if self.use_amp:
            self.optimizer.zero_grad()  # DDP205
            with torch.amp.autocast("cuda"):
                loss = criterion(self.model(images), labels)
            self.scaler.scale(loss / self.accumulate).backward()
            if should_step:
                self.scaler.step(self.optimizer)
                self.scaler.update()
        else:
            loss = criterion(self.model(images), labels)
            (loss / self.accumulate).backward()
            if should_step:
                self.optimizer.step()
                self.optimizer.zero_grad()


def cleared_after_the_step(model, loader, criterion, optimizer, device, args):
    optimizer.zero_grad()
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        (criterion(model(images), labels) / args.accumulate).backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def cleared_when_a_window_begins(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        if step % args.accumulate == 0:
            optimizer.zero_grad()
        (criterion(model(images), labels) / args.accumulate).backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()


def cleared_in_the_outer_loop(model, loader, criterion, optimizer, device, args):
    batches = iter(loader)
    for _ in range(len(loader) // args.accumulate):
        optimizer.zero_grad()
        for _ in range(args.accumulate):
            images, labels = next(batches)
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            (criterion(model(images), labels) / args.accumulate).backward()
        optimizer.step()


def cleared_where_nothing_accumulates(model, loader, criterion, optimizer, device, args):
    """Two ways through the loop; the one that clears every time has no window."""
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        if args.accumulate == 1:
            optimizer.zero_grad()
        (criterion(model(images), labels) / args.accumulate).backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            if args.accumulate > 1:
                optimizer.zero_grad()


def steps_unless_the_norm_is_bad(model, loader, criterion, optimizer, device):
    """A step that is skipped now and then is no window."""
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        if torch.isfinite(norm):  # DDP102
            optimizer.step()


def several_updates_per_gate(generator, critic, loader, device, args):
    """The gated optimizer has its backward in the gate as well."""
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    for step, (images, _) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        generator_optimizer.zero_grad()
        critic_optimizer.zero_grad()
        critic(generator(images).detach()).mean().backward()
        critic_optimizer.step()
        if step % args.critic_steps == 0:
            (-critic(generator(images)).mean()).backward()
            generator_optimizer.step()


def accelerated(model, loader, criterion, optimizer, args):
    """A prepared optimizer clears and steps only at the end of a window."""
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for images, labels in loader:
        with accelerator.accumulate(model):
            optimizer.zero_grad()
            accelerator.backward(criterion(model(images), labels))
            optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--critic-steps", type=int, default=5)
    args = parser.parse_args()
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 32).to(device)
    head = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        cleared_before_each_backward(model, loader, criterion, optimizer, device, args)
        cleared_at_the_wrong_depth(model, loader, criterion, optimizer, device, args)
        one_of_two_at_the_wrong_depth(model, head, loader, criterion, device, args)
        cleared_in_the_inner_loop(model, loader, criterion, optimizer, device, args)
        Trainer(model, optimizer, device, args.accumulate, args.amp).fit(loader, criterion)
        cleared_after_the_step(model, loader, criterion, optimizer, device, args)
        cleared_when_a_window_begins(model, loader, criterion, optimizer, device, args)
        cleared_in_the_outer_loop(model, loader, criterion, optimizer, device, args)
        cleared_where_nothing_accumulates(model, loader, criterion, optimizer, device, args)
        steps_unless_the_norm_is_bad(model, loader, criterion, optimizer, device)
        several_updates_per_gate(model, head, loader, device, args)
    accelerated(model, loader, criterion, optimizer, args)


if __name__ == "__main__":
    main()
