"""A recipe in one file: the loss is read every micro-batch, and one rank asks for all shards."""

import os
import sys
import time

import torch
import torch.distributed as dist
import yaml
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler
from transformers import AutoModelForCausalLM


class FullFinetuneRecipe:
    def __init__(self, cfg):
        self.cfg = cfg
        self.device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        self.rank = dist.get_rank()
        self.is_rank_zero = self.rank == 0
        self.accumulate = cfg["gradient_accumulation_steps"]
        self.epochs_run = 0
        self.global_step = 0

    def setup(self):
        self.model = self._setup_model(self.cfg["model"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.cfg["lr"], fused=True)
        self.sampler, self.loader = self._setup_data(self.cfg["dataset"])

    def _setup_model(self, name):
        model = AutoModelForCausalLM.from_pretrained(name, torch_dtype=torch.bfloat16)
        model = model.to(self.device)
        for module in model.modules():
            if isinstance(module, nn.ModuleList):
                for layer in module:
                    fully_shard(layer)
        fully_shard(model)
        return model

    def _setup_data(self, path):
        archive = torch.load(path, map_location="cpu")
        dataset = TensorDataset(archive["tokens"], archive["labels"])
        sampler = DistributedSampler(dataset, shuffle=self.cfg["shuffle"], seed=0)
        loader = DataLoader(
            dataset,
            batch_size=self.cfg["batch_size"],
            sampler=sampler,
            num_workers=2,
            drop_last=True,
        )
        return sampler, loader

    def _loss_step(self, batch):
        tokens, labels = (tensor.to(self.device) for tensor in batch)
        logits = self.model(input_ids=tokens).logits[:, :-1].float()
        return nn.functional.cross_entropy(
            logits.flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100, reduction="sum"
        )

    def train(self):
        self.optimizer.zero_grad()
        began = time.perf_counter()
        for epoch in range(self.epochs_run, self.cfg["epochs"]):
            self.sampler.set_epoch(epoch)
            running_loss = 0.0
            num_tokens = torch.zeros((), device=self.device)
            for idx, batch in enumerate(self.loader):
                stepping = (idx + 1) % self.accumulate == 0
                self.model.set_requires_gradient_sync(stepping)
                loss = self._loss_step(batch)
                num_tokens += (batch[1][:, 1:] != -100).sum().to(self.device)
                running_loss += loss.item()  # DDP101
                loss.backward()
                if stepping:
                    dist.all_reduce(num_tokens)
                    # gradients are means over ranks of sums over tokens
                    scale = dist.get_world_size() / num_tokens
                    for parameter in self.model.parameters():
                        if parameter.grad is not None:
                            parameter.grad.mul_(scale)
                    nn.utils.clip_grad_norm_(self.model.parameters(), self.cfg["max_norm"])
                    self.optimizer.step()
                    self.optimizer.zero_grad(set_to_none=True)
                    self.global_step += 1
                    if self.global_step % self.cfg["log_every"] == 0:
                        self._log(running_loss / num_tokens, time.perf_counter() - began)
                    running_loss = 0.0
                    num_tokens.zero_()
            self.epochs_run += 1
            self.save_checkpoint(epoch)

    def _log(self, loss, seconds):
        if self.is_rank_zero:
            print(f"step {self.global_step} loss {loss.item():.4f} after {seconds:.0f} s")

    def save_checkpoint(self, epoch):
        if self.is_rank_zero:
            options = StateDictOptions(full_state_dict=True, cpu_offload=True)
            state = get_model_state_dict(self.model, options=options)  # DDP407
            torch.save(state, os.path.join(self.cfg["output"], f"epoch_{epoch}.pt"))
        dist.barrier()

    def cleanup(self):
        dist.destroy_process_group()


def recipe_main(path):
    with open(path, encoding="utf-8") as file:
        cfg = yaml.safe_load(file)
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    recipe = FullFinetuneRecipe(cfg)
    recipe.setup()
    recipe.train()
    recipe.cleanup()


if __name__ == "__main__":
    recipe_main(sys.argv[1])
