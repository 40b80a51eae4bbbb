"""Train the detector: python train.py ROOT."""

import sys

import torch
from torch.utils.data import DataLoader

from detection.model import GridDetector, detection_loss
from detection.mosaic import MosaicDataset


def main(root, epochs=100):
    loader = DataLoader(
        MosaicDataset(root), batch_size=16, shuffle=True, num_workers=8, pin_memory=True
    )
    model = GridDetector().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        for step, (images, targets) in enumerate(loader):
            images = images.cuda(non_blocking=True).float() / 255
            loss = detection_loss(model(images), targets.cuda(non_blocking=True))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                print(f"epoch {epoch} step {step} loss {loss.item():.4f}")
        torch.save(model.state_dict(), "detector.pt")


if __name__ == "__main__":
    main(sys.argv[1])
