"""Gradients summed over micro-batches: averaged somewhere, or nowhere."""

import argparse

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def never_divided(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        loss.backward()  # DDP203
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def steps_on_a_window_if_asked(model, loader, criterion, optimizer, device, args):
    scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
    global_step = 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.amp.autocast("cuda", enabled=args.amp):
            losses = criterion(model(images), labels)
            loss = losses.sum()
        scaler.scale(loss).backward()  # DDP203
        if not args.accumulate or (global_step + 1) % args.accumulate == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
        global_step += 1


def inner_loop(model, loader, criterion, optimizer, device, args):
    batches = list(loader)
    for window in range(len(batches) // args.accumulate):
        for index in range(args.accumulate):
            images, labels = batches[window * args.accumulate + index]
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            loss = criterion(model(images), labels)
            loss.backward()  # DDP203
        optimizer.step()
        for parameter in model.parameters():
            parameter.grad = None


def get_batch(device):
    return torch.randn(64, 32, device=device), torch.randint(10, (64,), device=device)


def inner_loop_with_a_source(model, criterion, optimizer, device, args):
    images, labels = get_batch(device)
    for _ in range(args.steps):
        for _ in range(args.accumulate):
            loss = criterion(model(images), labels)
            images, labels = get_batch(device)
            loss.backward()  # DDP203
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)


def only_the_logged_loss_is_divided(model, loader, criterion, optimizer, device, args):
    running = torch.zeros((), device=device)
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        running += loss.detach() / args.accumulate
        loss.backward()  # DDP203
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
    return running


def accelerator_that_does_not_know(model, loader, criterion, optimizer, args):
    """The window is counted by hand, the accelerator divides by one."""
    accelerator = Accelerator()
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for step, (images, labels) in enumerate(loader):  # DDP504
        loss = criterion(model(images), labels)
        accelerator.backward(loss)  # DDP203
        if step % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def accelerator_that_knows(model, loader, criterion, optimizer, args):
    """`backward` divides by the number that the accelerator was given."""
    accelerator = Accelerator(gradient_accumulation_steps=args.accumulate)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for images, labels in loader:
        with accelerator.accumulate(model):
            accelerator.backward(criterion(model(images), labels))
            optimizer.step()
            optimizer.zero_grad()


def divided(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        (loss / args.accumulate).backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def divided_in_its_own_statement(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        if args.accumulate > 1:
            loss = loss / args.accumulate
        loss.backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def divided_in_place(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        loss /= args.accumulate
        loss.backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def multiplied(model, loader, criterion, optimizer, device, args):
    factor = 1.0 / args.accumulate
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        if step % 2:
            loss.mul(factor).backward()
        else:
            (factor * loss).backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def loss_of(model, images, labels, criterion, accumulate):
    return criterion(model(images), labels) / accumulate


def divided_in_a_helper(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss_of(model, images, labels, criterion, args.accumulate).backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()


def by_tokens(model, loader, optimizer, device, args):
    """A sum over the window, divided by what was counted in it."""
    tokens = 0
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        tokens += labels.numel()
        loss = nn.functional.cross_entropy(model(images), labels, reduction="sum")
        loss.backward()
        if (step + 1) % args.accumulate == 0:
            for parameter in model.parameters():
                parameter.grad /= tokens
            optimizer.step()
            optimizer.zero_grad()
            tokens = 0


def scale_gradients(parameters, factor):
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.mul_(factor)


def rescaled_in_a_helper(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels) * labels.size(0)
        loss.backward()
        if (step + 1) % args.accumulate == 0:
            scale_gradients(model.parameters(), 1.0 / args.accumulate)
            optimizer.step()
            optimizer.zero_grad()


def not_a_window(generator, critic, loader, device, args):
    """The gated step has its own backward in the gate; the other steps every time."""
    generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4)
    for step, (images, _) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        critic_optimizer.zero_grad()
        real = -critic(images).mean()
        real.backward()
        fake = critic(generator(images).detach()).mean()
        fake.backward()
        critic_optimizer.step()
        if step % args.critic_steps == 0:
            generator_optimizer.zero_grad()
            generator_loss = -critic(generator(images)).mean()
            generator_loss.backward()
            generator_optimizer.step()


def several_losses(model, heads, loader, criterion, optimizer, device):
    """One batch, one backward per head, one step: a sum that is meant."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        features = model(images)
        for head in heads:
            criterion(head(features), labels).backward(retain_graph=True)
        optimizer.step()


def every_nth_is_evaluated(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        if (step + 1) % args.accumulate == 0:
            print(f"{step} steps")  # DDP509


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--amp", action="store_true")
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--critic-steps", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    args = parser.parse_args()
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 32).to(device)
    critic = nn.Linear(32, 1).to(device)
    heads = [nn.Linear(32, 10).to(device) for _ in range(3)]
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        never_divided(model, loader, criterion, optimizer, device, args)
        steps_on_a_window_if_asked(model, loader, criterion, optimizer, device, args)
        inner_loop(model, loader, criterion, optimizer, device, args)
        inner_loop_with_a_source(model, criterion, optimizer, device, args)
        print(only_the_logged_loss_is_divided(model, loader, criterion, optimizer, device, args))
        divided(model, loader, criterion, optimizer, device, args)
        divided_in_its_own_statement(model, loader, criterion, optimizer, device, args)
        divided_in_place(model, loader, criterion, optimizer, device, args)
        multiplied(model, loader, criterion, optimizer, device, args)
        divided_in_a_helper(model, loader, criterion, optimizer, device, args)
        by_tokens(model, loader, optimizer, device, args)
        rescaled_in_a_helper(model, loader, criterion, optimizer, device, args)
        not_a_window(model, critic, loader, device, args)
        several_losses(model, heads, loader, criterion, optimizer, device)
        every_nth_is_evaluated(model, loader, criterion, optimizer, device, args)
    accelerator_that_does_not_know(model, loader, criterion, optimizer, args)
    accelerator_that_knows(model, loader, criterion, optimizer, args)


if __name__ == "__main__":
    main()
