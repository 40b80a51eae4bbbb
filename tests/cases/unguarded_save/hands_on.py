"""A method that hands saving on to its base class: the calls of it are the saves."""

import os

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from transformers import PreTrainedModel


class Encoder(PreTrainedModel):
    def save_pretrained(self, path):
        return super().save_pretrained(path)


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
encoder = Encoder.from_pretrained("encoder").cuda()
model = DistributedDataParallel(encoder)
for _ in range(100):
    model(torch.randn(4, 32).cuda()).sum().backward()
encoder.save_pretrained("out")  # DDP401
dist.destroy_process_group()
