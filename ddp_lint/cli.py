"""The command ``ddp-lint``: what can be typed, and what to type next where that was wrong."""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ddp_lint.arguments import COMMANDS, parser, usage

if TYPE_CHECKING:
    from ddp_lint.adoption import Only
    from ddp_lint.api import Checked, Options

_START = """\
ddp-lint finds mistakes in PyTorch training programs. To begin, type one of

  ddp-lint check .          lint this folder
  ddp-lint rules            list what it finds
  ddp-lint explain DDP201   say why one of them matters, and the way out
  ddp-lint --help           everything else
"""


def command() -> int:
    """``main`` in a process of its own, which ends with it.

    Its memory goes back as a whole then: to take the model apart first, object by object, costs
    a tenth of the run.
    """
    gc.disable()
    try:
        return main()
    finally:
        gc.freeze()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; see ``--help``."""
    for stream in (sys.stdout, sys.stderr):
        # Names of files and lines of source may hold what the terminal's encoding has not.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has seen enough (`| head`).  What is still buffered must go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
    return code


def _run(argv: list[str]) -> int:
    if not argv:
        print(_START, end="")
        return 2
    if argv[0] == "verify":
        # Its own parser knows its options; it also needs torch, which nothing else here does.
        from ddp_lint.verify import main as verify

        return verify(argv[1:])
    arguments = parser(_RUN).parse_args(_checked(argv))
    if not hasattr(arguments, "run"):
        return usage(f"a command is missing; there are {', '.join(COMMANDS)}")
    from ddp_lint.settings import SettingsError

    try:
        return int(arguments.run(arguments))
    except SettingsError as error:
        return usage(str(error))


def _checked(argv: list[str]) -> list[str]:
    """``argv``; exits with a hint where its first word is a path in place of a command."""
    word = argv[0]
    if word not in COMMANDS and not word.startswith("-"):
        if os.path.exists(word):
            sys.exit(usage(f"to lint it, type: ddp-lint check {' '.join(argv)}"))
        from ddp_lint.settings import suggest

        known = f"commands are {', '.join(COMMANDS)}"
        sys.exit(usage(f"there is no command {word!r}{suggest(word, COMMANDS) or '; ' + known}"))
    return argv


def _options(arguments: argparse.Namespace) -> Options:
    """Raises ``SettingsError``."""
    from ddp_lint.api import Options
    from ddp_lint.settings import FAIL_ON, SettingsError, suggest

    def codes(given: list[list[str]] | None) -> tuple[str, ...]:
        return tuple(code for group in given or () for code in group)

    fail_on = arguments.fail_on
    if fail_on is not None and fail_on not in FAIL_ON:
        known = f"one of {', '.join(FAIL_ON)}"
        raise SettingsError(f"--fail-on takes {known}, not {fail_on!r}{suggest(fail_on, FAIL_ON)}")
    if arguments.config is not None and not arguments.config.is_file():
        raise SettingsError(f"--config: there is no file {arguments.config}")
    return Options(
        select=None if arguments.select is None else codes(arguments.select),
        extend_select=codes(arguments.extend_select),
        ignore=codes(arguments.ignore),
        exclude=tuple(arguments.exclude),
        fail_on=fail_on,
        config=arguments.config,
        isolated=arguments.isolated,
        noqa=not arguments.no_noqa,
        jobs=arguments.jobs,
    )


def _check(arguments: argparse.Namespace) -> int:
    from dataclasses import replace

    from ddp_lint.adoption import list_unused, mend_only, narrow, refuse_contradictions, silence
    from ddp_lint.api import check
    from ddp_lint.progress import Progress
    from ddp_lint.report import formats, renderer
    from ddp_lint.settings import SettingsError, suggest

    try:
        render = renderer(arguments.format)
    except LookupError:
        known = suggest(arguments.format, formats()) or f"; there are {', '.join(formats())}"
        raise SettingsError(f"there is no format {arguments.format!r}{known}") from None
    options = _options(arguments)
    paths, given = _paths(arguments)
    if arguments.show_settings:
        return _show_settings(paths, options)
    if arguments.unsafe_fixes and not (arguments.fix or arguments.diff):
        raise SettingsError("--unsafe-fixes goes with --fix or --diff")
    refuse_contradictions(arguments, given)
    if arguments.unused_noqa:
        return list_unused(paths, given, options)
    only = mend_only(arguments)
    if arguments.diff:
        return _diff(paths, given, options, arguments.unsafe_fixes, only)
    if arguments.fix:
        _fix(paths, given, options, arguments.unsafe_fixes, only)
    with Progress() as progress:
        checked = check(paths, options, given=given, started=progress.start)
    checked = silence(arguments, narrow(arguments, paths, checked))
    for problem in checked.unusable:
        print(f"ddp-lint: {problem.path} {problem.message}", file=sys.stderr)
    if checked.excluded and not checked.run.files:
        print("ddp-lint: settings exclude everything that was to be linted", file=sys.stderr)
    if checked.run.files or checked.run.problems or arguments.format != "text":
        run = replace(
            checked.run,
            colour=arguments.output_file is None and _colour(),
            statistics=arguments.statistics,
        )
        _write(render(run), arguments.output_file)
    return _exit_code(checked)


def _diff(
    paths: list[str], given: dict[Path, str], options: Options, unsafe: bool, only: Only
) -> int:
    """Print the patch; 1 where there is one."""
    from ddp_lint.api import Linter
    from ddp_lint.discovery import discover
    from ddp_lint.write import fix_as_patch, summary

    linter = Linter(options)
    found = discover(paths, given=given)
    patches = []
    for project in linter.to_lint(found):
        fixed, patch = fix_as_patch(project, only(linter.findings), unsafe=unsafe)
        patches.append(patch)
        for line in summary(fixed, done=False):
            print(f"ddp-lint: {line}", file=sys.stderr)
    for problem in (*found.missing, *found.empty):
        print(f"ddp-lint: {problem.path} {problem.message}", file=sys.stderr)
    sys.stdout.flush()
    sys.stdout.buffer.write(b"".join(patches))
    return 2 if found.missing else int(any(patches))


def _fix(
    paths: list[str], given: dict[Path, str], options: Options, unsafe: bool, only: Only
) -> None:
    """Mend the files on the disk and say so; what is left is for the report."""
    from ddp_lint.api import Linter
    from ddp_lint.discovery import discover
    from ddp_lint.write import fix_on_disk, summary

    linter = Linter(options)
    for project in linter.to_lint(discover(paths, given=given)):
        fixed, problems = fix_on_disk(project, only(linter.findings), unsafe=unsafe)
        for line in summary(fixed):
            print(f"ddp-lint: {line}", file=sys.stderr)
        for problem in problems:
            print(f"ddp-lint: {problem.path} {problem.message}", file=sys.stderr)


def _paths(arguments: argparse.Namespace) -> tuple[list[str], dict[Path, str]]:
    """The paths to lint, and the text from stdin by the file that it stands for."""
    from ddp_lint.settings import SettingsError

    paths = list(arguments.paths) or ["."]
    if "-" not in paths:
        if arguments.stdin_filename is not None:
            raise SettingsError("--stdin-filename needs the path - (text from stdin)")
        return paths, {}
    name = arguments.stdin_filename or "stdin.py"
    text = sys.stdin.buffer.read().decode("utf-8-sig", "replace")
    paths[paths.index("-")] = name
    return paths, {Path(name).absolute(): text}


def _exit_code(checked: Checked) -> int:
    if checked.unusable and (checked.missing or not checked.run.files):
        return 2
    return int(checked.failed or bool(checked.run.problems))


def _colour() -> bool:
    """See no-color.org; a terminal that calls itself dumb is taken at its word."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return sys.stdout.isatty()


def _write(report: str, file: Path | None) -> None:
    from ddp_lint.settings import SettingsError

    if file is None:
        sys.stdout.write(report)
        return
    try:
        file.write_text(report, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise SettingsError(f"--output-file: {file} cannot be written: {error.strerror}") from None


def _show_settings(paths: list[str], options: Options) -> int:
    from ddp_lint.api import Linter
    from ddp_lint.roots import root_of
    from ddp_lint.settings import shown

    linter = Linter(options)
    path = Path(paths[0]).absolute()
    root = Path(root_of(str(path if path.is_dir() else path.parent)).path)
    inside = path / "__init__.py" if path.is_dir() else path
    print(shown(linter.settings_of(inside, root)), end="")
    return 0


def _explain(arguments: argparse.Namespace) -> int:
    from ddp_lint.explain import page
    from ddp_lint.registry import all_rules
    from ddp_lint.settings import suggest

    wanted = arguments.rule
    for rule in all_rules().values():
        if wanted.upper() == rule.code or wanted.lower().replace("_", "-") == rule.name:
            print(page(rule), end="")
            return 0
    known = [name for rule in all_rules().values() for name in (rule.code, rule.name)]
    hint = suggest(wanted, known) or "; `ddp-lint rules` lists them all"
    return usage(f"no rule is called {wanted!r}{hint}")


def _rules(arguments: argparse.Namespace) -> int:
    from ddp_lint.explain import table
    from ddp_lint.registry import all_rules

    print(table(all_rules().values()), end="")
    return 0


def _completion(arguments: argparse.Namespace) -> int:
    from ddp_lint.completion import script

    print(script(arguments.shell, arguments.parsers), end="")
    return 0


_RUN = {"check": _check, "explain": _explain, "rules": _rules, "completion": _completion}
