"""Lint paths or text from Python: the command, the flake8 plugin and editors stand on this."""

from __future__ import annotations

import gc
import os
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ddp_lint.discovery import Found, discover
from ddp_lint.engine import Outcome, analyse
from ddp_lint.finding import LEVELS, Finding, Problem
from ddp_lint.noqa import Noqa
from ddp_lint.registry import all_rules
from ddp_lint.report import Run
from ddp_lint.rule import Rule
from ddp_lint.settings import Configurations, FailOn, Names, Settings, check_codes
from ddp_lint.sources import Project, SourceFile, Words
from ddp_lint.syntax import WORTH_A_PROCESS, SyntaxCheck, check_syntax


@dataclass(frozen=True)
class Options:
    """What a caller asks for on top of the configuration files.

    ``select`` replaces what those select and ignore; ``extend_select`` and ``ignore`` add to it.
    ``exclude`` are patterns as in .gitignore, relative to the current folder.  ``fail_on`` of
    None leaves it to the configuration.
    """

    select: Names | None = None
    extend_select: Names = ()
    ignore: Names = ()
    exclude: Names = ()
    fail_on: FailOn | None = None
    config: Path | None = None
    isolated: bool = False
    noqa: bool = True
    jobs: int | None = None

    def on_top_of(self, settings: Settings) -> Settings:
        if self.select is not None:
            settings = replace(settings, select=self.select, extend_select=(), ignore=())
        return replace(
            settings,
            extend_select=settings.extend_select + self.extend_select,
            ignore=settings.ignore + self.ignore,
            fail_on=self.fail_on or settings.fail_on,
        )


@dataclass(frozen=True)
class Checked:
    """A run, and what decides its exit code.

    ``unusable`` are paths that do not exist or hold nothing to lint, ``excluded`` counts files
    that were asked for but that settings exclude.  ``failing`` are the findings that reach the
    level at which their file's settings want the run to fail.  ``projects`` are those that were
    linted.
    """

    run: Run
    unusable: tuple[Problem, ...]
    missing: bool
    excluded: int
    failing: frozenset[Finding] = frozenset()
    projects: tuple[Project, ...] = ()

    @property
    def failed(self) -> bool:
        return not self.failing.isdisjoint(self.run.findings)

    def only(self, findings: Iterable[Finding]) -> Checked:
        """The same with some of its findings."""
        return replace(self, run=replace(self.run, findings=tuple(findings)))


class Linter:
    """Lints projects as the settings of their files want it.

    Raises ``SettingsError`` here or when linting, where a code or a configuration is wrong.
    """

    def __init__(self, options: Options | None = None, *, cwd: Path | None = None) -> None:
        self.options = options or Options()
        self.cwd = cwd or Path.cwd()
        self._rules = all_rules()
        for codes in (self.options.select, self.options.extend_select, self.options.ignore):
            check_codes(codes or (), self._rules.values())
        self._configurations = Configurations(
            self._rules.values(), only=self.options.config, isolated=self.options.isolated
        )
        self._exclude = Settings(exclude=self.options.exclude, folder=str(self.cwd))
        self._settings: dict[tuple[str, str], Settings] = {}

    def settings_of(self, path: Path, root: Path) -> Settings:
        """What holds for the file at ``path`` in the project at ``root``."""
        key = os.path.dirname(path), str(root)
        known = self._settings.get(key)
        if known is None:
            found = self._configurations.of_folder(*key)
            known = self._settings[key] = self.options.on_top_of(found)
        return known

    def with_words(self, project: Project) -> Project:
        """The project with what the settings of its files say about its own helpers.

        All of its files, not only those to be linted: what a name means in a program may not
        depend on which of its files somebody asks about.
        """
        found = {
            id(settings): settings
            for source in project.files.values()
            if (settings := self.settings_of(source.path, project.root))
        }
        words = Words(
            guards=_last_parts(one.guards for one in found.values()),
            samplers=_last_parts(one.samplers for one in found.values()),
            loggers=_last_parts(one.loggers for one in found.values()),
            scaler_wrappers=_last_parts(one.scaler_wrappers for one in found.values()),
        )
        return project if words == project.words else replace(project, words=words)

    def without_excluded(self, project: Project) -> Project:
        """The project with those targets only that no setting excludes."""
        kept = frozenset(
            key
            for key in project.targets
            if not self._exclude.excludes(path := str(project.files[key].path))
            and not self.settings_of(project.files[key].path, project.root).excludes(path)
        )
        return project if kept == project.targets else replace(project, targets=kept)

    def to_lint(self, found: Found) -> list[Project]:
        """The projects of ``found`` in which settings leave something to lint."""
        wanted = [self.without_excluded(project) for project in found.projects]
        return [self.with_words(project) for project in wanted if project.targets]

    def rules_for(self, project: Project) -> list[Rule]:
        """The rules that some target wants."""
        settings = {
            id(found): found
            for key in project.targets
            if (found := self.settings_of(project.files[key].path, project.root))
        }
        return [
            rule
            for rule in self._rules.values()
            if any(one.wants(rule) for one in settings.values())
        ]

    def findings(self, project: Project) -> tuple[Finding, ...]:
        """What is to be reported of ``project``: what ``--fix`` asks again after each round."""
        outcome = analyse(self.with_words(project), self.rules_for(project))
        return self.report(project, outcome)[0]

    def report(self, project: Project, outcome: Outcome) -> tuple[tuple[Finding, ...], int]:
        """The findings that settings and noqa leave, and how many noqa took away."""
        by_name = {project.files[key].name: project.files[key] for key in project.targets}
        comments: dict[str, Noqa] = {}
        shown: list[Finding] = []
        suppressed = 0
        for finding in outcome.findings:
            source, rule = by_name[finding.place.path], self._rules[finding.code]
            settings = self.settings_of(source.path, project.root)
            if not settings.wants(rule, str(source.path)):
                continue
            if self.options.noqa:
                if source.name not in comments:
                    comments[source.name] = Noqa(source)
                if comments[source.name].find(finding.place, finding.code):
                    suppressed += 1
                    continue
            shown.append(replace(finding, level=settings.level_of(rule, finding.level)))
        return tuple(shown), suppressed

    def fails(self, project: Project, finding: Finding) -> bool:
        source = next(one for one in project.files.values() if one.name == finding.place.path)
        fail_on = self.settings_of(source.path, project.root).fail_on
        return fail_on != "never" and LEVELS.index(finding.level) >= LEVELS.index(fail_on)


def check(
    paths: Iterable[str | Path],
    options: Options | None = None,
    *,
    cwd: Path | None = None,
    given: Mapping[Path, str] | None = None,
    started: Callable[[int], None] | None = None,
) -> Checked:
    """Lint everything below ``paths``.

    ``given`` maps absolute paths to text that stands for what is on the disk.  ``started`` is
    told the number of files once it is known.  Raises ``SettingsError``.
    """
    linter = Linter(options, cwd=cwd)
    found = discover(paths, cwd=linter.cwd, given=given)
    asked = sum(len(project.targets) for project in found.projects)
    projects = linter.to_lint(found)
    linted = sum(len(project.targets) for project in projects)
    syntax = SyntaxCheck([one.files[key] for one in projects for key in sorted(one.targets)])
    if started is not None:
        started(linted)
    findings: list[Finding] = []
    problems = set(found.problems)
    suppressed = 0
    failing: set[Finding] = set()
    for project, outcome in zip(projects, _analyse_all(linter, projects), strict=True):
        shown, quiet = linter.report(project, outcome)
        findings += shown
        suppressed += quiet
        problems |= set(outcome.problems)
        failing |= {finding for finding in shown if linter.fails(project, finding)}
    known = {problem.path for problem in problems}
    problems |= {problem for problem in syntax.problems() if problem.path not in known}
    findings.sort(key=lambda finding: finding.sort_key)
    run = Run(
        findings=tuple(findings),
        problems=tuple(sorted(problems)),
        files=linted,
        rules={rule.code: rule for project in projects for rule in linter.rules_for(project)},
        cwd=linter.cwd,
        sources=_named(projects, findings),
        suppressed=suppressed,
    )
    return Checked(
        *(run, _unusable(found), bool(found.missing), asked - linted),
        failing=frozenset(failing),
        projects=tuple(projects),
    )


def _last_parts(lists: Iterable[Names]) -> frozenset[str]:
    """``pkg.utils.is_first`` and ``is_first`` mean the same helper."""
    return frozenset(name.rpartition(".")[2] for names in lists for name in names)


def _unusable(found: Found) -> tuple[Problem, ...]:
    return (*found.missing, *found.empty)


def _analyse_all(linter: Linter, projects: Sequence[Project]) -> Iterable[Outcome]:
    rules = [[rule.code for rule in linter.rules_for(project)] for project in projects]
    files = sum(len(project.files) for project in projects)
    jobs = linter.options.jobs or (os.cpu_count() if files >= WORTH_A_PROCESS else None) or 1
    if len(projects) == 1:
        return [_analyse(projects[0], rules[0], jobs)]
    jobs = min(jobs, len(projects))
    if jobs > 1:
        from concurrent.futures import ProcessPoolExecutor  # slow to import, seldom wanted

        with ProcessPoolExecutor(jobs) as pool:
            return list(pool.map(_analyse, projects, rules))
    return _one_after_another(projects, rules)


def _analyse(project: Project, codes: Collection[str], jobs: int = 1) -> Outcome:
    known = all_rules()
    return analyse(project, [known[code] for code in codes], jobs=jobs)


def _one_after_another(
    projects: Sequence[Project], rules: Sequence[Collection[str]]
) -> Iterator[Outcome]:
    for project, codes in zip(projects, rules, strict=True):
        yield _analyse(project, codes)
        gc.collect()  # also where nothing else collects: models must not add up


def _named(projects: Iterable[Project], findings: Iterable[Finding]) -> dict[str, SourceFile]:
    wanted = {finding.place.path for finding in findings}
    wanted |= {related.place.path for finding in findings for related in finding.related}
    return {
        source.name: source
        for project in projects
        for source in project.files.values()
        if source.name in wanted
    }


def lint(
    paths: str | Path | Iterable[str | Path],
    *,
    select: Iterable[str] | None = None,
    extend_select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    exclude: Iterable[str] = (),
    isolated: bool = False,
) -> list[Finding]:
    """The findings in files, notebooks and folders, as ``ddp-lint check`` reports them.

    ``select``, ``extend_select`` and ``ignore`` take codes (``"DDP201"``), prefixes (``"DDP2"``)
    and names of rules; ``exclude`` takes patterns as in .gitignore.  ``isolated`` reads no
    pyproject.toml.  Lines of a finding's place count from 1, columns from 0.

    A file that cannot be linted is a ``UserWarning``, the others are linted.  Raises
    ``FileNotFoundError`` for a path that is not there and ``ddp_lint.settings.SettingsError``
    for a code or a configuration that is wrong.
    """
    options = _options(select, extend_select, ignore, exclude, isolated)
    checked = check([paths] if isinstance(paths, (str, Path)) else paths, options)
    if checked.missing:
        raise FileNotFoundError(f"{checked.unusable[0].path} {checked.unusable[0].message}")
    return _with_warnings(checked)


def lint_source(
    source: str,
    path: str | Path | None = None,
    *,
    select: Iterable[str] | None = None,
    extend_select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    isolated: bool = False,
) -> list[Finding]:
    """The findings in a text.

    With ``path`` the text stands for that file, which need not exist, and is judged together
    with the project that it lies in; without, it is a program of its own called ``<string>``.
    The other arguments and what is raised are those of ``lint``.
    """
    options = _options(select, extend_select, ignore, (), isolated)
    if path is not None:
        return _with_warnings(check([path], options, given={Path(path).absolute(): source}))
    linter = Linter(replace(options, isolated=True))
    text = SourceFile(Path("<string>"), "<string>", source)
    project = Project(linter.cwd, {"<string>": text}, frozenset({"<string>"}))
    outcome = analyse(project, linter.rules_for(project))
    findings, suppressed = linter.report(project, outcome)
    problems = outcome.problems or tuple(check_syntax([text]))
    run = Run(findings, problems, 1, {}, linter.cwd, suppressed=suppressed)
    return _with_warnings(Checked(run, (), False, 0))


def _options(
    select: Iterable[str] | None,
    extend_select: Iterable[str],
    ignore: Iterable[str],
    exclude: Iterable[str],
    isolated: bool,
) -> Options:
    return Options(
        select=None if select is None else tuple(select),
        extend_select=tuple(extend_select),
        ignore=tuple(ignore),
        exclude=tuple(exclude),
        isolated=isolated,
    )


def _with_warnings(checked: Checked) -> list[Finding]:
    for problem in (*checked.unusable, *checked.run.problems):
        line = f":{problem.line}" if problem.line else ""
        warnings.warn(f"{problem.path}{line}: {problem.message}", stacklevel=3)
    return list(checked.run.findings)
