from .logger import MetricLogger, SmoothedValue

__all__ = ["MetricLogger", "SmoothedValue"]
