"""Evaluation that records a graph for nothing, and all the ways of not doing so."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def with_grad(model, loader, criterion, device):
    model.eval()
    total, correct = 0.0, 0
    for images, labels in loader:  # DDP602
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        logits = model(images)
        total += criterion(logits, labels).item()
        correct += (logits.argmax(1) == labels).sum().item()
    model.train()
    return total / len(loader), correct


def predictions(model, loader, device):
    model.eval()
    found = []
    for step, (images, _) in enumerate(loader):  # DDP602
        images = images.to(device, non_blocking=True)
        found.append(model(images).argmax(1).cpu())
    model.train()
    return torch.cat(found)


class Evaluator:
    """The loop, the step and the switch to eval each in a method of their own."""

    def __init__(self, model, device):
        self.model = model
        self.device = device

    def run(self, loader):
        self.model.eval()
        correct = 0
        for images, labels in loader:  # DDP602
            correct += self.step(images, labels)
        self.model.train()
        return correct

    def step(self, images, labels):
        images = images.to(self.device, non_blocking=True)
        labels = labels.to(self.device, non_blocking=True)
        return (self.model(images).argmax(1) == labels).sum().item()


@torch.no_grad()
def decorated(model, loader, device):
    model.eval()
    correct = 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        correct += (model(images).argmax(1) == labels).sum().item()
    model.train()
    return correct


@torch.inference_mode()
def decorated_for_inference(model, loader, device):
    model.eval()
    correct = 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        correct += (model(images).argmax(1) == labels).sum().item()
    model.train()
    return correct


def around_the_loop(model, loader, device):
    model.eval()
    correct = 0
    with torch.no_grad():
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            correct += (model(images).argmax(1) == labels).sum().item()
    model.train()
    return correct


def around_the_forward(model, loader, device):
    model.eval()
    correct = 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        with torch.inference_mode(), torch.autocast("cuda"):
            logits = model(images)
        correct += (logits.argmax(1) == labels).sum().item()
    model.train()
    return correct


def by_its_caller(model, loader, device):
    model.eval()
    correct = 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        correct += (model(images).argmax(1) == labels).sum().item()
    model.train()
    return correct


def validate(model, loader, device):
    with torch.no_grad():
        return by_its_caller(model, loader, device)


def train_or_evaluate(model, loader, criterion, optimizer, device, train):
    """One loop for both: the graph is recorded when there is something to learn."""
    model.train(train)
    with torch.set_grad_enabled(train):
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            loss = criterion(model(images), labels)
            if train:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()


def chosen_context(model, loader, device, context):
    """Nobody calls this: what the context is cannot be known."""
    model.eval()
    correct = 0
    with context():
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            correct += (model(images).argmax(1) == labels).sum().item()
    model.train()
    return correct


def adversarial(model, loader, criterion, device):
    """Evaluates on inputs that its own gradients have moved: needs the graph."""
    model.eval()
    correct = 0
    for images, labels in loader:
        images = images.to(device, non_blocking=True).requires_grad_(True)
        labels = labels.to(device, non_blocking=True)
        loss = criterion(model(images), labels)
        (gradient,) = torch.autograd.grad(loss, images)
        with torch.no_grad():
            moved = images + 0.01 * gradient.sign()
            correct += (model(moved).argmax(1) == labels).sum().item()
    model.train()
    return correct


def frozen_statistics(model, head, loader, criterion, optimizer, device):
    """Training with batch statistics frozen: `eval` does not make it an evaluation."""
    model.eval()
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(head(model(images)), labels).backward()
        optimizer.step()


def looks_at_the_data(model, loader):
    """A loop over the loader without a forward pass."""
    model.eval()
    return sum(labels.numel() for _, labels in loader)


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, num_workers=4, pin_memory=True)
    train_loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    head = nn.Linear(10, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(3):
        train_or_evaluate(model, train_loader, criterion, optimizer, device, True)
        train_or_evaluate(model, loader, criterion, optimizer, device, False)
        frozen_statistics(model, head, train_loader, criterion, optimizer, device)
    print(with_grad(model, loader, criterion, device))
    print(predictions(model, loader, device))
    print(Evaluator(model, device).run(loader))
    print(decorated(model, loader, device), decorated_for_inference(model, loader, device))
    print(around_the_loop(model, loader, device), around_the_forward(model, loader, device))
    print(validate(model, loader, device), looks_at_the_data(model, loader))
    print(adversarial(model, loader, criterion, device))


if __name__ == "__main__":
    main()
