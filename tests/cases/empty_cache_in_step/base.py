import torch


class BaseTrainer:
    def __init__(self, model, optimizer, device):
        self.model = model
        self.optimizer = optimizer
        self.device = device

    def loss(self, batch):
        raise NotImplementedError

    def fit(self, loader):
        for batch in loader:
            self.optimizer.zero_grad()
            self.loss(batch).backward()
            self.optimizer.step()
            self.after_step()

    def after_step(self):
        torch.cuda.empty_cache()  # DDP104

    def after_epoch(self):
        torch.cuda.empty_cache()
