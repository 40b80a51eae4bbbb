"""MMEngine's Runner shards, seeds epochs, scales and saves; the hook keeps to its schedule."""

import argparse

import torch
import torch.nn.functional as F
from mmengine.dist import master_only
from mmengine.evaluator import BaseMetric
from mmengine.hooks import Hook
from mmengine.model import BaseModel
from mmengine.runner import Runner
from torch import nn
from torch.utils.data import TensorDataset


class Segmenter(BaseModel):
    def __init__(self, classes=19):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1),
            nn.SyncBatchNorm(64),
            nn.ReLU(),
            nn.Conv2d(64, classes, 1),
        )

    def forward(self, images, masks, mode="tensor"):
        logits = self.net(images)
        if mode == "loss":
            return {"loss": F.cross_entropy(logits, masks, ignore_index=255)}
        return logits.argmax(1), masks if mode == "predict" else logits


class PixelAccuracy(BaseMetric):
    def process(self, data_batch, data_samples):
        predicted, masks = data_samples
        valid = masks != 255
        right = (predicted[valid] == masks[valid]).sum().item()
        self.results.append((right, valid.sum().item()))

    def compute_metrics(self, results):
        right, seen = map(sum, zip(*results, strict=True))
        return {"pixel_accuracy": right / max(seen, 1)}


class WeightNorm(Hook):
    priority = "LOW"

    def after_train_iter(self, runner, batch_idx, data_batch=None, outputs=None):
        if self.every_n_train_iters(runner, 200):
            norms = [parameter.detach().norm() for parameter in runner.model.parameters()]
            runner.message_hub.update_scalar("train/weight_norm", torch.stack(norms).norm().item())

    def after_train_epoch(self, runner):
        self.export(runner.model, f"{runner.work_dir}/weights-{runner.epoch}.pth")

    @master_only
    def export(self, model, path):
        torch.save(getattr(model, "module", model).state_dict(), path)


def loader(split, shuffle):
    archive = torch.load(f"{split}.pt", map_location="cpu")
    dataset = TensorDataset(archive["images"], archive["masks"])
    return {
        "batch_size": 8,
        "num_workers": 4,
        "dataset": dataset,
        "sampler": {"type": "DefaultSampler", "shuffle": shuffle},
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--launcher", default="none", choices=["none", "pytorch", "slurm"])
    args = parser.parse_args()
    runner = Runner(
        model=Segmenter(),
        work_dir="work",
        train_dataloader=loader("train", shuffle=True),
        val_dataloader=loader("val", shuffle=False),
        val_evaluator=PixelAccuracy(),
        train_cfg={"by_epoch": True, "max_epochs": 80, "val_interval": 5},
        val_cfg={},
        optim_wrapper={
            "type": "AmpOptimWrapper",
            "optimizer": {"type": "SGD", "lr": 0.01, "momentum": 0.9},
            "clip_grad": {"max_norm": 1.0},
            "accumulative_counts": 4,
        },
        custom_hooks=[WeightNorm()],
        launcher=args.launcher,
    )
    runner.train()


if __name__ == "__main__":
    main()
