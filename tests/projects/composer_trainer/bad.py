"""Composer trains, but a callback runs on every rank and after every batch.

composer -n 8 bad.py
"""

import numpy as np
import torch
import torch.nn.functional as F
from composer import Callback, ComposerModel, Trainer
from composer.utils import dist
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tokens(Dataset):
    def __init__(self, path, length=1024):
        self.tokens = np.memmap(path, dtype=np.uint16, mode="r")
        self.length = length

    def __len__(self):
        return len(self.tokens) // self.length

    def __getitem__(self, index):
        start = index * self.length
        return torch.from_numpy(self.tokens[start : start + self.length].astype(np.int64))


class LanguageModel(ComposerModel):
    def __init__(self, words=50_368, width=768):
        super().__init__()
        layer = nn.TransformerEncoderLayer(width, 12, batch_first=True, norm_first=True)
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.TransformerEncoder(layer, 12)
        self.head = nn.Linear(width, words)

    def forward(self, batch):
        mask = nn.Transformer.generate_square_subsequent_mask(batch.shape[1], batch.device)
        return self.head(self.layers(self.embedding(batch), mask=mask, is_causal=True))

    def loss(self, outputs, batch):
        return F.cross_entropy(outputs[:, :-1].flatten(0, 1), batch[:, 1:].flatten())


class Perplexity(Callback):
    def batch_end(self, state, logger):
        logger.log_metrics({"perplexity": state.loss.exp().item()})  # DDP101

    def epoch_end(self, state, logger):
        embedding = state.model.module.embedding.weight.detach().cpu()
        torch.save(embedding, "embedding.pt")  # DDP401
        if dist.get_global_rank() == 0:
            dist.barrier()  # DDP501


def main():
    dataset = Tokens("train.bin")
    loader = DataLoader(
        dataset,
        batch_size=32,
        sampler=dist.get_sampler(dataset, shuffle=True),
        num_workers=4,
        drop_last=True,
    )
    model = LanguageModel()
    trainer = Trainer(
        model=model,
        train_dataloader=loader,
        optimizers=torch.optim.AdamW(model.parameters(), lr=6e-4),
        max_duration="2ep",
        precision="amp_bf16",
        device_train_microbatch_size=4,
        save_folder="checkpoints",
        save_interval="1000ba",
        callbacks=[Perplexity()],
    )
    trainer.fit()
    trainer.close()


if __name__ == "__main__":
    main()
