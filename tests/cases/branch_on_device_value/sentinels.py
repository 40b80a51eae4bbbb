"""A number that stands for "there is no loss in this step" is asked for, not the value."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def critic_loss(critic, step, real, fake):
    if (step + 1) % 10 == 0:
        loss = critic(real).mean() - critic(fake).mean()
    else:
        loss = 0
    return loss, step


class Penalty(nn.Module):
    """Gives nothing at most steps."""

    def __init__(self, critic):
        super().__init__()
        self.critic = critic

    def forward(self, step, real):
        if len(real) < 2:
            return None
        if step % 16 == 0:
            size = self.critic(real).square().mean()
        else:
            size = 0
        return size, real


def train(loader, generator, critic, optimizer, other, given):
    for step, (real, _) in enumerate(loader):
        real = real.cuda()
        fake = generator(torch.randn_like(real))
        loss = -critic(fake).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        wrong, _ = critic_loss(critic, step, real, fake.detach())
        if wrong != 0:
            other.zero_grad()
            wrong.backward()
            other.step()
        penalty = None
        if step % 4 == 0:
            penalty = critic(real).square().mean()
        if penalty:
            print("a penalty")
        extra = 0.0
        if step % 8 == 0:
            extra = critic(real).abs().mean()
        if extra == 0.0:
            print("no extra")
        if extra > 3:  # DDP102
            print("much")
        found = given(step, real)
        if found is None:
            continue
        size, _ = found
        if size != 0:
            size.backward()
        plain = critic(real).abs().mean()
        if plain == 0:  # DDP102
            print("nothing")


data = TensorDataset(torch.randn(4096, 8), torch.randint(3, (4096,)))
loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=4)
generator, critic = nn.Linear(8, 8).cuda(), nn.Linear(8, 1).cuda()
optimizer = torch.optim.SGD(generator.parameters(), lr=0.1)
other = torch.optim.SGD(critic.parameters(), lr=0.1)
train(loader, generator, critic, optimizer, other, Penalty(critic))
