import torch


def careless(loss, model, optimizer, scaler, ends):
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  # DDP202
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if ends:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()


def careful(loss, model, optimizer, scaler, ends):
    scaler.scale(loss).backward()
    if not ends:
        return
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
