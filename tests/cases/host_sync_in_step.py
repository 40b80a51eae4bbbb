"""A device tensor read on the host: on every step, and where that is fine."""

import argparse
import logging
import math
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

logger = logging.getLogger(__name__)


def every_way_to_read(model, loader, criterion, optimizer, device, writer):
    running = 0.0
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        logits = model(images)
        loss = criterion(logits, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()  # DDP101
        predicted = logits.argmax(1)
        hits = (predicted == labels).sum().tolist()  # DDP101
        scores = logits.detach().cpu()  # DDP101
        top = scores.numpy().max()
        value = loss.detach().to("cpu").numpy()  # DDP101
        as_float = float(loss)  # DDP101
        above = int((labels > 3).sum())  # DDP101
        table = np.asarray(predicted.cpu())  # DDP101
        print(loss)  # DDP101
        print("step %d, loss %.3f" % (step, loss))  # DDP101
        print("step {}, loss {:.3f}".format(step, loss))  # DDP101
        text = f"{step}: {loss:.3f}"  # DDP101
        logger.info("loss %s", loss)  # DDP101
        writer.add_scalar("train/loss", loss, step)  # DDP101
        print(text, hits, top, value, as_float, above, table.mean())
    return running / len(loader)


def progress_bar(model, loader, criterion, optimizer, device):
    bar = tqdm(loader)
    for images, labels in bar:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        bar.set_description(f"loss {loss.item():.3f}")  # DDP101
        bar.set_postfix(
            loss=loss,  # DDP101
            lr=optimizer.param_groups[0]["lr"],
        )


def one_statement_one_finding(model, loader, criterion, optimizer, device):
    history = []
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        losses = {"main": criterion(model(images), labels), "norm": model.weight.norm()}
        total = losses["main"] + 0.01 * losses["norm"]
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        history.append((losses["main"].item(), losses["norm"].item()))  # DDP101
        print({name: value.item() for name, value in losses.items()})  # DDP101
    return history


def number_is_known_afterwards(model, loader, criterion, optimizer, device):
    """The read is one finding; what is done with the number afterwards is none."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        value = loss.item()  # DDP101
        if not math.isfinite(value):
            print("stopping, the loss is", loss)
            sys.exit(1)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(value, f"{value:.3f}", float(value), np.isnan(value))


def train_batch(model, images, labels, criterion, optimizer):
    optimizer.zero_grad()
    loss = criterion(model(images), labels)
    loss.backward()
    optimizer.step()
    return loss.item()  # DDP101


def step_in_a_helper(model, loader, criterion, optimizer, device):
    total = 0.0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        total += train_batch(model, images, labels, criterion, optimizer)
    return total


class MetricLogger:
    """Takes numbers and tensors alike, and gets a tensor below."""

    def __init__(self):
        self.totals = {}

    def update(self, **values):
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                value = value.item()  # DDP101
            self.totals[name] = self.totals.get(name, 0.0) + value


class NumberLogger:
    """The same, but it only ever gets numbers."""

    def __init__(self):
        self.totals = {}

    def update(self, **values):
        for name, value in values.items():
            if isinstance(value, torch.Tensor):
                value = value.item()
            self.totals[name] = self.totals.get(name, 0.0) + value


class Recorder(dict):
    def __setitem__(self, name, value):
        super().__setitem__(name, value.item() if torch.is_tensor(value) else value)  # DDP101


def meters(model, loader, criterion, optimizer, device):
    metrics = MetricLogger()
    numbers = NumberLogger()
    recorder = Recorder()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        metrics.update(loss=loss, lr=optimizer.param_groups[0]["lr"])
        numbers.update(lr=optimizer.param_groups[0]["lr"], seen=images.size(0))
        recorder["loss"] = loss
    return metrics, numbers, recorder


class Trainer:
    """The loop, the step and the log each in a method of their own."""

    def __init__(self, model, loader, optimizer, device, every):
        self.model = model
        self.loader = loader
        self.optimizer = optimizer
        self.device = device
        self.every = every
        self.criterion = nn.CrossEntropyLoss()
        self.step = 0
        self.total = 0.0

    def run(self):
        for images, labels in self.loader:
            self.step += 1
            loss = self.train_step(images, labels)
            self.log(loss)
            self.log_sometimes(loss)
            if self.step % self.every == 0:
                self.report(loss)

    def train_step(self, images, labels):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(images), labels)
        loss.backward()
        self.optimizer.step()
        return loss

    def log(self, loss):
        self.total += loss.item()  # DDP101

    def log_sometimes(self, loss):
        if self.step % self.every != 0:
            return
        print(loss.item())

    def report(self, loss):
        print(f"{self.step}: {loss.item():.3f}")


def gated(model, loader, criterion, optimizer, device, args):
    last_log = time.time()
    last = len(loader) - 1
    running = torch.zeros((), device=device)
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        running += loss.detach()
        if step % args.log_every == 0:
            print(loss.item())
        if not (step + 1) % 50:
            print(running.item())
        if step % args.log_every == 0 or step == last:
            print(f"{step}: {loss:.3f}")
        log_now = step == 0 or (step + 1) % args.log_every == 0
        if log_now and args.verbose:
            print(float(loss))
        if time.time() - last_log > 10:
            print(loss.item())
            last_log = time.time()
        if step == 0:
            print("first loss", loss.item())
        if step in (10, 100, 1000):
            print(loss.item())
    return running.item() / len(loader)


def gated_by_continue(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        if step % args.log_every:
            continue
        print(loss.item())


def per_optimizer_step(model, loader, criterion, optimizer, device, args):
    window = torch.zeros((), device=device)
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels) / args.accumulate
        window += loss.detach()
        loss.backward()
        if (step + 1) % args.accumulate == 0:
            optimizer.step()
            optimizer.zero_grad()
            print(window.item())
            window.zero_()


def already_on_the_host(model, loader, criterion, optimizer, device, args):
    started = time.time()
    for step, (images, labels) in enumerate(loader):
        counts = labels.tolist()
        classes = np.unique(labels.numpy()).size
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        elapsed = int(time.time() - started)
        weight = np.float32(0.5).item()
        draw = torch.randint(10, ()).item()
        rate = float(optimizer.param_groups[0]["lr"])
        seen = int(images.shape[0]) * step + images.size(0) + len(counts) + images.numel()
        print(step, elapsed, weight, draw, rate, seen, classes, float(args.lr), loss.shape)


def copy_without_waiting(model, loader, criterion, optimizer, device):
    pending = None
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        pending = loss.detach().to("cpu", non_blocking=True)
    return pending


@torch.no_grad()
def evaluate(model, loader, criterion, device):
    model.eval()
    total, correct = 0.0, 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        logits = model(images)
        total += criterion(logits, labels).item()
        correct += (logits.argmax(1) == labels).sum().item()
    model.train()
    return total / len(loader), correct


def evaluates_now_and_then(model, loader, criterion, optimizer, device, args):
    for step, (images, labels) in enumerate(loader):
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels)
        loss.backward()
        optimizer.step()
        if step % args.eval_every == 0:
            print(evaluate(model, loader, criterion, device))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--log-every", type=int, default=100)
    parser.add_argument("--eval-every", type=int, default=1000)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--verbose", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
    writer = SummaryWriter()
    for _ in range(3):
        every_way_to_read(model, loader, criterion, optimizer, device, writer)
        progress_bar(model, loader, criterion, optimizer, device)
        one_statement_one_finding(model, loader, criterion, optimizer, device)
        number_is_known_afterwards(model, loader, criterion, optimizer, device)
        step_in_a_helper(model, loader, criterion, optimizer, device)
        meters(model, loader, criterion, optimizer, device)
        Trainer(model, loader, optimizer, device, args.log_every).run()
        gated(model, loader, criterion, optimizer, device, args)
        gated_by_continue(model, loader, criterion, optimizer, device, args)
        per_optimizer_step(model, loader, criterion, optimizer, device, args)
        already_on_the_host(model, loader, criterion, optimizer, device, args)
        copy_without_waiting(model, loader, criterion, optimizer, device)
        evaluates_now_and_then(model, loader, criterion, optimizer, device, args)


if __name__ == "__main__":
    main()
