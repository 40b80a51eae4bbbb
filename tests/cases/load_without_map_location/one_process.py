"""One process, one GPU: where else should it go."""

import torch
from torch import nn

model = nn.Linear(32, 10).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model.load_state_dict(torch.load("last.pt"))
for _ in range(1000):
    loss = model(torch.randn(32, 32, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(model.state_dict(), "last.pt")
