from .net import *  # noqa: F403
from .registry import MODELS as MODELS
