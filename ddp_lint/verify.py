"""``ddp-lint verify``: start torchrun on the suite that proves the rules by running them.

The suite needs torch, which the linter itself does not: nothing here imports it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path

from ddp_lint.registry import folder_of

_NEEDED = ("torch", "numpy", "PIL")


def main(argv: list[str]) -> int:
    """Run the proofs.  0: proven; 1: one was disproved; 2: one could not run, or none could."""
    parser = argparse.ArgumentParser(
        prog="ddp-lint verify",
        description="Prove the rules here: run what they flag and its mend under torchrun, "
        "and write down what was measured.",
    )
    parser.add_argument(
        "--nproc", type=_positive, default=2, metavar="N", help="ranks (default 2)"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="CODE", help="this rule; can be repeated"
    )
    parser.add_argument(
        "--out", type=Path, default=Path("out/verify"), metavar="FOLDER", help="for the record"
    )
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument(
        "--timeout", type=_positive, default=120, metavar="SECONDS", help="for one proof"
    )
    options = parser.parse_args(argv)
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        names = ", ".join(missing)
        print(f'verify needs {names}: pip install "ddp-lint[verify]"', file=sys.stderr)
        return 2
    out = options.out.resolve()
    record = out / "record.json"
    record.unlink(missing_ok=True)
    arguments = ["--exit-zero", f"--out={out}", f"--device={options.device}"]
    arguments += [f"--timeout={options.timeout}"]
    arguments += [f"--only={code}" for code in options.only]
    code = _torchrun(options.nproc, arguments)
    if code:
        return code if code > 128 else 2
    return _verdict(record)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _torchrun(ranks: int, arguments: Sequence[str]) -> int:
    """Run the suite; torchrun's exit code, or 130 after Ctrl-C."""
    folder = folder_of("runtime_checks")
    inside = folder.parent.name == "ddp_lint"
    module = "ddp_lint.runtime_checks" if inside else "runtime_checks"
    environment = dict(os.environ)
    # torchrun mentions it at length where it is not set.
    environment.setdefault("OMP_NUM_THREADS", "1")
    root = folder.parent.parent if inside else folder.parent
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(root), *filter(None, [environment.get("PYTHONPATH")])]
    )
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += [f"--nproc-per-node={ranks}", "-m", module, *arguments]
    # From an empty folder: what lies in the user's must not be imported in torch's place.
    with tempfile.TemporaryDirectory(prefix="ddp-lint-") as empty:
        # In a session of its own Ctrl-C reaches only us: torchrun hears of it once, below.
        process = subprocess.Popen(command, env=environment, cwd=empty, start_new_session=True)
        with _ended_with_us(process):
            try:
                return process.wait()
            except KeyboardInterrupt:
                return 130


@contextlib.contextmanager
def _ended_with_us(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """What ends this process ends torchrun too, and torchrun ends the ranks."""

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    numbers = [signal.SIGTERM] + ([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=40)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _verdict(record: Path) -> int:
    """The exit code that a record amounts to."""
    try:
        counts = json.loads(record.read_text(encoding="utf-8"))["summary"]
    except OSError:
        return 2
    if counts["disproved"]:
        return 1
    return 2 if counts["failed"] or not counts["proven"] else 0
