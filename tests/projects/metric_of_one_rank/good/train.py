"""torchrun --standalone --nproc-per-node 8 train.py"""

import os

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, Dataset, Subset
from torch.utils.data.distributed import DistributedSampler
from torchvision.models import mobilenet_v3_small

from evaluation import evaluate


class Arrays(Dataset):
    def __init__(self, path):
        with np.load(path) as arrays:
            self.images = torch.from_numpy(arrays["images"]).float() / 255
            self.labels = torch.from_numpy(arrays["labels"]).long()

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.images[index], self.labels[index]


def share(dataset):
    """Every world-size-th sample, beginning with this process's own."""
    return Subset(dataset, range(dist.get_rank(), len(dataset), dist.get_world_size()))


def main():
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
    torch.cuda.set_device(device)
    dist.init_process_group("nccl", device_id=device)
    train_set = Arrays("train.npz")
    sampler = DistributedSampler(train_set)
    train_loader = DataLoader(train_set, batch_size=128, sampler=sampler, num_workers=4)
    test_loader = DataLoader(share(Arrays("test.npz")), batch_size=128, num_workers=4)
    net = mobilenet_v3_small(num_classes=100).to(device)
    model = DDP(net, device_ids=[device])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=60)

    for epoch in range(60):
        sampler.set_epoch(epoch)
        for images, labels in train_loader:
            loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        accuracy = evaluate(net, test_loader, device)
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: {accuracy:.2%}")
    if dist.get_rank() == 0:
        torch.save(net.state_dict(), "mobilenet.pt")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
