"""Apply the fixes of findings: many in one file, each one checked, none half.

A fix is taken whole or not at all, also where it reaches into several files.  After each round
the changed files must parse and are linted again: a fix whose finding is still there is withdrawn
with a word.  Fixes that touch the same text wait for the next round, so that a second run of the
command finds nothing to do.  Nothing here touches a disk: that is ``ddp_lint.write``.
"""

from __future__ import annotations

import ast
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ddp_lint.edits import Change, Lines, Part, Plan, collide, part_of
from ddp_lint.finding import Finding, Place
from ddp_lint.ipython import mask
from ddp_lint.notebook import rewrite as rewrite_notebook
from ddp_lint.sources import Project, SourceFile, Unreadable

#: Lints a project and gives the findings that are to be reported, fixes included.
Lint = Callable[[Project], Sequence[Finding]]

_MOST_ROUNDS = 10


@dataclass(frozen=True)
class Withdrawn:
    """A fix that was not made, and why: half a sentence for a person."""

    finding: Finding
    reason: str


@dataclass(frozen=True)
class FixedFile:
    """One file before and after, both as text with their own line endings."""

    source: SourceFile
    after: str

    @property
    def name(self) -> str:
        return self.source.name

    @property
    def before(self) -> str:
        return self.source.whole_text


@dataclass(frozen=True)
class Fixed:
    """What the fixes make of a project.

    ``files`` are those that change.  ``fixed`` are findings as they were when they were fixed, in
    the order of the rounds; a file may have more than one of them on a line.  ``left`` are the
    findings of the project as it is afterwards.
    """

    files: tuple[FixedFile, ...]
    fixed: tuple[Finding, ...]
    withdrawn: tuple[Withdrawn, ...]
    left: tuple[Finding, ...]


def fix(
    project: Project, lint: Lint, *, unsafe: bool = False, keep: Mapping[str, str] | None = None
) -> Fixed:
    """Apply every fix that ``lint`` offers, the unsafe ones too where ``unsafe``.

    ``keep`` names files that must not change, and why ("has changed since it was linted").
    """
    original = {source.name: source for source in project.files.values()}
    findings = list(lint(project))
    fixed: list[Finding] = []
    withdrawn: dict[Finding, str] = {}
    for _ in range(_MOST_ROUNDS):
        wanted = [
            finding
            for finding in findings
            if finding.fix is not None
            and (unsafe or finding.fix.safe)
            and finding not in withdrawn
        ]
        if not wanted:
            break
        this = _Round(project, lint, findings, keep or {})
        this.run(wanted)
        fixed += this.applied
        project, findings = this.project, this.after
        # A place that was withdrawn has moved with the text; so has the word about it.
        withdrawn = this.follow(withdrawn) | this.follow(this.withdrawn)
        if not this.applied:
            break
    else:
        withdrawn |= {
            finding: "its fix and another one undo each other"
            for finding in findings
            if finding.fix is not None and (unsafe or finding.fix.safe)
        }
    changed = [
        FixedFile(original[source.name], source.whole_text)
        for source in project.files.values()
        if source is not original[source.name]
        and source.whole_text != original[source.name].whole_text
    ]
    return Fixed(
        tuple(sorted(changed, key=lambda file: file.name)),
        tuple(fixed),
        tuple(Withdrawn(*item) for item in withdrawn.items()),
        tuple(findings),
    )


class _Unfit(Exception):
    """This fix cannot be made; the message is the reason to give."""


@dataclass
class _Round:
    """One pass: choose fixes that go together, apply them, lint again, withdraw what failed."""

    project: Project
    lint: Lint
    before: Sequence[Finding]
    keep: Mapping[str, str]
    applied: list[Finding] = field(default_factory=list)
    withdrawn: dict[Finding, str] = field(default_factory=dict)
    after: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._keys = {source.name: key for key, source in self.project.files.items()}
        self._start = self.project
        self._plans: dict[Part, Plan] = {}
        self._lines: dict[Part, Lines] = {}

    def run(self, wanted: Sequence[Finding]) -> None:
        while True:
            self._choose([finding for finding in wanted if finding not in self.withdrawn])
            if not self.applied:
                self.project, self.after = self._start, list(self.before)
                return
            self._build()
            if self._withdraw_what_does_not_parse(wanted):
                continue
            self.after = list(self.lint(self.project))
            still_there = self._still_there()
            if not still_there:
                return
            self.withdrawn |= dict.fromkeys(still_there, "the finding would still be there")

    def _choose(self, wanted: Sequence[Finding]) -> None:
        """Take fixes in the order of their places, as long as they do not collide."""
        self._plans.clear()
        self.applied = []
        for finding in wanted:
            try:
                changes = self._changes(finding)
            except _Unfit as error:
                self.withdrawn[finding] = str(error)
                continue
            if all(self._plan(part).takes(change) for part, change in changes):
                for part, change in changes:
                    self._plan(part).changes.add(change)
                self.applied.append(finding)

    def _changes(self, finding: Finding) -> list[tuple[Part, Change]]:
        """What the fix asks for.  Raises ``_Unfit``."""
        edits = finding.fix.edits if finding.fix else ()
        for edit in edits:
            path = edit.place.path
            if path not in self._keys:
                raise _Unfit(f"{path} is not part of what was linted")
            if path in self.keep:
                raise _Unfit(f"{path} {self.keep[path]}")
        if collide(edits):
            raise _Unfit("its edits overlap")
        try:
            found = ((part_of(edit.place), edit) for edit in edits)
            return [(part, self._plan(part).change(edit)) for part, edit in found]
        except (ValueError, Unreadable) as error:
            raise _Unfit(f"its edits do not fit the file: {error}") from None

    def _plan(self, part: Part) -> Plan:
        if part not in self._plans:
            self._plans[part] = Plan(self._lines_of(part))
        return self._plans[part]

    def _lines_of(self, part: Part) -> Lines:
        if part not in self._lines:
            self._lines[part] = Lines(_text_of(self._start, self._keys, part))
        return self._lines[part]

    def _build(self) -> None:
        """The project with the chosen changes in it."""
        changed: defaultdict[str, dict[int | None, str]] = defaultdict(dict)
        for (path, cell), plan in self._plans.items():
            if plan.changes:
                changed[path][cell] = plan.result()
        files = dict(self._start.files)
        for path, texts in changed.items():
            source = files[self._keys[path]]
            files[self._keys[path]] = SourceFile(source.path, source.name, _whole(source, texts))
        self.project = replace(self._start, files=files)

    def _withdraw_what_does_not_parse(self, wanted: Sequence[Finding]) -> bool:
        """Whether a changed file is broken.  The fixes to blame are then withdrawn."""
        broken = {part: fault for part in self._plans if (fault := self._fault(part))}
        if not broken:
            return False
        for part, fault in broken.items():
            alone = [finding for finding in self.applied if part in self._parts(finding)]
            guilty = [finding for finding in alone if self._breaks(part, finding)] or alone
            self.withdrawn |= dict.fromkeys(guilty, f"the result would not parse: {fault}")
        return True

    def _parts(self, finding: Finding) -> set[Part]:
        return {part_of(edit.place) for edit in finding.fix.edits} if finding.fix else set()

    def _breaks(self, part: Part, finding: Finding) -> bool:
        """Whether this fix, alone, makes the part one that does not parse."""
        plan = Plan(self._lines_of(part))
        plan.changes = {change for at, change in self._changes(finding) if at == part}
        return _fault_in(plan.result(), is_cell=part[1] is not None) is not None

    def _fault(self, part: Part) -> str | None:
        return _fault_in(self._plans[part].result(), is_cell=part[1] is not None)

    def _still_there(self) -> list[Finding]:
        """The findings that their fixes did not end."""
        applied = set(self.applied)
        explained = Counter(
            (finding.code, part_of(finding.place), self._new(finding))
            for finding in self.before
            if finding not in applied
        )
        remaining: defaultdict[tuple[str, Part], list[int]] = defaultdict(list)
        for finding in self.after:
            part = part_of(finding.place)
            at = self._offset_after(finding.place)
            if explained[finding.code, part, (at, at)]:
                explained[finding.code, part, (at, at)] -= 1
            else:
                remaining[finding.code, part].append(at)
        stuck: list[Finding] = []
        for finding in self.applied:
            low, high = self._new(finding)
            places = remaining[finding.code, part_of(finding.place)]
            if any(low <= at <= high for at in places):
                stuck.append(finding)
        return stuck

    def _new(self, finding: Finding) -> tuple[int, int]:
        """Where an old finding starts in the result, at the earliest and at the latest."""
        place = finding.place
        lines = self._lines_of(part_of(place))
        offset = lines.offset(place.line, place.column)
        plan = self._plans.get(part_of(place))
        return plan.moved(offset) if plan else (offset, offset)

    def _offset_after(self, place: Place) -> int:
        plan = self._plans.get(part_of(place))
        text = plan.result() if plan else self._lines_of(part_of(place)).text
        return Lines(text).offset(place.line, place.column)

    def follow(self, words: Mapping[Finding, str]) -> dict[Finding, str]:
        """The findings of ``words`` as they are after this round, without those that are gone."""
        by_place = {
            (finding.code, part_of(finding.place), self._offset_after(finding.place)): finding
            for finding in self.after
        }
        moved: dict[Finding, str] = {}
        for finding, word in words.items():
            low, high = self._new(finding)
            for at in range(low, high + 1):
                now = by_place.get((finding.code, part_of(finding.place), at))
                if now is not None:
                    moved[now] = word
        return moved


def _text_of(project: Project, keys: Mapping[str, str], part: Part) -> str:
    path, cell = part
    source = project.files[keys[path]]
    if source.notebook is None or cell is None:
        return source.whole_text
    return source.notebook.written_cell(cell)


def _whole(source: SourceFile, texts: Mapping[int | None, str]) -> str:
    """The whole file with new text, or with new text in some cells."""
    if source.notebook is None:
        return texts[None]
    cells = {cell: text for cell, text in texts.items() if cell is not None}
    return rewrite_notebook(source.whole_text, cells)


def _fault_in(code: str, *, is_cell: bool) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(mask(code) if is_cell else code)
    except SyntaxError as error:
        return f"{error.msg} in line {error.lineno}"
    except (ValueError, RecursionError) as error:
        return str(error)
    return None
