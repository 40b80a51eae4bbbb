"""What a run can be told.  Imports nothing heavy, so that --help and mistakes answer at once."""

from __future__ import annotations

import argparse
import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

#: Where record, page and logs go unless told otherwise, from where the command was started.
OUT = Path("out/verify")


@dataclass(frozen=True)
class Options:
    only: tuple[str, ...]
    proof_files: tuple[Path, ...]
    out: Path
    device: str
    seed: int
    timeout: float
    sabotage: str
    expect_mended: bool
    exit_zero: bool


def parse(argv: list[str]) -> Options:
    """Raises ``SystemExit`` (code 2) for what it cannot read; one rank says why, not all."""
    parser = argparse.ArgumentParser(prog="runtime_checks", description=(__doc__ or "").strip())
    parser.description = "Run each rule's proof and write the record of it."
    parser.add_argument(
        "--only", action="append", default=[], metavar="CODE", help="this rule, by code or name"
    )
    parser.add_argument(
        "--proof-file",
        action="append",
        default=[],
        type=Path,
        metavar="PATH",
        help="run the proof in this file, and none of the suite's own",
    )
    parser.add_argument("--out", type=Path, default=OUT, metavar="FOLDER", help=f"default: {OUT}")
    parser.add_argument("--device", choices=("auto", "cpu", "cuda"), default="auto")
    parser.add_argument("--seed", type=int, default=1234)
    parser.add_argument(
        "--timeout", type=float, default=120.0, metavar="SECONDS", help="for one proof"
    )
    parser.add_argument(
        "--sabotage",
        choices=("", "good-is-bad", "bad-is-good"),
        default="",
        help="to test the proofs: run one side in the place of the other; all must be disproved",
    )
    parser.add_argument(
        "--expect-mended",
        action="store_true",
        help="to test fixes: run bad() alone, and ask of it what is asked of good()",
    )
    parser.add_argument("--exit-zero", action="store_true", help="leave the verdict to the record")
    with contextlib.ExitStack() as stack:
        if os.environ.get("RANK", "0") != "0":
            nowhere = stack.enter_context(open(os.devnull, "w"))
            stack.enter_context(contextlib.redirect_stderr(nowhere))
            stack.enter_context(contextlib.redirect_stdout(nowhere))
        given = parser.parse_args(argv)
    return Options(
        tuple(given.only),
        tuple(given.proof_file),
        given.out,
        given.device,
        given.seed,
        given.timeout,
        given.sabotage,
        given.expect_mended,
        given.exit_zero,
    )
