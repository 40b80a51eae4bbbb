"""What the options for an old repository do to a run of the command."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ddp_lint import registry, suppress
from ddp_lint.api import Checked, Linter, Options, check
from ddp_lint.baseline import (
    Baseline,
    empty_baseline,
    looked_at,
    read_baseline,
    write_baseline,
)
from ddp_lint.changed import Changed
from ddp_lint.finding import Finding
from ddp_lint.fix import Lint
from ddp_lint.settings import SettingsError
from ddp_lint.sources import Project

#: Leaves of what a linter finds that which is to be mended.
Only: TypeAlias = Callable[[Lint], Lint]

#: One option, those that it does not go with, and why.
_APART: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("diff_only", ("fix", "diff"), "names lines as they are before a fix moves them"),
    ("diff_only", ("update_baseline",), "would leave most findings out of the baseline"),
    ("add_noqa", ("update_baseline",), "silences findings that would be in the baseline too"),
    ("add_noqa", ("no_noqa",), "would write comments that are there already"),
    ("add_noqa", ("diff",), "writes to the files, of which only a patch is wanted"),
    ("update_baseline", ("diff",), "records what the patch would mend"),
    (
        "unused_noqa",
        ("fix", "diff", "add_noqa", "baseline", "diff_only", "no_noqa"),
        "lists comments and does nothing else",
    ),
)


def refuse_contradictions(arguments: argparse.Namespace, given: Mapping[Path, str]) -> None:
    """Raises ``SettingsError`` where options do not go together."""

    def wanted(name: str) -> bool:
        return getattr(arguments, name) not in (None, False)

    if arguments.update_baseline and arguments.baseline is None:
        raise SettingsError("--update-baseline goes with --baseline FILE")
    for name, others, why in _APART:
        for other in others:
            if wanted(name) and wanted(other):
                one, two = (f"--{word.replace('_', '-')}" for word in (name, other))
                raise SettingsError(f"{one} does not go with {two}: it {why}")
    for name in ("diff_only", "add_noqa"):
        if given and wanted(name):
            option = f"--{name.replace('_', '-')}"
            raise SettingsError(f"{option} is for files on the disk, not for text on stdin")
    if arguments.unused_noqa and arguments.format != "text":
        raise SettingsError("--unused-noqa lists comments as text: leave out --format")
    if arguments.add_noqa:
        suppress.checked_reason(arguments.add_noqa)
        if os.path.exists(arguments.add_noqa):
            raise SettingsError(
                f"--add-noqa took the path {arguments.add_noqa} for its reason; paths go first: "
                f"ddp-lint check {shlex.quote(arguments.add_noqa)} --add-noqa"
            )


def mend_only(arguments: argparse.Namespace) -> Only:
    """With a baseline, fixes are for what is not in it.  Raises ``SettingsError``."""
    if arguments.baseline is None or arguments.update_baseline:
        return lambda lint: lint
    known = read_baseline(arguments.baseline)
    cwd = Path.cwd()

    def only(lint: Lint) -> Lint:
        def new(project: Project) -> Sequence[Finding]:
            sources = {source.name: source for source in project.files.values()}
            return known.new(
                lint(project), lambda place: sources[place.path].source_line(place), cwd
            )

        return new

    return only


def narrow(arguments: argparse.Namespace, paths: list[str], checked: Checked) -> Checked:
    """The findings that baseline and revision leave.  Raises ``SettingsError``."""
    if arguments.baseline is not None:
        checked = _against_baseline(arguments, paths, checked)
    if arguments.diff_only is not None:
        checked = _on_changed_lines(arguments.diff_only, checked)
    return checked


def _against_baseline(
    arguments: argparse.Namespace, paths: list[str], checked: Checked
) -> Checked:
    file, run = arguments.baseline, checked.run
    exists = file.exists() or not arguments.update_baseline
    known = read_baseline(file) if exists else empty_baseline(file)
    unread = {problem.path for problem in run.problems}
    linted = [
        known.key(name, run.cwd)
        for project in checked.projects
        for name in (project.files[key].name for key in project.targets)
        if name not in unread
    ]
    seen = looked_at(known, linted, run.rules.keys(), registry.all_rules().keys())
    stale = known.without(run.findings, run.source_line, run.cwd, seen)
    new = known.new(run.findings, run.source_line, run.cwd)
    if arguments.update_baseline:
        updated = known.updated(run.findings, run.source_line, run.cwd, seen)
        write_baseline(file, updated)
        _say(f"{file} holds {_count(len(updated), 'finding')}: {len(new)} new, {len(stale)} gone")
        return checked.only(())
    if len(run.findings) > len(new):
        _say(f"{_count(len(run.findings) - len(new), 'finding')} in {file} not shown")
    if len(stale):
        _say(_stale(stale, file, paths, len(new)))
    return checked.only(new)


def _stale(stale: Baseline, file: Path, paths: list[str], new: int) -> str:
    words = shlex.join([*paths, "--baseline", str(file), "--update-baseline"])
    also = f" (and to record the {new} new)" if new else ""
    many = f"{_count(len(stale), 'finding')} in {file} gone ({stale.spoken()})"
    return f"{many}; to drop {'it' if len(stale) == 1 else 'them'}{also}: ddp-lint check {words}"


def _on_changed_lines(revision: str, checked: Checked) -> Checked:
    found = set(checked.run.findings)
    kept: set[Finding] = set()
    repositories: dict[Path, Changed] = {}
    for project in checked.projects:
        if project.root not in repositories:
            repositories[project.root] = Changed(revision, project.root)
        sources = {project.files[key].name: project.files[key] for key in project.targets}
        kept |= {
            finding
            for finding in found
            if finding.place.path in sources
            and repositories[project.root].touches(sources[finding.place.path], finding.place)
        }
    return checked.only(finding for finding in checked.run.findings if finding in kept)


def silence(arguments: argparse.Namespace, checked: Checked) -> Checked:
    """Write comments for all findings, where that was asked for; what is left is to be shown."""
    if arguments.add_noqa is None:
        return checked
    reason = suppress.checked_reason(arguments.add_noqa)
    done = suppress.silence(checked.run.findings, checked.run.sources, reason)
    for problem in done.problems:
        _say(f"{problem.path}{f':{problem.line}' if problem.line else ''} {problem.message}")
    if done.findings:
        _say(f"silenced {_count(len(done.findings), 'finding')} in {_count(done.files, 'file')}")
    silent = set(done.findings)
    return checked.only(one for one in checked.run.findings if one not in silent)


def list_unused(paths: list[str], given: Mapping[Path, str], options: Options) -> int:
    """Print the noqa codes that suppress nothing; 1 where there are some."""
    options = replace(options, noqa=False)
    checked = check(paths, options, given=given)
    linter, rules = Linter(options), registry.all_rules()
    by_file: dict[str, list[Finding]] = {}
    for finding in checked.run.findings:
        by_file.setdefault(finding.place.path, []).append(finding)
    unread = {problem.path for problem in checked.run.problems}
    lines = []
    for project in checked.projects:
        for key in sorted(project.targets):
            source = project.files[key]
            if source.name in unread:
                continue
            settings = linter.settings_of(source.path, project.root)
            judged = {
                code for code, rule in rules.items() if settings.wants(rule, str(source.path))
            }
            for one in suppress.unused(source, by_file.get(source.name, ()), rules, judged):
                cell = "" if one.cell is None else f"cell {one.cell}:"
                codes = ", ".join(one.codes)
                lines.append(
                    f"{one.path}:{cell}{one.line}:{one.column + 1}: {codes} suppresses nothing: "
                    "take it out of the noqa comment"
                )
    for problem in (*checked.unusable, *checked.run.problems):
        _say(f"{problem.path}{f':{problem.line}' if problem.line else ''} {problem.message}")
    files = _count(checked.run.files, "file")
    print("\n".join(lines) if lines else f"Every noqa code in {files} suppresses something.")
    if checked.unusable and (checked.missing or not checked.run.files):
        return 2
    return int(bool(lines) or bool(checked.run.problems))


def _say(text: str) -> None:
    print(f"ddp-lint: {text}", file=sys.stderr)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
