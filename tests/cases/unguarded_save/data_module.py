"""Lightning prepares data in one process; what a model writes after an epoch, all of them do."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Points(L.LightningDataModule):
    def prepare_data(self):
        torch.save(torch.randn(512, 32), "points.pt")

    def train_dataloader(self):
        points = torch.load("points.pt", map_location="cpu")
        return DataLoader(TensorDataset(points), batch_size=32, shuffle=True, num_workers=4)


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 10)

    def training_step(self, batch, batch_idx):
        return self.layer(batch[0]).square().mean()

    def on_train_epoch_end(self):
        torch.save(self.layer.state_dict(), "layer.pt")  # DDP401

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    L.Trainer(devices=2, strategy="ddp", max_epochs=3).fit(Model(), Points())
