"""torchrun --nproc-per-node 8 run_train.py run.toml"""

import sys

import torch.distributed as dist

from pretrain import config, parallel
from pretrain.trainer import Trainer


def main(path):
    device = parallel.init()
    Trainer(config.load(path), device).train()
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
