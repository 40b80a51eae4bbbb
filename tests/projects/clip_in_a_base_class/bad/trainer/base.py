"""The loop, without a precision."""

import torch


class Trainer:
    def __init__(self, model, optimizer, max_norm=None):
        self.model = model
        self.optimizer = optimizer
        self.max_norm = max_norm
        self.device = next(model.parameters()).device

    def fit(self, loader, epochs):
        for _ in range(epochs):
            self.model.train()
            for batch in loader:
                self.optimizer.zero_grad()
                self.train_step(*(tensor.to(self.device) for tensor in batch))

    def train_step(self, inputs, targets):
        loss = self.loss(inputs, targets)
        loss.backward()
        self.limit_gradients()
        self.optimizer.step()

    def limit_gradients(self):
        if self.max_norm is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.max_norm)  # DDP201

    def loss(self, inputs, targets):
        return torch.nn.functional.mse_loss(self.model(inputs), targets)
