"""The helper asks all ranks."""

import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict


def save_checkpoint(model, optimizer, step):
    model_state, optimizer_state = get_state_dict(model, optimizer)
    state = {"model": model_state, "optimizer": optimizer_state}
    dcp.save(state, checkpoint_id=f"step_{step}")  # DDP407
