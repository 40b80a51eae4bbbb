"""A value that is to be averaged over the ranks is logged on one of them."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 10)

    def training_step(self, batch, batch_idx):
        inputs, targets = batch
        loss = nn.functional.cross_entropy(self.layer(inputs), targets)
        if self.trainer.is_global_zero:
            self.log("first", loss, sync_dist=True)  # DDP501
            self.log("second", loss, rank_zero_only=True)
        self.log("third", loss, sync_dist=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


if __name__ == "__main__":
    dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
    loader = DataLoader(dataset, batch_size=32, shuffle=True, num_workers=4)
    L.Trainer(devices=2, strategy="ddp", max_epochs=3).fit(Classifier(), loader)
