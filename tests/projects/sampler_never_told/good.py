"""Fit simulated trajectories with DDP: torchrun --standalone --nproc-per-node gpu good.py 50 10"""

import argparse
import os

import torch
import torch.nn.functional as F
from torch.distributed import destroy_process_group, init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler


class Trajectories(Dataset):
    def __init__(self, count):
        self.states = torch.randn(count, 20)
        self.energies = self.states.square().sum(1, keepdim=True)

    def __len__(self):
        return len(self.states)

    def __getitem__(self, index):
        return self.states[index], self.energies[index]


class Trainer:
    def __init__(self, model, train_data, optimizer, save_every):
        self.gpu_id = int(os.environ["LOCAL_RANK"])
        self.global_rank = int(os.environ["RANK"])
        self.model = DDP(model.to(self.gpu_id), device_ids=[self.gpu_id])
        self.train_data = train_data
        self.optimizer = optimizer
        self.save_every = save_every

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(source), targets)
        loss.backward()
        self.optimizer.step()

    def _run_epoch(self, epoch):
        if self.global_rank == 0:
            print(f"epoch {epoch} | steps {len(self.train_data)}")
        self.train_data.sampler.set_epoch(epoch)
        for source, targets in self.train_data:
            source = source.to(self.gpu_id, non_blocking=True)
            targets = targets.to(self.gpu_id, non_blocking=True)
            self._run_batch(source, targets)

    def _save_checkpoint(self, epoch):
        torch.save(self.model.module.state_dict(), f"checkpoint_{epoch}.pt")

    def train(self, max_epochs):
        for epoch in range(max_epochs):
            self._run_epoch(epoch)
            if self.global_rank == 0 and epoch % self.save_every == 0:
                self._save_checkpoint(epoch)


def load_train_objs():
    model = torch.nn.Linear(20, 1)
    return Trajectories(2048), model, torch.optim.SGD(model.parameters(), lr=1e-3)


def prepare_dataloader(dataset, batch_size):
    return DataLoader(
        dataset,
        batch_size=batch_size,
        pin_memory=True,
        num_workers=2,
        shuffle=False,
        sampler=DistributedSampler(dataset),
    )


def main(total_epochs, save_every, batch_size):
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    init_process_group(backend="nccl")
    dataset, model, optimizer = load_train_objs()
    trainer = Trainer(model, prepare_dataloader(dataset, batch_size), optimizer, save_every)
    trainer.train(total_epochs)
    destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("total_epochs", type=int)
    parser.add_argument("save_every", type=int)
    parser.add_argument("--batch-size", type=int, default=32)
    args = parser.parse_args()
    main(args.total_epochs, args.save_every, args.batch_size)
