"""Lightning tells the sampler of the loaders that it asks for."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 10)

    def training_step(self, batch, batch_idx):
        inputs, targets = batch
        return nn.functional.cross_entropy(self.layer(inputs), targets)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)

    def train_dataloader(self):
        dataset = TensorDataset(torch.randn(512, 32), torch.randint(10, (512,)))
        sampler = DistributedSampler(dataset)
        return DataLoader(dataset, batch_size=32, sampler=sampler, num_workers=4)


if __name__ == "__main__":
    trainer = L.Trainer(devices=2, strategy="ddp", max_epochs=90, use_distributed_sampler=False)
    trainer.fit(Classifier())
