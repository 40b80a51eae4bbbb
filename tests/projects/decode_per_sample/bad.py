"""Fine-tune a ResNet on a folder of photos, on one GPU."""

import argparse
from pathlib import Path

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import models, transforms


class PhotoDataset(Dataset):
    def __init__(self, root, transform=None):
        self.files = sorted(Path(root).glob("*/*.jpg"))
        names = sorted({path.parent.name for path in self.files})
        self.label_of = {name: number for number, name in enumerate(names)}
        self.transform = transform

    def __len__(self):
        return len(self.files)

    def __getitem__(self, index):
        path = self.files[index]
        image = Image.open(path).convert("RGB")  # DDP302
        if self.transform is not None:
            image = self.transform(image)  # DDP303
        return image, self.label_of[path.parent.name]


train_transform = transforms.Compose(
    [
        transforms.RandomResizedCrop(224, scale=(0.2, 1.0)),
        transforms.RandomApply([transforms.GaussianBlur(23, sigma=(0.1, 2.0))], p=0.5),
        transforms.RandomHorizontalFlip(),
        transforms.ToTensor(),
        transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
    ]
)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("root")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=128)
    args = parser.parse_args()

    device = torch.device("cuda")
    dataset = PhotoDataset(args.root, transform=train_transform)
    loader = DataLoader(
        dataset, batch_size=args.batch_size, shuffle=True, num_workers=8, pin_memory=True
    )
    model = models.resnet50(num_classes=len(dataset.label_of)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    criterion = nn.CrossEntropyLoss()

    for epoch in range(args.epochs):
        running = torch.zeros((), device=device)
        for images, labels in loader:
            images = images.to(device, non_blocking=True)
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
