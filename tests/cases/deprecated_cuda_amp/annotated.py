"""A type in an annotation warns of nothing; of an import that is called, all names are told."""

from torch import Tensor
from torch.cuda.amp import GradScaler
from torch.cuda.amp import autocast, custom_fwd  # DDP211


def scale(scaler: GradScaler, loss: Tensor) -> Tensor:
    kept: GradScaler = scaler
    return kept.scale(loss)


@custom_fwd
def double(value):
    with autocast():
        return 2 * value
