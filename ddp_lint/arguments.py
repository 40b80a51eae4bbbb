"""What can be typed: the options of every command, and the hint where one is mistyped."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from ddp_lint import __version__

COMMANDS = ("check", "explain", "rules", "verify", "completion")
_EXIT = """\
exit code: 0 nothing to act on; 1 findings at or above --fail-on, or a file that cannot be
linted; 2 wrong usage or configuration, a path that does not exist, nothing to lint."""


def usage(message: str) -> int:
    """Say what was wrong with the call, and give the exit code for that."""
    print(f"ddp-lint: {message}", file=sys.stderr)
    return 2


class _Parser(argparse.ArgumentParser):
    """Names the nearest option where one is wrong."""

    def error(self, message: str) -> NoReturn:
        from ddp_lint.settings import suggest

        wrong = message.partition("unrecognized arguments: ")[2].split()
        options = [option for action in self._actions for option in action.option_strings]
        hint = suggest(wrong[0].partition("=")[0], options) if wrong else ""
        sys.exit(usage(f"{message}{hint}\nTry: {self.prog} --help"))

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Complain here, where the options of the subcommand are known."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


Runners = Mapping[str, Callable[[argparse.Namespace], int]]


def parser(run: Runners) -> argparse.ArgumentParser:
    """The parser; ``run`` has what each command does, by its name."""
    form = argparse.RawDescriptionHelpFormatter
    top = _Parser(
        prog="ddp-lint",
        description="Find mistakes in PyTorch training programs.",
        epilog=_EXIT,
        formatter_class=form,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"ddp-lint {__version__}")
    commands = top.add_subparsers(metavar="COMMAND")

    check = commands.add_parser(
        "check",
        help="lint files, notebooks and folders",
        description="Lint Python files, notebooks and folders, each together with its project.",
        epilog=_EXIT,
        formatter_class=form,
        allow_abbrev=False,
    )
    _add_check_options(check)
    check.set_defaults(run=run["check"])

    explain = commands.add_parser("explain", help="the page of one rule", allow_abbrev=False)
    explain.add_argument("rule", metavar="CODE", help="a code such as DDP201, or a rule's name")
    explain.set_defaults(run=run["explain"])

    rules = commands.add_parser("rules", help="the table of all rules", allow_abbrev=False)
    rules.set_defaults(run=run["rules"])

    completion = commands.add_parser(
        "completion",
        help="a script that lets your shell complete this command",
        allow_abbrev=False,
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))
    completion.set_defaults(run=run["completion"], parsers=commands.choices)

    commands.add_parser("verify", help="prove the rules by running them under torchrun")
    return top


def _add_check_options(check: argparse.ArgumentParser) -> None:
    codes: dict[str, Any] = {
        "metavar": "CODES",
        "action": "append",
        "type": _split,
        "default": None,
    }
    check.add_argument(
        "paths", nargs="*", metavar="PATH", help="what to lint (default: this folder); - for stdin"
    )
    choose = check.add_argument_group("which rules")
    choose.add_argument("--select", **codes, help="only these: DDP201, DDP2, or a rule's name")
    choose.add_argument("--extend-select", **codes, help="these too, also if off by default")
    choose.add_argument("--ignore", **codes, help="not these")
    files = check.add_argument_group("which files")
    files.add_argument(
        "--exclude",
        action="append",
        default=[],
        metavar="PATTERN",
        help="leave out what matches, as in .gitignore",
    )
    files.add_argument(
        "--stdin-filename", metavar="PATH", help="the file that text on stdin stands for"
    )
    fixes = check.add_argument_group("fixes")
    fixes.add_argument("--fix", action="store_true", help="apply the fixes that are safe")
    fixes.add_argument("--unsafe-fixes", action="store_true", help="the others too")
    fixes.add_argument("--diff", action="store_true", help="apply nothing, print a patch")
    old = check.add_argument_group("an old repository")
    old.add_argument("--baseline", type=Path, metavar="FILE", help="report what is not in there")
    old.add_argument("--update-baseline", action="store_true", help="write there what is found")
    old.add_argument(
        "--diff-only", metavar="REV", help="report only lines changed since a git revision"
    )
    old.add_argument(
        "--add-noqa",
        nargs="?",
        const="",
        metavar="REASON",
        help="write a noqa comment at each finding",
    )
    old.add_argument(
        "--unused-noqa",
        action="store_true",
        help="list noqa codes that suppress nothing, and stop",
    )
    output = check.add_argument_group("output")
    output.add_argument("--format", default="text", metavar="FORMAT", help=_formats())
    output.add_argument("--output-file", type=Path, metavar="FILE", help="write the report there")
    output.add_argument("--statistics", action="store_true", help="count the findings by rule")
    output.add_argument(
        "--fail-on", metavar="LEVEL", help="note, warning (default), error or never: exit 1"
    )
    config = check.add_argument_group("configuration")
    config.add_argument("--config", type=Path, metavar="FILE", help="use this pyproject.toml")
    config.add_argument("--isolated", action="store_true", help="use no pyproject.toml")
    config.add_argument("--show-settings", action="store_true", help="print what holds, and stop")
    config.add_argument("--no-noqa", action="store_true", help="show what noqa comments suppress")
    running = check.add_argument_group("running")
    running.add_argument("-j", "--jobs", type=_jobs, metavar="N", help="processes for projects")
    running.add_argument("--no-cache", action="store_true", help="accepted; nothing is cached")


def _formats() -> str:
    """One file each: see ``ddp_lint.report``, which would take longer to import than to list."""
    folder = Path(__file__).parent / "report"
    return ", ".join(sorted(path.stem for path in folder.glob("[!_]*.py")))


def _split(text: str) -> list[str]:
    return [word for word in text.replace(",", " ").split() if word]


def _jobs(text: str) -> int:
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"a number of processes, not {text!r}")
