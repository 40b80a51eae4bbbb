"""Time ddp-lint side by side with its peers on a source tree.

    python benchmarks/lint.py TREE

Each peer that is installed runs in turn with ddp-lint, in pairs whose order alternates, each run
in a new process and without a result cache.  Printed are medians, the fastest and the slowest
run, and how many times ddp-lint's time the peer needs (or it the peer's), pair by pair.  See
README.md beside this file.
"""

from __future__ import annotations

import argparse
import os
import platform
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

PATIENCE = 600.0


@dataclass
class Tool:
    """A linter, how it is called, and the seconds its runs took.

    ``cut_off`` is True when a run was ended at the limit: its time is then a lower bound.
    """

    name: str
    command: list[str]
    version: str
    seconds: list[float] = field(default_factory=list)
    cut_off: bool = False


class Failed(Exception):
    """A tool did not lint; the message is for a person."""


def main(argv: Sequence[str] | None = None) -> int:
    arguments = _parser().parse_args(argv)
    tree: Path = arguments.tree
    if not tree.is_dir():
        print(f"there is no folder {tree}", file=sys.stderr)
        return 2
    try:
        ours = _tool("ddp-lint", arguments.ddp_lint or _our_command(), ["check"])
        peers = _peers(arguments)
        print(_describe(tree, [ours, *peers]))
        for tool in (ours, *peers):
            if tool.name not in arguments.slow:
                _time(tool, tree, arguments.limit)  # fills the disk cache; not counted
        for peer in peers:
            runs = arguments.slow_runs if peer.name in arguments.slow else arguments.runs
            mine, theirs = _pairs(ours, peer, tree, runs, arguments.limit)
            print(_compare(mine, theirs), flush=True)
    except Failed as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        epilog="A command may hold several words: --ruff 'python -m ruff'.",
    )
    parser.add_argument("tree", type=Path, help="the folder to lint")
    parser.add_argument("--runs", type=int, default=7, help="pairs for each peer (default 7)")
    parser.add_argument("--ddp-lint", help="its command (default: from PATH, else this checkout)")
    for name in ("ruff", "torchfix", "torch-preflight"):
        parser.add_argument(f"--{name}", help="its command (default: from PATH)")
    parser.add_argument(
        "--slow",
        nargs="*",
        default=["torchfix", "torch-preflight"],
        metavar="PEER",
        help="peers that run fewer times and without a warm-up (default: torchfix and"
        " torch-preflight, which need minutes for a large tree)",
    )
    parser.add_argument("--slow-runs", type=int, default=1, help="pairs for these (default 1)")
    parser.add_argument(
        "--limit",
        type=float,
        default=PATIENCE,
        metavar="SECONDS",
        help=f"end a run after that long (default {PATIENCE:.0f})",
    )
    return parser


def _our_command() -> str:
    if shutil.which("ddp-lint"):
        return "ddp-lint"
    return shlex.join([sys.executable, "-m", "ddp_lint"])


def _peers(arguments: argparse.Namespace) -> list[Tool]:
    words = {
        "ruff": ["check", "--no-cache", "--quiet"],
        "torchfix": [],
        "torch-preflight": ["check"],
    }
    peers = []
    for name, options in words.items():
        command = getattr(arguments, name.replace("-", "_"))
        if command or shutil.which(name):
            peers.append(_tool(name, command or name, options))
        else:
            print(f"{name}: not installed, left out")
    if not peers:
        raise Failed("no peer to compare with: pip install ruff, or name one with --ruff COMMAND")
    return peers


def _tool(name: str, command: str, options: list[str]) -> Tool:
    words = shlex.split(command)
    try:
        run = subprocess.run(
            [*words, "--version"], capture_output=True, text=True, env=_environment()
        )
    except OSError as error:
        raise Failed(f"{name}: {command} cannot be run: {error.strerror}") from None
    if run.returncode:
        raise Failed(f"{name}: {command} --version failed:\n{run.stderr.strip()}")
    lines = run.stdout.split()
    return Tool(name, words + options, lines[-1] if lines else "unknown version")


def _environment() -> dict[str, str]:
    """Where the checkout itself is run, it must be found from any folder; its bytecode is kept,
    as pip keeps that of what it installs."""
    ours = str(Path(__file__).resolve().parent.parent)
    path = os.pathsep.join(filter(None, [ours, os.environ.get("PYTHONPATH")]))
    known = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return known | {"PYTHONPATH": path, "NO_COLOR": "1"}


def _time(tool: Tool, tree: Path, limit: float) -> tuple[float, bool]:
    """Seconds of one run, and whether the limit ended it.

    Raises ``Failed`` where the exit code is neither 0 (nothing found) nor 1 (findings).
    """
    began = time.perf_counter()
    with subprocess.Popen(
        [*tool.command, str(tree)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=_environment(),
    ) as process:
        try:
            _, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return time.perf_counter() - began, True
    seconds = time.perf_counter() - began
    if process.returncode not in (0, 1):
        text = errors.decode(errors="replace").strip()[-2000:]
        raise Failed(f"{tool.name} failed with exit code {process.returncode}:\n{text}")
    return seconds, False


def _pairs(ours: Tool, peer: Tool, tree: Path, runs: int, limit: float) -> tuple[Tool, Tool]:
    """Both tools with the times of ``runs`` pairs; who goes first alternates."""
    mine = Tool(ours.name, ours.command, ours.version)
    theirs = Tool(peer.name, peer.command, peer.version)
    for number in range(runs):
        for tool in (mine, theirs) if number % 2 == 0 else (theirs, mine):
            seconds, cut_off = _time(tool, tree, limit)
            tool.seconds.append(seconds)
            tool.cut_off = tool.cut_off or cut_off
    return mine, theirs


def _compare(mine: Tool, theirs: Tool) -> str:
    pairs = zip(mine.seconds, theirs.seconds, strict=True)
    ratios = sorted(their_time / my_time for my_time, their_time in pairs)
    middle = median(ratios)
    if middle >= 1:
        text = _spread([f"{ratio:.1f}" for ratio in (middle, ratios[0], ratios[-1])])
        at_least = "at least " if theirs.cut_off else ""
        verdict = f"ddp-lint is {at_least}{text} times as fast as {theirs.name}"
    else:
        inverse = [1 / ratio for ratio in (middle, ratios[-1], ratios[0])]
        text = _spread([f"{ratio:.1f}" for ratio in inverse])
        verdict = f"ddp-lint takes {text} times as long as {theirs.name}"
    return "\n".join(["", *map(_times, (mine, theirs)), f"  {verdict}"])


def _times(tool: Tool) -> str:
    middle, low, high = median(tool.seconds), min(tool.seconds), max(tool.seconds)
    text = _spread([f"{seconds:.2f}" for seconds in (middle, low, high)])
    ended = ", ended at the limit" if tool.cut_off else ""
    return f"  {tool.name:<16} {text} s in {len(tool.seconds)} runs{ended}"


def _spread(numbers: list[str]) -> str:
    middle, low, high = numbers
    return f"{middle} ({low}-{high})"


def _describe(tree: Path, tools: Sequence[Tool]) -> str:
    files = sorted(tree.rglob("*.py"))
    lines = sum(path.read_bytes().count(b"\n") for path in files if path.is_file())
    versions = ", ".join(f"{tool.name} {tool.version}" for tool in tools)
    return (
        f"{tree}: {len(files):,} Python files, {lines:,} lines\n"
        f"{platform.machine()}, {os.cpu_count()} CPUs, Python {platform.python_version()};"
        f" {versions}\nmedian (fastest-slowest)"
    )


if __name__ == "__main__":
    sys.exit(main())
