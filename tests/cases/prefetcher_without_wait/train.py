import torch
from prefetch import Prefetcher
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Careless(Prefetcher):
    """Overrides the half that hands over, and forgets to wait."""

    def __iter__(self):
        self.batches = iter(self.loader)
        self.preload()
        while self.batch is not None:
            batch = self.batch
            self.release(batch)
            self.preload()
            yield batch  # DDP106


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    careful = Prefetcher(loader, device)
    careless = Careless(loader, device)
    for _ in range(3):
        for batches in (careful, careless):
            for images, labels in batches:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimizer.step()


if __name__ == "__main__":
    main()
