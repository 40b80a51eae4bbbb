"""Lightning owns the loop, but what a step does is still the user's."""

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self, classes=10, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
        self.train_losses = []
        self.net = nn.Sequential(
            nn.Conv2d(3, 64, 3, stride=2),
            nn.BatchNorm2d(64),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(64, classes),
        )

    def forward(self, images):
        return self.net(images)

    def training_step(self, batch, batch_idx):
        images, labels = batch
        logits = self(images)
        loss = F.cross_entropy(logits, labels)
        self.train_losses.append(loss.item())  # DDP101
        if torch.isnan(loss):  # DDP102
            raise RuntimeError(f"NaN loss in batch {batch_idx}")  # DDP502
        self.log("train/loss", loss)
        return loss

    def on_train_epoch_end(self):
        mean = torch.tensor(self.train_losses, device=self.device).mean()
        if self.trainer.is_global_zero:
            self.log("train/mean_loss", mean, sync_dist=True)  # DDP501
        self.train_losses.clear()

    def validation_step(self, batch, batch_idx):
        images, labels = batch
        logits = self(images)
        self.log("val/accuracy", (logits.argmax(1) == labels).float().mean(), sync_dist=True)

    def on_validation_epoch_end(self):
        torch.save(self.net.state_dict(), "newest.pt")  # DDP401

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)


def load(path, split):
    with np.load(path) as arrays:
        images = torch.from_numpy(arrays[f"{split}_images"]).float() / 255
        return TensorDataset(images, torch.from_numpy(arrays[f"{split}_labels"]).long())


def main():
    train_set, val_set = load("images.npz", "train"), load("images.npz", "val")
    train_loader = DataLoader(train_set, batch_size=128, shuffle=True, num_workers=4)
    val_loader = DataLoader(val_set, batch_size=128, num_workers=4)
    trainer = L.Trainer(accelerator="gpu", devices=4, strategy="ddp", max_epochs=30)
    trainer.fit(Classifier(), train_loader, val_loader)


if __name__ == "__main__":
    main()
