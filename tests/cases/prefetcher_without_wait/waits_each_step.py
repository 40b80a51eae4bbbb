"""The last batch was copied before a step that the host waits for: it has arrived."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class StepsOnTheSideStream:
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
            batch = following
        yield batch


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for images, labels in StepsOnTheSideStream(loader):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        torch.cuda.synchronize()  # DDP103


if __name__ == "__main__":
    main()
