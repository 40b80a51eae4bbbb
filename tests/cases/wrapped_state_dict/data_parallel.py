"""DataParallel has the prefix too."""

import torch
from torch import nn

model = nn.DataParallel(nn.Linear(32, 10).cuda())  # DDP510
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 32, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "last.pt")  # DDP403
