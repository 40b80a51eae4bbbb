"""A generator that sleeps inside `with torch.cuda.stream(...)` leaves that stream current."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class StepsOnTheSideStream:
    """All steps but the last run on the stream that copies; the last one waits for nothing."""

    def __init__(self, loader):
        self.loader = loader
        self.stream = torch.cuda.Stream()

    def __iter__(self):
        batch = None
        for images, labels in self.loader:
            with torch.cuda.stream(self.stream):
                following = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
                if batch is not None:
                    yield batch
                torch.cuda.current_stream().wait_stream(self.stream)
            batch = following
        yield batch  # DDP106


class LastOneWaits(StepsOnTheSideStream):
    def __iter__(self):
        batch = None
        for images, labels in self.loader:
            with torch.cuda.stream(self.stream):
                following = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
                if batch is not None:
                    yield batch
            batch = following
        torch.cuda.current_stream().wait_stream(self.stream)
        yield batch


class WaitsForItself(StepsOnTheSideStream):
    def __iter__(self):
        for images, labels in self.loader:
            self.stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
                torch.cuda.current_stream().wait_stream(self.stream)
            yield images, labels  # DDP106


class CopyWaitsForItself(StepsOnTheSideStream):
    def __iter__(self):
        for images, labels in self.loader:
            with torch.cuda.stream(self.stream):  # DDP106
                self.stream.wait_stream(torch.cuda.current_stream())
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
            torch.cuda.current_stream().wait_stream(self.stream)
            yield images, labels


class TheOtherStreamWaits(StepsOnTheSideStream):
    """What is asked for outside is the stream of the step, wherever it waits."""

    def __iter__(self):
        consuming = torch.cuda.current_stream()
        for images, labels in self.loader:
            self.stream.wait_stream(consuming)
            with torch.cuda.stream(self.stream):
                images = images.cuda(non_blocking=True)
                labels = labels.cuda(non_blocking=True)
                consuming.wait_stream(self.stream)
            yield images, labels


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batches in (
        StepsOnTheSideStream(loader),
        LastOneWaits(loader),
        WaitsForItself(loader),
        CopyWaitsForItself(loader),
        TheOtherStreamWaits(loader),
    ):
        for images, labels in batches:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
