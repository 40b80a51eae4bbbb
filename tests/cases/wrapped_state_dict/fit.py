"""`model` is the plain one here and `model_train` the wrapper: names are no proof."""

import torch
import torch.distributed as dist


def fit(model, model_train, optimizer, local_rank):
    for _ in range(1000):
        loss = model_train(torch.randn(32, 32, device=local_rank)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    if local_rank == 0 and dist.get_rank() == 0:
        torch.save(model.state_dict(), "last.pt")
