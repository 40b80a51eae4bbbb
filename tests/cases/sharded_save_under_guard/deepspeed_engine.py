"""DeepSpeed: each rank writes its part."""

import deepspeed
import torch
import torch.distributed as dist
from torch import nn


class Trainer:
    def __init__(self, engine, rank):
        self.engine = engine
        self.rank = rank

    def save(self, tag):
        self.engine.save_checkpoint("out", tag=tag)  # DDP407

    def fit(self):
        for step in range(1000):
            inputs = torch.randn(32, 32, device=self.engine.device)
            self.engine.backward(self.engine(inputs).square().mean())
            self.engine.step()
            if step % 100 == 0 and self.rank == 0:
                self.save(f"step_{step}")


def main():
    model = nn.Linear(32, 10)
    config = {"train_micro_batch_size_per_gpu": 32, "zero_optimization": {"stage": 3}}
    engine, _, _, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), config=config
    )
    Trainer(engine, dist.get_rank()).fit()


if __name__ == "__main__":
    main()
