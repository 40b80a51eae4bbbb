"""What would move something here, were it asked to; and what puts a value where another is."""

import torch
import torch as backend


class Moved:
    def __init__(self, values, device=None):
        self.values = values if device is None else values.to(device)

    def on_gpu(self):
        return Moved(self.values, "cuda")


def centred(values):
    values = values.to(backend.float32)
    return Moved(values - torch.zeros(1, device=values.device)).values
