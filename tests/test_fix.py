"""Fixes: composed, checked, withdrawn with a word; written atomically; shown as a patch."""

from __future__ import annotations

import os
import re
import stat
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from ddp_lint.edits import Lines
from ddp_lint.finding import Edit, Finding, Fix, Place
from ddp_lint.fix import Fixed, fix
from ddp_lint.sources import Project, SourceFile
from ddp_lint.write import Unwritable, fix_as_patch, fix_on_disk, patch, summary, write
from tests.test_notebook import notebook


class Lint:
    """A linter of one word: each ``old`` in a file is a finding, its fix the text ``new``."""

    def __init__(self, old: str, new: str, *, safe: bool = True, extra: str = "") -> None:
        self.old, self.new, self.safe, self.extra = old, new, safe, extra

    def __call__(self, project: Project) -> Sequence[Finding]:
        return [
            Finding("DDP999", "error", place, "old", fix=self.fix(place))
            for source in project.files.values()
            for place in self.places(source)
        ]

    def places(self, source: SourceFile) -> list[Place]:
        return [
            source.place(
                number,
                len(line[: match.start()].encode()),
                number,
                len(line[: match.end()].encode()),
            )
            for number, line in enumerate(source.lines, 1)
            for match in re.finditer(re.escape(self.old), line)
        ]

    def fix(self, place: Place) -> Fix:
        edits = [Edit(place, self.new)]
        if self.extra:
            edits.append(Edit(Place(place.path, 1, 0, 1, 0, place.cell), self.extra))
        return Fix("write new", tuple(edits), self.safe)


def project(folder: Path, **files: bytes | str) -> Project:
    """A project on the disk; ``_`` in a name stands for ``.``."""
    sources = {}
    for key, content in files.items():
        name = key.replace("_", ".")
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        sources[name] = SourceFile(path, name)
    return Project(folder, sources, frozenset(sources))


def texts(fixed: Fixed) -> dict[str, str]:
    return {file.name: file.after for file in fixed.files}


def test_several_fixes_in_one_file_compose(tmp_path: Path) -> None:
    before = project(tmp_path, a_py="x = old  # old, 'kept'\ny = (old,\n   old)\n", b_py="old\n")
    fixed = fix(before, Lint("old", "longer"))
    assert texts(fixed) == {
        "a.py": "x = longer  # longer, 'kept'\ny = (longer,\n   longer)\n",
        "b.py": "longer\n",
    }
    assert (len(fixed.fixed), fixed.withdrawn, fixed.left) == (5, (), ())


def test_an_edit_that_two_fixes_ask_for_is_made_once(tmp_path: Path) -> None:
    before = project(tmp_path, a_py="a = old\nb = old\n")
    fixed = fix(before, Lint("old", "new", extra="import dist\n"))
    assert texts(fixed) == {"a.py": "import dist\na = new\nb = new\n"}


def test_unsafe_fixes_wait_to_be_asked_for(tmp_path: Path) -> None:
    before = project(tmp_path, a_py="old\n")
    lint = Lint("old", "new", safe=False)
    assert not fix(before, lint).files
    assert texts(fix(before, lint, unsafe=True)) == {"a.py": "new\n"}


def test_fixes_on_the_same_text_wait_for_the_next_round(tmp_path: Path) -> None:
    def lint(project: Project) -> list[Finding]:
        found = []
        for code, old, new in (("DDP998", "a.b", "c.b"), ("DDP999", "b.d", "b.e")):
            for place in Lint(old, new).places(project.files["a.py"]):
                found.append(
                    Finding(code, "error", place, "m", fix=Fix("", (Edit(place, new),), True))
                )
        return found

    fixed = fix(project(tmp_path, a_py="x = a.b.d\n"), lint)
    assert texts(fixed) == {"a.py": "x = c.b.e\n"}
    assert [finding.code for finding in fixed.fixed] == ["DDP998", "DDP999"]


def test_a_fix_that_breaks_the_file_is_withdrawn_and_the_others_stay(tmp_path: Path) -> None:
    class Lint2(Lint):
        def fix(self, place: Place) -> Fix:
            return Fix("", (Edit(place, "new" if place.line != 2 else "n w ("),), True)

    fixed = fix(project(tmp_path, a_py="old\nold\nold\n"), Lint2("old", ""))
    assert texts(fixed) == {"a.py": "new\nold\nnew\n"}
    assert [(item.finding.place.line, item.reason[:26]) for item in fixed.withdrawn] == [
        (2, "the result would not parse")
    ]
    assert len(fixed.left) == 1


def test_a_fix_that_leaves_its_finding_is_withdrawn_and_the_others_stay(tmp_path: Path) -> None:
    class Lint2(Lint):
        def fix(self, place: Place) -> Fix:
            if place.line == 2:
                return Fix("", (Edit(place, "more, old"),), True)
            return Fix("", (Edit(place, "new\nnew"),), True)

    fixed = fix(project(tmp_path, a_py="old\nold\nold\n"), Lint2("old", ""))
    assert texts(fixed) == {"a.py": "new\nnew\nold\nnew\nnew\n"}
    (item,) = fixed.withdrawn
    assert (item.finding.place.line, item.reason) == (3, "the finding would still be there")
    assert "a.py:3: DDP999 was not fixed: the finding would still be there" in summary(fixed)


def test_deleting_one_of_two_equal_lines_is_not_taken_for_a_failure(tmp_path: Path) -> None:
    def lint(project: Project) -> list[Finding]:
        """Only the first has a fix; the second then stands where the first one was."""
        places = Lint("old", "").places(project.files["a.py"])
        whole = Edit(Place("a.py", 1, 0, 2, 0), "")
        fixes = [Fix("", (whole,), True) if len(places) == 2 else None, None]
        return [
            Finding("DDP999", "error", place, "m", fix=fixes[number])
            for number, place in enumerate(places)
        ]

    fixed = fix(project(tmp_path, a_py="old\nold\n"), lint)
    assert texts(fixed) == {"a.py": "old\n"}
    assert not fixed.withdrawn


def test_fixes_that_undo_each_other_end(tmp_path: Path) -> None:
    def lint(project: Project) -> list[Finding]:
        return [*Lint("aa", "bb")(project), *Lint("bb", "aa")(project)]

    fixed = fix(project(tmp_path, a_py="aa\n"), lint)
    assert "undo each other" in fixed.withdrawn[0].reason or "still" in fixed.withdrawn[0].reason


def _given(findings: Sequence[Finding], _: Project) -> Sequence[Finding]:
    return findings


def test_edits_outside_the_text_or_over_each_other_are_withdrawn(tmp_path: Path) -> None:
    cases = {
        "do not fit": (Edit(Place("a.py", 9, 0, 9, 1), ""),),
        "no column": (Edit(Place("a.py", 1, 7, 1, 9), ""),),
        "overlap": (Edit(Place("a.py", 1, 0, 1, 2), ""), Edit(Place("a.py", 1, 1, 1, 3), "x")),
        "not part of": (Edit(Place("b.py", 1, 0, 1, 0), "x"),),
    }
    before = project(tmp_path, a_py="old\n")
    for reason, edits in cases.items():
        finding = Finding(
            "DDP999", "error", Place("a.py", 1, 0, 1, 3), "m", fix=Fix("", edits, True)
        )
        fixed = fix(before, partial(_given, (finding,)))
        assert not fixed.files
        assert reason in fixed.withdrawn[0].reason


def test_a_fix_in_two_files_is_made_in_both_or_in_none(tmp_path: Path) -> None:
    def lint(project: Project) -> list[Finding]:
        if "old" not in project.files["a.py"].text:
            return []
        edits = (Edit(Place("a.py", 1, 0, 1, 3), "new"), Edit(Place("b.py", 1, 0, 1, 0), "new\n"))
        return [Finding("DDP999", "error", edits[0].place, "m", fix=Fix("", edits, True))]

    before = project(tmp_path, a_py="old\n", b_py="x\n")
    assert texts(fix(before, lint)) == {"a.py": "new\n", "b.py": "new\nx\n"}
    (tmp_path / "b.py").write_text("changed\n")
    assert before.files["b.py"].raw == b"x\n"
    fixed, problems = fix_on_disk(before, lint)
    assert fixed.withdrawn[0].reason == "b.py has changed since it was linted"
    assert not problems
    assert (tmp_path / "a.py").read_text() == "old\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"x = old\r\ny = 1\r\n", b"x = new\r\n\r\ny = 1\r\n"),
        (b"\xef\xbb\xbfx = old\ny = '\xc3\xa9'", b"\xef\xbb\xbfx = new\n\ny = '\xc3\xa9'"),
        (b"# coding: latin-1\nx = '\xe9', old\n", b"# coding: latin-1\nx = '\xe9', new\n\n"),
        (b"y = '\x0c'\nx = old\r# mixed\n", b"y = '\x0c'\nx = new\n\r# mixed\n"),
    ],
)
def test_bytes_that_need_not_change_stay(tmp_path: Path, before: bytes, after: bytes) -> None:
    start = project(tmp_path, a_py=before)
    fixed, _ = fix_on_disk(start, Lint("old", "new\n"))
    assert not fixed.withdrawn
    assert (tmp_path / "a.py").read_bytes() == after


def test_a_character_that_the_encoding_lacks_is_said(tmp_path: Path) -> None:
    start = project(tmp_path, a_py=b"# coding: latin-1\nx = '\xe9', old\n")
    fixed, _ = fix_on_disk(start, Lint("old", "'\N{SNOWMAN}'"))
    assert "cannot hold '\N{SNOWMAN}'" in fixed.withdrawn[0].reason


def test_the_mode_stays_and_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.py").write_text("old\n")
    (tmp_path / "real.py").chmod(0o755)
    (tmp_path / "a.py").symlink_to("real.py")
    start = Project(tmp_path, {"a.py": SourceFile(tmp_path / "a.py", "a.py")})
    fix_on_disk(start, Lint("old", "new"))
    assert (tmp_path / "a.py").is_symlink()
    assert (tmp_path / "real.py").read_text() == "new\n"
    assert stat.S_IMODE((tmp_path / "real.py").stat().st_mode) == 0o755
    assert sorted(os.listdir(tmp_path)) == ["a.py", "real.py"]


def test_a_failing_write_leaves_the_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = project(tmp_path, a_py="old\n")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    _, problems = fix_on_disk(start, Lint("old", "new"))
    assert "No space left" in problems[0].message
    assert os.listdir(tmp_path) == ["a.py"]
    assert (tmp_path / "a.py").read_text() == "old\n"


def test_a_file_that_changes_in_the_last_moment_is_left_alone(tmp_path: Path) -> None:
    fixed = fix(project(tmp_path, a_py="old\n"), Lint("old", "new"))
    (tmp_path / "a.py").write_text("mine\n")
    with pytest.raises(Unwritable, match="has changed"):
        write(fixed.files[0])
    assert (tmp_path / "a.py").read_text() == "mine\n"


def test_a_second_run_finds_nothing_to_do(tmp_path: Path) -> None:
    lint = Lint("old", "new")
    fix_on_disk(project(tmp_path, a_py="old = old\n"), lint)
    again = Project(tmp_path, {"a.py": SourceFile(tmp_path / "a.py", "a.py")})
    assert not fix_on_disk(again, lint)[0].fixed


def test_a_notebook_is_fixed_in_the_right_cell_and_nowhere_else(tmp_path: Path) -> None:
    text = notebook("%time f()\nx = 1\n", "#! old", "%time g(old)\ny = old", "# old")
    fixed, _ = fix_on_disk(project(tmp_path, a_ipynb=text), Lint("old", "new", extra="import z\n"))
    assert not fixed.withdrawn
    assert (tmp_path / "a.ipynb").read_text() == notebook(
        "%time f()\nx = 1\n", "#! old", "import z\n%time g(new)\ny = new", "import z\n# new"
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.py", b"x = 1\r\ny = old\r\n\r\nold"),
        ("with space.py", b"# coding: latin-1\n'\xe9'\nold\n"),
        ('quo"te.py', b"old\rold\nx"),
        ("sub/é.py", b"\xef\xbb\xbfold\n"),
    ],
)
@pytest.mark.parametrize("below", [False, True])
def test_git_apply_takes_the_patch(tmp_path: Path, name: str, content: bytes, below: bool) -> None:
    folder = tmp_path / "below" if below else tmp_path
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    fixed, text = fix_as_patch(Project(folder, {name: SourceFile(path, name)}), Lint("old", "new"))
    assert path.read_bytes() == content
    applied = subprocess.run(["git", "apply", "-"], cwd=folder, input=text, capture_output=True)
    assert applied.returncode == 0, applied.stderr
    assert path.read_bytes() == content.replace(b"old", b"new")
    assert patch(fixed.files) == text


def test_a_write_protected_file_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write everything
    fixed, _ = fix_on_disk(project(tmp_path, a_py="old\n"), Lint("old", "new"))
    assert "write-protected" in fixed.withdrawn[0].reason
    assert (tmp_path / "a.py").read_text() == "old\n"


def test_lines_count_as_the_parser_counts_them() -> None:
    lines = Lines("a\rb\r\nc\x0cd\n")
    assert [lines.offset(number, 0) for number in (1, 2, 3, 4)] == [0, 2, 5, 9]
    with pytest.raises(ValueError, match="no line 6"):
        lines.offset(6, 0)
