"""Before PyTorch 1.1 a scheduler began one step before the first."""

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
model = nn.Linear(32, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = StepLR(optimizer, 100)
for images, labels in DataLoader(data, batch_size=64, num_workers=4):
    scheduler.step()
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(images.cuda()), labels.cuda()).backward()
    optimizer.step()
