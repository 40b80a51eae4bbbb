"""What was made without recording goes into a loss, and has no graph to keep."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
teacher, model = nn.Linear(32, 10).to(device), nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def distance(scores, wanted):
    return (scores - wanted).square().mean()


wanted_scores, own_scores, penalties = [], [], []
for images, labels in loader:
    with torch.no_grad():
        wanted = teacher(images.to(device))
        penalty = wanted.square().mean()
    scores = model(images.to(device))
    loss = distance(scores, wanted) + penalty
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    wanted_scores.append(wanted)
    own_scores.append(scores)  # DDP601
    penalties.append(penalty)
