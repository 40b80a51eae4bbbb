"""What programs without DDP have in its place."""

import torch
import torch.distributed as dist


def average(model):
    size = dist.get_world_size()
    if size == 1:
        return
    for parameter in model.parameters():
        if parameter.grad is not None:
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
            parameter.grad.div_(size)


def sum_all(gradients):
    for gradient in gradients:
        dist.all_reduce(gradient)


def gather_flat(model):
    flat = torch.cat([p.grad.view(-1) for p in model.parameters()])
    dist.all_reduce(flat, op=dist.ReduceOp.SUM)
    flat /= dist.get_world_size()
    offset = 0
    for p in model.parameters():
        p.grad.copy_(flat[offset : offset + p.numel()].view_as(p.grad))
        offset += p.numel()
