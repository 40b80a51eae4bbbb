"""What a run ran on, for its record: versions, device, driver, launch, settings that matter."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from .world import Backend, Launch

#: Variables whose values can change a result or the way to it.
_TELLING = ("OMP_NUM_THREADS", "CUBLAS_WORKSPACE_CONFIG", "CUDA_VISIBLE_DEVICES")
_TELLING_PREFIXES = ("NCCL_", "GLOO_", "TORCH_NCCL_", "TORCH_DISTRIBUTED_", "PYTORCH_")
_PACKAGES = ("numpy", "pillow", "simplejpeg")


def describe(launch: Launch, backend: Backend) -> dict[str, Any]:
    """Facts about this machine and this run; no host names and no paths."""
    return {
        "torch": torch.__version__,
        "torch_commit": torch.version.git_version,
        "cuda": torch.version.cuda,
        "cudnn": _cudnn(),
        "nccl": _nccl(),
        "gpus": _gpus(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "suite": _version("ddp-lint"),
        "suite_commit": _commit(),
        "launch": {
            "by": launch.by,
            "ranks": launch.world_size,
            "nodes": launch.nodes,
            "ranks_on_this_node": launch.local_world_size,
            "backend": backend.name,
            "device": backend.device,
            "shared_gpu": backend.shared_gpu,
            "why": backend.why,
        },
        "threads": torch.get_num_threads(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
        "matmul_precision": torch.get_float32_matmul_precision(),
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if name in _TELLING or name.startswith(_TELLING_PREFIXES)
        },
    }


def not_covered(launch: Launch, backend: Backend) -> list[str]:
    """The conditions that this run says nothing about, whatever its proofs came to."""
    conditions = []
    if backend.device != "cuda":
        conditions += ["anything on a GPU: stall time, overlap of copies, allocator growth"]
    elif backend.shared_gpu:
        conditions += ["a GPU for each rank"]
    if backend.name != "nccl":
        conditions += ["NCCL"]
    if launch.nodes == 1:
        conditions += ["several nodes"]
    conditions += [f"another number of ranks than {launch.world_size}"]
    conditions += [f"another torch than {torch.__version__}"]
    return conditions


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cudnn() -> int | None:
    if not torch.version.cuda:
        return None
    version: int | None = torch.backends.cudnn.version()
    return version


def _nccl() -> str | None:
    if not torch.version.cuda:
        return None
    version: tuple[int, ...] = torch.cuda.nccl.version()
    return ".".join(map(str, version))


def _gpus() -> list[str]:
    """Names and drivers, from the driver's own tool: asking torch would set up a context."""
    if not torch.version.cuda:
        return []
    command = [
        "nvidia-smi",
        "--query-gpu=name,driver_version,memory.total",
        "--format=csv,noheader",
    ]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return answer.stdout.split("\n")[:-1]


def _processor() -> str:
    for path in (Path("/proc/cpuinfo"),):
        if path.exists():
            for line in path.read_text().splitlines():
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _commit() -> str | None:
    """The commit of the checkout that this file lies in, "+" where it was changed since."""
    here = Path(__file__).resolve().parent
    if not (here.parent / ".git").exists():
        return None
    git = ["git", "-C", str(here)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True)
        changed = subprocess.run(
            [*git, "status", "--porcelain", "."], capture_output=True, text=True
        )
    except OSError:
        return None
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "") or None
