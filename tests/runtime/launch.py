"""Start the suite as people do, and read what it leaves behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PROOFS = Path(__file__).resolve().parent / "proofs"


@dataclass(frozen=True)
class Run:
    """A finished run.  ``record`` is empty where none was written."""

    code: int
    stdout: str
    stderr: str
    out: Path

    @property
    def record(self) -> dict[str, Any]:
        path = self.out / "record.json"
        return json.loads(path.read_text()) if path.exists() else {}

    @property
    def proofs(self) -> dict[str, dict[str, Any]]:
        """The record's entries by the name of the proof."""
        return {proof["proof"]: proof for proof in self.record["proofs"]}


def torchrun(ranks: int = 2, *options: str) -> list[str]:
    """The command that starts the suite on ``ranks`` ranks of one node."""
    command = [sys.executable, "-m", "torch.distributed.run", *options]
    return [*command, f"--nproc-per-node={ranks}", "-m", "runtime_checks"]


def own(*names: str) -> list[str]:
    """The options that run proofs of this test suite."""
    return [f"--proof-file={PROOFS / name}.py" for name in names]


def environment(**changes: str) -> dict[str, str]:
    """This process's environment without what a launcher around the tests may have set."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT")
    }
    return {**kept, "OMP_NUM_THREADS": "1", **changes}


def run(
    command: Sequence[str],
    arguments: Sequence[str],
    out: Path,
    env: Mapping[str, str] | None = None,
) -> Run:
    """Run a command in the checkout to its end."""
    done = subprocess.run(
        [*command, *arguments, f"--out={out}"],
        cwd=ROOT,
        env=dict(env or environment()),
        capture_output=True,
        text=True,
        timeout=600,
    )
    return Run(done.returncode, done.stdout, done.stderr, out)


def processes_with(word: str) -> list[str]:
    """The command lines of this machine's processes that hold a word."""
    command = ["ps", "-eww", "-o", "args"]
    listing = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line for line in listing.stdout.splitlines() if word in line]
