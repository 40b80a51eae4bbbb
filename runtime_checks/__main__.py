"""``torchrun --nproc-per-node 2 -m runtime_checks``; without torchrun it runs as one rank."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

from .options import parse

_NEEDED = ("torch", "numpy", "PIL")


def main(argv: list[str]) -> int:
    """0: proven; 1: disproved; 2: could not run.  (torchrun itself makes every failure a 1.)"""
    options = parse(argv)
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        print(
            f'the proofs need {", ".join(missing)}: pip install "ddp-lint[verify]"',
            file=sys.stderr,
        )
        return 2
    # With it a gloo group crashes in DDP's constructor.  People have it exported.
    if os.environ.get("TORCH_DISTRIBUTED_DEBUG", "").upper() == "DETAIL":
        del os.environ["TORCH_DISTRIBUTED_DEBUG"]
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # Before anything touches CUDA: too late it has no effect, and nothing says so.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")
    from . import suite

    return suite.run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
