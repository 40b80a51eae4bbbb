"""PyTorch 1.13 has the new `autocast`, and no new `GradScaler`."""

import torch


def step(model, images, labels, criterion, optimizer):
    scaler = torch.cuda.amp.GradScaler()
    optimizer.zero_grad()
    with torch.cuda.amp.autocast():  # DDP211
        loss = criterion(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
