"""What a run is made of."""

import tomllib
from dataclasses import dataclass


@dataclass
class Config:
    corpus: str
    words: int = 32_000
    width: int = 1024
    layers: int = 16
    length: int = 2048
    batch_size: int = 8
    accumulate: int = 4
    steps: int = 10_000
    warmup: int = 200
    lr: float = 3e-4
    max_norm: float = 1.0
    log_freq: int = 10
    checkpoint_freq: int = 500
    folder: str = "outputs"


def load(path):
    with open(path, "rb") as file:
        return Config(**tomllib.load(file))
