"""The loop."""

import math

import torch
import torch.distributed as dist

from .checkpoint import Checkpoints, TrainState
from .data import build_loader
from .model import Decoder, cross_entropy
from .parallel import dist_mean, shard


class Trainer:
    def __init__(self, config, device):
        self.config = config
        self.device = device
        self.loader = build_loader(config)
        self.model = shard(Decoder(config).to(device))
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=config.lr)
        self.scheduler = torch.optim.lr_scheduler.LambdaLR(self.optimizer, self.warm_up)
        self.state = TrainState(self.model, self.optimizer, self.scheduler)
        self.checkpoints = Checkpoints(config.folder, config.checkpoint_freq)
        self.checkpoints.load_newest(self.state)

    def warm_up(self, step):
        return min(1.0, (step + 1) / self.config.warmup)

    def batches(self):
        for tokens, labels in self.loader:
            yield tokens.to(self.device), labels.to(self.device)

    def forward_backward(self, tokens, labels):
        loss = cross_entropy(self.model(tokens), labels) / self.config.accumulate
        loss.backward()
        return dist_mean(loss)

    def train_step(self, batches):
        self.optimizer.zero_grad()
        losses = []
        for micro_step in range(self.config.accumulate):
            self.model.set_requires_gradient_sync(micro_step == self.config.accumulate - 1)
            losses.append(self.forward_backward(*next(batches)))
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_norm)
        self.optimizer.step()
        self.scheduler.step()
        self.state.step += 1
        self.log(sum(losses), norm)

    def log(self, mean, norm):
        if dist.get_rank() == 0 and self.state.step % self.config.log_freq == 0:
            norm = norm.full_tensor().item()  # DDP501
            print(f"step {self.state.step}: loss {mean:.4f}, norm {norm:.3f}")
        if not math.isfinite(mean):
            raise FloatingPointError(f"the loss is {mean}")

    def train(self):
        batches = self.batches()
        while self.state.step < self.config.steps:
            self.train_step(batches)
            self.checkpoints.maybe_save(self.state)
