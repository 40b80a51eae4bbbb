"""A model that is only run: there are no gradients to gather."""

import torch
from torch import nn

model = nn.Linear(64, 8).cuda()
model.load_state_dict(torch.load("last.pt", map_location="cuda"))
print(sum(parameter.numel() for parameter in model.parameters()))
model = nn.DataParallel(model)
model.eval()
with torch.no_grad():
    for _ in range(100):
        print(model(torch.randn(256, 64, device="cuda")).mean())
