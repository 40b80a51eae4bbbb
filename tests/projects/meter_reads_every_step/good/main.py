"""Train a segmentation network on one GPU."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models.segmentation import fcn_resnet50

from engine import evaluate, train_one_epoch


class Tiles(Dataset):
    def __init__(self, split):
        self.images = np.load(f"{split}-images.npy", mmap_mode="r")
        self.masks = np.load(f"{split}-masks.npy", mmap_mode="r")

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index] / np.float32(255))
        return image, torch.from_numpy(self.masks[index].astype(np.int64))


def main():
    device = torch.device("cuda")
    train_loader = DataLoader(Tiles("train"), batch_size=8, shuffle=True, num_workers=6)
    test_loader = DataLoader(Tiles("test"), batch_size=8, num_workers=6)
    model = fcn_resnet50(num_classes=21).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, 30 * len(train_loader), 0.9)
    criterion = nn.CrossEntropyLoss(ignore_index=255)
    best = float("inf")
    for epoch in range(30):
        train_one_epoch(model, criterion, optimizer, scheduler, train_loader, device, epoch)
        loss = evaluate(model, criterion, test_loader, device)
        if loss < best:
            best = loss
            torch.save(model.state_dict(), "best.pt")


if __name__ == "__main__":
    main()
