"""A way around what another device lacks, a message of an assertion, attributes of optimizers."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def around_what_is_missing(images):
    on_mps = images.device.type == "mps"
    if on_mps:
        images = images.cpu()
    return torch.fft.rfft(images)


def spectrum(images):
    on_gpu = images.device.type == "cuda"
    if images.device.type in ("cpu", "mps"):
        print(f"{images}")
    return torch.fft.rfft(images.cpu() if on_gpu else images).abs()  # DDP101


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(17, 10)

    def forward(self, images):
        assert images.dim() == 2, f"no batch: {images}"
        return self.head(around_what_is_missing(images).abs() + spectrum(images))


def build(net):
    return torch.optim.AdamW(net.parameters(), lr=0.1)


def train(net, optimizer, loader):
    for images, labels in loader:
        try:
            rate = float(optimizer.lr)
        except AttributeError:
            rate = optimizer.param_groups[0]["lr"]
        loss = nn.functional.cross_entropy(net(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"{rate}")
        state = optimizer.state_dict()["state"]
        for key in state:
            average = state[key].get("exp_avg")
            print(float(average.abs().mean()))  # DDP101


def main():
    net = Net().cuda()
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    train(net, build(net), DataLoader(data, batch_size=64, num_workers=4))
