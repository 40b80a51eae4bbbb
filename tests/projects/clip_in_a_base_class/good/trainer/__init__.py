from .base import Trainer
from .mixed import MixedPrecisionTrainer

__all__ = ["MixedPrecisionTrainer", "Trainer"]
