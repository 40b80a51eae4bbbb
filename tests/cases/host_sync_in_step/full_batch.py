"""A step is an epoch over all data at once, and the model is evaluated after each."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    right = 0
    for features, labels in loader:
        right += (model(features.cuda()).argmax(1) == labels.cuda()).sum().item()
    model.train()
    return right


def validate(model, features):
    model.eval()
    with torch.no_grad():
        return score(model(features))


def score(logits):
    return logits.mean().item()


@torch.no_grad()
def accuracy(logits, labels):
    """Of the step itself."""
    return (logits.argmax(1) == labels).float().mean().item()  # DDP101


def distilled(teacher, logits, features):
    teacher.eval()
    wanted = teacher(features)
    print(wanted.mean().item())  # DDP101
    return nn.functional.mse_loss(logits, wanted)


def train(model, teacher, loader, features, labels):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(200):
        logits = model(features)
        loss = nn.functional.cross_entropy(logits, labels) + distilled(teacher, logits, features)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(accuracy(logits, labels), evaluate(model, loader), validate(model, features))


held_out = TensorDataset(torch.randn(64, 8), torch.randint(3, (64,)))
train(
    nn.Linear(8, 3).cuda(),
    nn.Linear(8, 3).cuda(),
    DataLoader(held_out, batch_size=8, num_workers=4),
    torch.randn(64, 8).cuda(),
    torch.randint(3, (64,)).cuda(),
)
