"""The game of the two, with the optimizers in our own hands."""

import torch
from lightning.pytorch import LightningModule
from torch.nn.functional import softplus

from .networks import Critic, Generator


class Adversarial(LightningModule):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = Generator()
        self.critic = Critic()
        self.history = {"critic": [], "generator": []}

    def configure_optimizers(self):
        return (
            torch.optim.Adam(self.generator.parameters(), lr=2e-4, betas=(0.5, 0.999)),
            torch.optim.Adam(self.critic.parameters(), lr=2e-4, betas=(0.5, 0.999)),
        )

    def training_step(self, batch, batch_idx):
        (real,) = batch
        generator_optimizer, critic_optimizer = self.optimizers()
        fake = self.generator(torch.randn(len(real), self.generator.code, device=self.device))

        critic_loss = softplus(self.critic(fake.detach())).mean()
        critic_loss = critic_loss + softplus(-self.critic(real)).mean()
        critic_optimizer.zero_grad()
        self.manual_backward(critic_loss)
        critic_optimizer.step()

        generator_loss = softplus(-self.critic(fake)).mean()
        generator_optimizer.zero_grad()
        self.manual_backward(generator_loss)
        generator_optimizer.step()
        self.remember(critic=critic_loss, generator=generator_loss)

    def remember(self, **losses):
        for name, loss in losses.items():
            self.history[name].append(float(loss))  # DDP101

    def on_train_epoch_end(self):
        self.export(f"generator-{self.current_epoch}.pt")

    def export(self, path):
        torch.save(self.generator.state_dict(), path)  # DDP401
