"""What a training program is: the vocabulary that rules speak.  Begin with program.py."""

from ddp_lint.model.program import Program

__all__ = ["Program"]
