"""Lightning owns the loop: it shards, zeroes, scales, clips, saves and tears down."""

import lightning as L
import numpy as np
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self, classes=10, lr=1e-3):
        super().__init__()
        self.save_hyperparameters()
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
        loss = F.cross_entropy(self(images), labels)
        self.log("train/loss", loss)
        if batch_idx % 100 == 0 and self.trainer.is_global_zero:
            print(f"step {self.global_step}: {loss.item():.4f}")
        return loss

    def validation_step(self, batch, batch_idx):
        images, labels = batch
        logits = self(images)
        self.log("val/loss", F.cross_entropy(logits, labels), sync_dist=True)
        self.log("val/accuracy", (logits.argmax(1) == labels).float().mean(), sync_dist=True)

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=self.hparams.lr)
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=30)
        return [optimizer], [scheduler]


class Images(L.LightningDataModule):
    def __init__(self, path, batch_size=128):
        super().__init__()
        self.path = path
        self.batch_size = batch_size

    def setup(self, stage):
        with np.load(self.path) as arrays:
            self.splits = {
                split: TensorDataset(
                    torch.from_numpy(arrays[f"{split}_images"]).float() / 255,
                    torch.from_numpy(arrays[f"{split}_labels"]).long(),
                )
                for split in ("train", "val")
            }

    def train_dataloader(self):
        return DataLoader(
            self.splits["train"], batch_size=self.batch_size, shuffle=True, num_workers=4
        )

    def val_dataloader(self):
        return DataLoader(self.splits["val"], batch_size=self.batch_size, num_workers=4)


def main():
    trainer = L.Trainer(
        accelerator="gpu",
        devices=4,
        strategy="ddp",
        precision="16-mixed",
        max_epochs=30,
        accumulate_grad_batches=4,
        gradient_clip_val=1.0,
        callbacks=[ModelCheckpoint(monitor="val/accuracy", mode="max", save_last=True)],
    )
    trainer.fit(Classifier(), datamodule=Images("images.npz"))
    trainer.save_checkpoint("classifier.ckpt")


if __name__ == "__main__":
    main()
