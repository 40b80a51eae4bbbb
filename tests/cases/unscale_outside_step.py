"""Gradient accumulation: unscaling and clipping belong to the optimizer step."""

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, TensorDataset


def unscales_every_micro_batch(model, loader, criterion, optimizer, scaler, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels) / args.accumulate
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)  # DDP202
        clip_grad_norm_(model.parameters(), 1.0)
        if (step + 1) % args.accumulate == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def unscales_where_amp_is_on(model, loader, criterion, optimizer, device, args):
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
    local_step = 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.amp.autocast("cuda", enabled=args.amp):
            loss = criterion(model(images), labels)
        if args.accumulate > 1:
            loss = loss / args.accumulate
        if args.amp:
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)  # DDP202
        else:
            loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        local_step += 1
        if local_step % args.accumulate == 0:
            if args.amp:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            optimizer.zero_grad()


def clips_every_micro_batch(model, loader, criterion, optimizer, device, args):
    """Without a scaler nothing raises: partial sums are clipped again and again."""
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels) / args.accumulate
        loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)  # DDP202
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def inner_loop(model, loader, criterion, optimizer, scaler, device, args):
    batches = iter(loader)
    for _ in range(len(loader) // args.accumulate):
        for _ in range(args.accumulate):
            images, labels = next(batches)
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            with torch.amp.autocast("cuda"):
                loss = criterion(model(images), labels) / args.accumulate
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)  # DDP202
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


class Trainer:
    """The gate is in one method, the unscale in another."""

    def __init__(self, model, optimizer, device, accumulate):
        self.model = model
        self.optimizer = optimizer
        self.device = device
        self.accumulate = accumulate
        self.scaler = torch.amp.GradScaler("cuda")
        self.step = 0

    def run(self, loader, criterion):
        for images, labels in loader:
            self.step += 1
            self.backward(images, labels, criterion)
            should_step = self.step % self.accumulate == 0
            if should_step:
                self.optimizer_step()

    def backward(self, images, labels, criterion):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        with torch.amp.autocast("cuda"):
            loss = criterion(self.model(images), labels) / self.accumulate
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)  # DDP202

    def optimizer_step(self):
        clip_grad_norm_(self.model.parameters(), 1.0)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad()


def accelerated(model, loader, criterion, optimizer, args):
    """`accelerator.clip_grad_norm_` unscales, so it must wait for the last micro-batch too."""
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for images, labels in loader:
        with accelerator.accumulate(model):
            loss = criterion(model(images), labels)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(model.parameters(), 1.0)  # DDP202
            optimizer.step()
            optimizer.zero_grad()


def accelerated_well(model, loader, criterion, optimizer, args):
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for images, labels in loader:
        with accelerator.accumulate(model):
            loss = criterion(model(images), labels)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()


def accelerated_without_accumulation(model, loader, criterion, optimizer):
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for images, labels in loader:
        loss = criterion(model(images), labels)
        accelerator.backward(loss)
        accelerator.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()


def inside_the_gate(model, loader, criterion, optimizer, scaler, device, args):
    """Everything in the gate, and once more for the micro-batches that are left over."""
    step = 0
    for step, (images, labels) in enumerate(loader, start=1):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels) / args.accumulate
        scaler.scale(loss).backward()
        if step % args.accumulate == 0:
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    if step % args.accumulate != 0:
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def same_gate_twice(model, loader, criterion, optimizer, scaler, device, args):
    for step, (images, labels) in enumerate(loader, start=1):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        last = step % args.accumulate == 0 or step == len(loader)
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels) / args.accumulate
        scaler.scale(loss).backward()
        if last:
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
        if last:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def leaves_before_the_end_of_the_window(model, loader, criterion, optimizer, scaler, device, args):
    for step, (images, labels) in enumerate(loader, start=1):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels) / args.accumulate
        scaler.scale(loss).backward()
        if step % args.accumulate != 0:
            continue
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


class LossScaler:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cuda")

    def __call__(self, loss, optimizer, parameters, clip, update):
        self.scaler.scale(loss).backward()
        if update:
            self.scaler.unscale_(optimizer)
            clip_grad_norm_(parameters, clip)
            self.scaler.step(optimizer)
            self.scaler.update()


def gated_in_the_helper(model, loader, criterion, optimizer, device, args):
    loss_scaler = LossScaler()
    optimizer.zero_grad()
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        loss /= args.accumulate
        window_ends = (step + 1) % args.accumulate == 0
        loss_scaler(loss, optimizer, model.parameters(), clip=1.0, update=window_ends)
        if window_ends:
            optimizer.zero_grad()


def two_optimizers(generator, critic, loader, scaler, device):
    """Each has its own unscale, on every step, and steps on every step."""
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    for images, _ in loader:
        images = images.to(device, non_blocking=True)
        critic_optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            critic_loss = -critic(generator(images).detach()).mean()
        scaler.scale(critic_loss).backward()
        scaler.unscale_(critic_optimizer)
        clip_grad_norm_(critic.parameters(), 1.0)
        scaler.step(critic_optimizer)
        generator_optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            generator_loss = critic(generator(images)).mean()
        scaler.scale(generator_loss).backward()
        scaler.unscale_(generator_optimizer)
        clip_grad_norm_(generator.parameters(), 1.0)
        scaler.step(generator_optimizer)
        scaler.update()


def every_nth_is_logged(model, loader, criterion, optimizer, scaler, device):
    """A gate, but not one that the step waits for."""
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = criterion(model(images), labels)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        if step % 100 == 0:
            print(norm.item())  # DDP509


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--accumulate", type=int, default=4)
    args = parser.parse_args()
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 32).to(device)
    critic = nn.Linear(32, 1).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda")
    for _ in range(3):
        unscales_every_micro_batch(model, loader, criterion, optimizer, scaler, device, args)
        unscales_where_amp_is_on(model, loader, criterion, optimizer, device, args)
        clips_every_micro_batch(model, loader, criterion, optimizer, device, args)
        inner_loop(model, loader, criterion, optimizer, scaler, device, args)
        Trainer(model, optimizer, device, args.accumulate).run(loader, criterion)
        inside_the_gate(model, loader, criterion, optimizer, scaler, device, args)
        same_gate_twice(model, loader, criterion, optimizer, scaler, device, args)
        leaves_before_the_end_of_the_window(
            model, loader, criterion, optimizer, scaler, device, args
        )
        gated_in_the_helper(model, loader, criterion, optimizer, device, args)
        two_optimizers(model, critic, loader, scaler, device)
        every_nth_is_logged(model, loader, criterion, optimizer, scaler, device)
    accelerated(model, loader, criterion, optimizer, args)
    accelerated_well(model, loader, criterion, optimizer, args)
    accelerated_without_accumulation(model, loader, criterion, optimizer)


if __name__ == "__main__":
    main()
