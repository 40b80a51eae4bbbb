"""The executor runs forward and backward, the trainer counts the window."""

import torch
from executor import AveragingExecutor, Executor
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, executor, optimizer, accumulate):
        self.executor = executor
        self.optimizer = optimizer
        self.accumulate = accumulate
        self.steps_since_update = 0

    def train_step(self, images, labels):
        self.executor.forward_backward(images, labels)
        self.steps_since_update += 1
        if self.steps_since_update == self.accumulate:
            self.optimizer.step()
            self.optimizer.zero_grad()
            self.steps_since_update = 0


def main():
    device = torch.device("cuda")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4, pin_memory=True)
    model = nn.Linear(32, 10).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    plain = Trainer(Executor(model), optimizer, accumulate=4)
    averaging = Trainer(AveragingExecutor(model, divide_by=4), optimizer, accumulate=4)
    for _ in range(3):
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            plain.train_step(images, labels)
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
            labels = labels.to(device, non_blocking=True)
            averaging.train_step(images, labels)


if __name__ == "__main__":
    main()
