"""What is kept in steps that are named one by one is a handful of graphs; what is kept in each
step of a named epoch, or at each tenth step, grows."""

import torch
from torch import nn

CAPTURED = 11


def first_only(model, optimizer, batches, device):
    outputs, last, third, named, first = [], [], [], [], []
    for step in range(1000):
        for micro, images in enumerate(batches):
            output = model(images.to(device))
            output.mean().backward()
            if step == 0:
                outputs.append(output)
            else:
                with torch.no_grad():
                    outputs[micro].copy_(output)
        optimizer.step()
        optimizer.zero_grad()
        if step == CAPTURED:
            last.append(output)
        if not step:
            first.append(output)
        if step in (1, 2):
            named.append(output)
        if step != 3:
            continue
        third.append(output)
    return outputs, last, third, named, first


def counted(model, optimizer, batches, device):
    done = 0
    kept, final, firsts = [], [], []
    for images in batches:
        output = model(images.to(device))
        optimizer.zero_grad()
        output.mean().backward()
        optimizer.step()
        if done == 0:
            kept.append(output)
        if done == len(batches) - 1:
            final.append(output)
        if done == 0:
            keep(firsts, output)
        done += 1
    return kept, final, firsts


def keep(firsts, output):
    firsts.append(output)


def often(model, optimizer, batches, device, epochs):
    by_epoch, tenths, moving, others, many = [], [], [], [], []
    marks = range(0, 1000, 10)
    following = 0
    for epoch in range(epochs):
        for step, images in enumerate(batches):
            output = model(images.to(device))
            optimizer.zero_grad()
            output.mean().backward()
            optimizer.step()
            if epoch == 0:
                by_epoch.append(output)  # DDP601
            if step % 10 == 0:
                tenths.append(output)  # DDP601
            if step == following:
                moving.append(output)  # DDP601
                following += 10
            if step != 0:
                others.append(output)  # DDP601
            if step in marks:
                many.append(output)  # DDP601
    return by_epoch, tenths, moving, others, many


def main():
    device = torch.device("cuda")
    model = nn.Linear(8, 8).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [torch.randn(4, 8) for _ in range(4)]
    first_only(model, optimizer, batches, device)
    counted(model, optimizer, batches, device)
    often(model, optimizer, batches, device, 9)


main()
