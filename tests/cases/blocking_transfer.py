"""Moving a batch: `pin_memory` and `non_blocking` only work together."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def pinned_but_blocking(model, criterion, optimizer, device, data):
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    for images, labels in loader:
        images = images.to(device)  # DDP105
        labels = labels.to(device)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def pinned_where_there_is_a_gpu(model, criterion, optimizer, device, data):
    loader = DataLoader(
        data,
        batch_size=64,
        shuffle=True,
        num_workers=4,
        pin_memory=torch.cuda.is_available(),
    )
    for step, (images, labels) in enumerate(loader):
        images, labels = images.cuda(), labels.cuda()  # DDP105
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def joined_or_converted(model, criterion, optimizer, device, data):
    """What is made of a pinned batch is not pinned; a view of it is."""
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    for views, labels in loader:
        views = torch.cat([views, views], dim=0)
        views = views.to(device)
        labels = labels.float()
        labels = labels.to(device)
        optimizer.zero_grad()
        criterion(model(views), labels).backward()
        optimizer.step()
    for images, labels in loader:
        images = images.view(-1, 32)
        images = images.to(device)  # DDP105
        labels = labels.to(device)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def a_dictionary(model, criterion, optimizer, device, data):
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    for batch in loader:
        batch = {name: tensor.to(device) for name, tensor in batch.items()}  # DDP105
        optimizer.zero_grad()
        criterion(model(batch["images"]), batch["labels"]).backward()
        optimizer.step()


def non_blocking_but_not_pinned(model, criterion, optimizer, device, data):
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
    for images, labels in loader:
        images = images.to(device, non_blocking=True)  # DDP105
        labels = labels.to(device, non_blocking=True)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def pinning_switched_off(model, criterion, optimizer, device, data):
    options = dict(batch_size=64, shuffle=True, num_workers=4, pin_memory=False)
    loader = DataLoader(data, **options)
    for images, labels in loader:
        images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)  # DDP105
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def both(model, criterion, optimizer, device, data):
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    weight = torch.ones(10).to(device)
    for images, labels in loader:
        images = images.to(device, torch.float32, True)
        labels = labels.to(device=device, non_blocking=True)
        optimizer.zero_grad()
        loss = criterion(model(images), labels) * weight.mean().to(torch.float32)
        loss.backward()
        optimizer.step()


def neither(model, criterion, optimizer, device, data):
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def not_known_here(loader, model, criterion, optimizer, device):
    """Nobody calls this: whether the loader pins cannot be known."""
    for images, labels in loader:
        images = images.to(device, non_blocking=True)
        labels = labels.to(device)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


class DeviceLoader:
    """Moves the batches itself; its users may call `.to` again, which then does nothing."""

    def __init__(self, loader, device):
        self.loader = loader
        self.device = device

    def __len__(self):
        return len(self.loader)

    def __iter__(self):
        for images, labels in self.loader:
            yield (
                images.to(self.device, non_blocking=True),
                labels.to(self.device, non_blocking=True),
            )


def moved_by_the_loader(model, criterion, optimizer, device, data):
    pinned = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    for images, labels in DeviceLoader(pinned, device):
        images, labels = images.to(device), labels.to(device)
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    model = nn.Linear(32, 10).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        pinned_but_blocking(model, criterion, optimizer, device, data)
        pinned_where_there_is_a_gpu(model, criterion, optimizer, device, data)
        joined_or_converted(model, criterion, optimizer, device, data)
        a_dictionary(model, criterion, optimizer, device, data)
        non_blocking_but_not_pinned(model, criterion, optimizer, device, data)
        pinning_switched_off(model, criterion, optimizer, device, data)
        both(model, criterion, optimizer, device, data)
        neither(model, criterion, optimizer, device, data)
        moved_by_the_loader(model, criterion, optimizer, device, data)


if __name__ == "__main__":
    main()
