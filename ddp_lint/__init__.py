"""A linter that understands PyTorch training programs.

From Python: ``ddp_lint.lint(["train.py"])`` and ``ddp_lint.lint_source(text)`` give lists of
``ddp_lint.Finding``.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know better; typing need not be imported for it
if TYPE_CHECKING:
    from ddp_lint.api import lint, lint_source
    from ddp_lint.finding import Finding

__version__ = "0.1.0"
__all__ = ["Finding", "__version__", "lint", "lint_source"]


def __getattr__(name: str) -> object:
    """Import the linter only when it is used: ``--version`` and completion must not wait."""
    if name in ("lint", "lint_source"):
        from ddp_lint import api

        return getattr(api, name)
    if name == "Finding":
        from ddp_lint.finding import Finding

        return Finding
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
