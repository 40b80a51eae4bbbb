"""PyTorch 1.13 has the new `autocast`, and does not warn of the old one."""

import torch


def step(model, images, labels, criterion, optimizer):
    scaler = torch.cuda.amp.GradScaler()
    optimizer.zero_grad()
    with torch.cuda.amp.autocast():
        loss = criterion(model(images), labels)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
