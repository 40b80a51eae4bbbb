"""Of an object that was moved only its tensors are on the device."""

from dataclasses import dataclass

import graphs
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import AutoTokenizer

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
model = nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
tokenizer = AutoTokenizer.from_pretrained("gpt2")
ALL = "all kinds"


@dataclass
class Batch:
    images: torch.Tensor
    labels: torch.Tensor
    kind: str

    def to(self, where):
        return Batch(self.images.to(where), self.labels.to(where), self.kind)


class View:
    def __init__(self, base, start=0):
        if isinstance(base, View):
            self.base = base.base
            self.start = start + base.start
        else:
            self.base = base
            self.start = start

    def tail(self):
        start = max(0, self.start)
        return self.base[..., start:]


def collate(samples):
    images, labels = zip(*samples, strict=True)
    return Batch(torch.stack(images), torch.stack(labels), "train")


def update(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def batches():
    loader = DataLoader(data, batch_size=64, num_workers=4, collate_fn=collate)
    for batch in loader:
        batch = batch.to(device)
        update(nn.functional.cross_entropy(model(batch.images), batch.labels))
        print(f"a {batch.kind}")
        if batch.kind == "train":
            print(f"{batch.kind} of {len(batch.kind)}")
        if batch.labels.max() > 9:  # DDP102
            continue
        print(batch.labels.sum().item())  # DDP101
        print(batch.labels.tolist())  # DDP101


def features(graph, kind=ALL):
    if graph.number_of_kinds() != 1 and kind != ALL:
        raise ValueError
    return graph.nodes_of(kind)["x"]


def moved_graphs():
    for graph, labels in graphs.Loader(data):
        graph = graph.to(device)
        loss = nn.functional.cross_entropy(model(features(graph)), labels.to(device))
        update(loss)
        for kind in graph.kinds:
            if len(kind) > 3 and kind != graph.main_kind:
                print(f"kinds {graph.kinds}")
        print(f"loss {loss}")  # DDP101


def on_one_of(devices, number):
    """Where something goes does not go into the loss."""
    chosen = devices[number]
    net = nn.Linear(32, 10).to(chosen)
    for images, labels in DataLoader(data, batch_size=64, num_workers=4):
        images = images.to(chosen)
        start = torch.zeros((), device=chosen)
        loss = nn.functional.cross_entropy(net(images), labels.to(chosen)) + start
        update(loss)
        if images.device == chosen or chosen == 1:
            continue
        if loss != 1:  # DDP102
            continue


def views():
    for images, labels in DataLoader(data, batch_size=64, num_workers=4):
        images = View(View(images.to(device)), 2).tail()
        update(nn.functional.cross_entropy(model(images), labels.to(device)))


def words():
    for _ in range(1000):
        tokens = torch.randint(50257, (4, 32), device=device)
        if tokens[0, 1] == tokenizer.eos_token:
            continue
        if tokens[0, 1] == tokenizer.eos_token_id:  # DDP102
            continue
        update(model(tokens.float()).mean())


batches()
moved_graphs()
on_one_of(graphs.devices(), 1)
views()
words()
