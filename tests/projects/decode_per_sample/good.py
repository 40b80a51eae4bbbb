"""Fine-tune a ResNet on photos that are decoded once, before training."""

import argparse
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import models
from torchvision.transforms import v2 as transforms

SIZE = 256


def decode_all(root, target):
    """Write every photo, resized, into one array of bytes."""
    files = sorted(Path(root).glob("*/*.jpg"))
    names = sorted({path.parent.name for path in files})
    pixels = np.lib.format.open_memmap(
        target / "pixels.npy", mode="w+", dtype=np.uint8, shape=(len(files), 3, SIZE, SIZE)
    )
    for number, path in enumerate(files):
        image = Image.open(path).convert("RGB").resize((SIZE, SIZE))
        pixels[number] = np.asarray(image).transpose(2, 0, 1)
    np.save(target / "labels.npy", np.array([names.index(path.parent.name) for path in files]))


class DecodedPhotos(Dataset):
    def __init__(self, folder):
        self.pixels = np.load(folder / "pixels.npy", mmap_mode="r")
        self.labels = np.load(folder / "labels.npy")

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.pixels[index].copy()), int(self.labels[index])


# Applied to whole batches, on the GPU.
augment = nn.Sequential(
    transforms.RandomResizedCrop(224, scale=(0.2, 1.0), antialias=True),
    transforms.GaussianBlur(23, sigma=(0.1, 2.0)),
    transforms.RandomHorizontalFlip(),
    transforms.ToDtype(torch.float32, scale=True),
    transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--decoded", type=Path, default=Path("decoded"))
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args()

    if not (args.decoded / "labels.npy").exists():
        args.decoded.mkdir(parents=True, exist_ok=True)
        decode_all(args.root, args.decoded)

    device = torch.device("cuda")
    dataset = DecodedPhotos(args.decoded)
    loader = DataLoader(
        dataset, batch_size=args.batch_size, shuffle=True, num_workers=8, pin_memory=True
    )
    model = models.resnet50(num_classes=int(dataset.labels.max()) + 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        running = torch.zeros((), device=device)
        for images, labels in loader:
            images = augment(images.to(device, non_blocking=True))
            labels = labels.to(device, non_blocking=True)
            loss = criterion(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            running += loss.detach()
        print(f"epoch {epoch}: {running.item() / len(loader):.4f}")
    torch.save(model.state_dict(), "photos.pt")


if __name__ == "__main__":
    main()
