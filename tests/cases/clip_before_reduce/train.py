"""Gradients summed over the ranks by hand, clipped before that and after."""

import os

import torch
import torch.distributed as dist
from reducing import average, gather_flat, sum_all
from torch import nn
from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def in_the_loop(model, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        clip_grad_norm_(model.parameters(), 1.0)  # DDP213
        for _, parameter in model.named_parameters():
            dist.all_reduce(parameter.grad.data, op=dist.ReduceOp.SUM)
            parameter.grad.data /= dist.get_world_size()
        optimizer.step()


def by_value(model, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)  # DDP213
        average(model)
        optimizer.step()


def through_helpers(model, loader, optimizer):
    for inputs, targets in loader:
        backward_and_clip(model, nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()))
        average(model)
        optimizer.step()
        optimizer.zero_grad()


def backward_and_clip(model, loss):
    loss.backward()
    clip_grad_norm_(model.parameters(), 1.0)  # DDP213


def as_one_vector(model, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        clip_grad_norm_(model.parameters(), 1.0)  # DDP213
        gradients = [p.grad for p in model.parameters() if p.grad is not None]
        flat = _flatten_dense_tensors(gradients)
        dist.all_reduce(flat)
        flat /= dist.get_world_size()
        for gradient, summed in zip(
            gradients, _unflatten_dense_tensors(flat, gradients), strict=True
        ):
            gradient.copy_(summed)
        optimizer.step()


def as_a_list(model, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        clip_grad_norm_(model.parameters(), 1.0)  # DDP213
        sum_all([p.grad for p in model.parameters() if p.grad is not None])
        optimizer.step()


def only_at_the_end_of_a_window(model, loader, optimizer):
    for step, (inputs, targets) in enumerate(loader):
        loss = nn.functional.mse_loss(model(inputs.cuda()), targets.cuda())
        (loss / 4).backward()
        if (step + 1) % 4 == 0:
            clip_grad_norm_(model.parameters(), 1.0)  # DDP213
            average(model)
            optimizer.step()
            optimizer.zero_grad()


class Agent:
    """The model is an attribute, and the average a method in another file."""

    def __init__(self, model):
        self.model = model
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)

    def update(self, loader):
        for inputs, targets in loader:
            self.optimizer.zero_grad()
            nn.functional.mse_loss(self.model(inputs.cuda()), targets.cuda()).backward()
            clip_grad_norm_(self.model.parameters(), 1.0)  # DDP213
            self.average()
            self.optimizer.step()

    def average(self):
        for parameter in self.model.parameters():
            if parameter.grad is not None:
                dist.all_reduce(parameter.grad)
                parameter.grad.div_(dist.get_world_size())


# Right ones.


def averaged_first(model, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        average(model)
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def one_vector_first(model, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        gather_flat(model)
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def both_limits(model, loader, optimizer):
    """No rank is to dominate, and the average has its limit too."""
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        clip_grad_norm_(model.parameters(), 10.0)
        average(model)
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def averages_the_norm(model, loader, optimizer):
    """One process: what is summed is only shown."""
    for step, (inputs, targets) in enumerate(loader):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        average(model)
        norm = clip_grad_norm_(model.parameters(), 1.0)
        if step % 100 == 0:
            squares = torch.stack([p.grad.square().sum() for p in model.parameters()])
            dist.all_reduce(squares)
            dist.all_reduce(norm)
            dist.all_reduce(next(model.parameters()).grad.norm())
        optimizer.step()


def summed_by_the_wrapper(model, loader, local_rank):
    """DDP has summed within the backward; the second sum gives the same gradient again."""
    model = DistributedDataParallel(model, device_ids=[local_rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        average(model)
        optimizer.step()


def of_one_group(model, loader, optimizer, layers):
    """Ranks that share a layer: how it is cut is their affair."""
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        clip_grad_norm_(model.parameters(), 1.0)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=layers)
        optimizer.step()


def only_measures(model, loader, optimizer):
    for inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs.cuda()), targets.cuda()).backward()
        clip_grad_norm_(model.parameters(), float("inf"))
        average(model)
        optimizer.step()


def each_sample_by_itself(model, loader, optimizer):
    """Differential privacy: what each sample adds has a limit."""
    for inputs, targets in loader:
        sums = [torch.zeros_like(p) for p in model.parameters()]
        for one, target in zip(inputs.cuda(), targets.cuda(), strict=True):
            optimizer.zero_grad()
            nn.functional.mse_loss(model(one), target).backward()
            clip_grad_norm_(model.parameters(), 1.0)
            for total, parameter in zip(sums, model.parameters(), strict=True):
                total += parameter.grad
        for total, parameter in zip(sums, model.parameters(), strict=True):
            parameter.grad = total
            dist.all_reduce(parameter.grad)
        optimizer.step()


def of_another_model(model, critic, loader):
    """One model is summed over the ranks, the other lives on each by itself."""
    model_optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    critic_optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    for inputs, targets in loader:
        model_optimizer.zero_grad()
        critic_optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs.cuda()), targets.cuda())
        (loss + critic(inputs.cuda()).mean()).backward()
        clip_grad_norm_(critic.parameters(), 1.0)
        average(model)
        model_optimizer.step()
        critic_optimizer.step()


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    data = TensorDataset(torch.randn(4096, 32), torch.randn(4096, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=4)
    torch.manual_seed(0)
    model = nn.Linear(32, 1).cuda()
    critic = nn.Linear(32, 1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    layers = dist.new_group([0, 1])
    for epoch in range(3):
        sampler.set_epoch(epoch)
        in_the_loop(model, loader, optimizer)
        by_value(model, loader, optimizer)
        through_helpers(model, loader, optimizer)
        as_one_vector(model, loader, optimizer)
        as_a_list(model, loader, optimizer)
        only_at_the_end_of_a_window(model, loader, optimizer)
        Agent(model).update(loader)
        averaged_first(model, loader, optimizer)
        one_vector_first(model, loader, optimizer)
        both_limits(model, loader, optimizer)
        averages_the_norm(model, loader, optimizer)
        summed_by_the_wrapper(nn.Linear(32, 1).cuda(), loader, local_rank)
        of_one_group(model, loader, optimizer, layers)
        only_measures(model, loader, optimizer)
        each_sample_by_itself(model, loader, optimizer)
        of_another_model(model, critic, loader)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
