"""Beginning in an old repository: baseline, changed lines, noqa written and found idle."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from ddp_lint.cli import main
from ddp_lint.finding import Place
from ddp_lint.noqa import Noqa
from ddp_lint.sources import SourceFile


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def places(self) -> list[str]:
        """``a.py:1 DDP101`` for each finding."""
        found = re.findall(r"^(\S.*:\d+):\d+: (DDP\d{3}) ", self.out, re.M)
        return [f"{where} {code}" for where, code in found]


Run = Callable[..., Ran]


@pytest.fixture
def run(engine: None, folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> Ran:
        try:
            code: object = main(["check", *words])
        except SystemExit as ended:
            code = ended.code or 0
        assert isinstance(code, int)
        return Ran(code, *capsys.readouterr())

    return call


@pytest.fixture
def git(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """A real repository in the current folder."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", os.devnull)
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "somebody@example.com")

    def call(*words: str) -> str:
        return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout

    call("init", "--quiet", "--initial-branch=main", ".")
    return call


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(text.encode())


def notebook(*cells: str) -> str:
    made = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"nbformat": 4, "metadata": {}, "cells": made}, indent=1)


BASELINE = ("--baseline", "known.json")
UPDATE = (*BASELINE, "--update-baseline")


# Baseline


def test_known_findings_are_not_shown_and_do_not_fail(run: Run) -> None:
    write("a.py", "find_DDP201\n")
    written = run(*UPDATE)
    assert (written.code, written.places) == (0, [])
    assert written.err == "ddp-lint: known.json holds 1 finding: 1 new, 0 gone\n"
    ran = run(*BASELINE)
    assert (ran.code, ran.places) == (0, [])
    assert ran.err == "ddp-lint: 1 finding in known.json not shown\n"


def test_a_new_finding_is_shown_and_fails(run: Run) -> None:
    write("a.py", "find_DDP201\n")
    run(*UPDATE)
    write("a.py", "x = 1\n\nif x:\n    find_DDP201\nfind_DDP201, 2\n")
    ran = run(*BASELINE)
    assert (ran.code, ran.places) == (1, ["a.py:5 DDP201"])


def test_of_equal_lines_as_many_are_known_as_were_counted(run: Run) -> None:
    write("a.py", "find_DDP201\nfind_DDP201\n")
    run(*UPDATE)
    entry = json.loads(Path("known.json").read_text())["files"]["a.py"]["DDP201"]
    assert entry["count"] == len(entry["fingerprints"]) == 2
    write("a.py", "find_DDP201\n" * 3)
    assert run(*BASELINE).places == ["a.py:3 DDP201"]


def test_stale_entries_are_said_with_the_way_to_drop_them(run: Run) -> None:
    write("a.py", "find_DDP201\nfind_DDP101\n")
    write("b.py", "find_DDP201\n")
    run(*UPDATE)
    write("a.py", "find_DDP101\nfind_DDP301\n")
    Path("b.py").unlink()
    said = run(".", *BASELINE).err.splitlines()[-1]
    assert said == (
        "ddp-lint: 2 findings in known.json gone (1 DDP201 in a.py, 1 DDP201 in b.py); to drop "
        "them (and to record the 1 new): ddp-lint check . --baseline known.json --update-baseline"
    )
    assert run(*UPDATE).err == "ddp-lint: known.json holds 2 findings: 1 new, 2 gone\n"
    assert "gone" not in run(*BASELINE).err


def test_what_was_not_looked_at_is_neither_stale_nor_dropped(run: Run) -> None:
    write("a.py", "find_DDP201\n")
    write("b.py", "find_DDP101\nfind_DDP201\n")
    write("bad.py", "find_DDP301\n")
    run(*UPDATE)
    before = Path("known.json").read_text()
    write("bad.py", "find_DDP301 (\n")
    assert "gone" not in run("a.py", *BASELINE).err
    assert "gone" not in run("--select", "DDP2", *BASELINE).err
    run("a.py", *UPDATE)
    run("--select", "DDP2", *UPDATE)
    assert Path("known.json").read_text() == before


def test_a_baseline_means_the_same_from_every_folder(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("lib/a.py", "find_DDP201\n")
    run(*UPDATE)
    monkeypatch.chdir("lib")
    ran = run("--baseline", "../known.json")
    assert (ran.code, ran.places) == (0, [])


def test_findings_in_a_notebook_survive_a_new_cell(run: Run) -> None:
    write("a.ipynb", notebook("find_DDP201\n"))
    run(*UPDATE)
    write("a.ipynb", notebook("x = 1\n", "find_DDP201\n", "y = find_DDP201\n"))
    assert run(*BASELINE).places == ["a.ipynb:cell 3:1 DDP201"]


def test_fixes_leave_alone_what_is_known(run: Run) -> None:
    write("a.py", "fix_DDP201\n")
    run(*UPDATE)
    write("a.py", "fix_DDP201\nx = fix_DDP201\n")
    assert "-x = fix_DDP201\n+x = fixed\n" in run("--diff", *BASELINE).out
    run("--fix", *BASELINE)
    assert Path("a.py").read_text() == "fix_DDP201\nx = fixed\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "there is no file known.json; to write it, add --update-baseline"),
        ("<<<<<<< ours", "is no baseline of ddp-lint"),
        ("[]", "it has no `files`"),
        ('{"version": 2, "files": {}}', "its version is 2, not 1"),
        ('{"version": 1, "files": {"a.py": 1}}', "a.py has no rules"),
        ('{"version": 1, "files": {"a.py": {"DDP201": {}}}}', "no fingerprints for DDP201"),
        (
            '{"version": 1, "files": {"a.py": {"DDP201": {"count": 2, "fingerprints": ["x"]}}}}',
            "a.py counts 2 DDP201, and names 1",
        ),
    ],
)
def test_a_baseline_that_cannot_be_used(run: Run, text: str | None, said: str) -> None:
    write("a.py", "find_DDP201\n")
    if text is not None:
        write("known.json", text)
    ran = run(*BASELINE)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


# Changed lines


def test_only_changed_lines(run: Run, git: Callable[..., str]) -> None:
    write("a.py", "find_DDP101\nfind_DDP201\nx = 1\n")
    write("lib/with spaces é.py", "find_DDP201\n")
    git("add", ".")
    git("commit", "-qm", "one")
    assert run("--diff-only", "HEAD").places == []
    write("a.py", "x = 2\nfind_DDP101\nfind_DDP201, 2\nfind_DDP301\n++ x\n")
    write("lib/with spaces é.py", "find_DDP201\nx = 1\nfind_DDP301\n")
    assert run("--diff-only", "HEAD").places == [
        "a.py:3 DDP201",
        "a.py:4 DDP301",
        "lib/with spaces é.py:3 DDP301",
    ]
    git("commit", "-qam", "two")
    assert run("--diff-only", "HEAD").code == 0
    assert run("--diff-only", "HEAD~1").code == 1


def test_untracked_files_have_changed(run: Run, git: Callable[..., str]) -> None:
    write("a.py", "x = 1\n")
    git("add", ".")
    git("commit", "-qm", "one")
    write("new.py", "find_DDP201\n")
    write("staged.py", "find_DDP301\n")
    git("add", "staged.py")
    assert run("--diff-only", "HEAD").places == ["new.py:1 DDP201", "staged.py:1 DDP301"]


def test_a_file_that_moved_has_not_changed(run: Run, git: Callable[..., str]) -> None:
    write("a.py", "find_DDP201\n" + "x = 1\n" * 20)
    git("add", ".")
    git("commit", "-qm", "one")
    git("mv", "a.py", "b.py")
    assert run("--diff-only", "HEAD").places == []


def test_since_the_branch_left(run: Run, git: Callable[..., str]) -> None:
    write("a.py", "find_DDP101\n")
    git("add", ".")
    git("commit", "-qm", "one")
    git("checkout", "-qb", "topic")
    write("b.py", "find_DDP301\n")
    git("add", ".")
    git("commit", "-qm", "two")
    git("checkout", "-q", "main")
    write("a.py", "x = 1\n")
    git("commit", "-qam", "mended")
    git("checkout", "-q", "topic")
    assert run("--diff-only", "main").places == ["a.py:1 DDP101", "b.py:1 DDP301"]
    assert run("--diff-only", "main...").places == ["b.py:1 DDP301"]


def test_from_a_folder_below_and_whatever_git_is_told(
    run: Run, git: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write("lib/a.py", "x = 1\r\n")
    git("add", ".")
    git("commit", "-qm", "one")
    git("config", "diff.noprefix", "true")
    git("config", "diff.relative", "true")
    git("config", "color.diff", "always")
    git("config", "diff.external", "false")
    write("lib/a.py", "x = 1\r\nfind_DDP201\r\n")
    monkeypatch.chdir("lib")
    assert run("--diff-only", "HEAD").places == ["a.py:2 DDP201"]


def test_changed_cells(run: Run, git: Callable[..., str]) -> None:
    write("a.ipynb", notebook("find_DDP101\n", "x = 1\n"))
    git("add", ".")
    git("commit", "-qm", "one")
    write("a.ipynb", notebook("find_DDP101\n", "x = 1\nfind_DDP201\n"))
    assert run("--diff-only", "HEAD").places == ["a.ipynb:cell 2:2 DDP201"]


def test_where_git_has_no_answer(run: Run, git: Callable[..., str]) -> None:
    write("a.py", "find_DDP201\n")
    git("add", ".")
    git("commit", "-qm", "one")
    for name in ("no-such-branch", "--output=x"):
        ran = run(f"--diff-only={name}")
        assert (ran.code, ran.out) == (2, "")
        assert f"git knows no revision {name!r}" in ran.err
    assert not Path("x").exists()


def test_where_there_is_no_repository(run: Run) -> None:
    write("a.py", "x = 1\n")
    ran = run("--diff-only", "HEAD")
    assert (ran.code, ran.out) == (2, "")
    assert "is not in a git repository" in ran.err


# Writing noqa comments

#: A text, and what becomes of it.  All of them are read by the real flake8 as well.
SILENCED = [
    ("find_DDP201\n", "find_DDP201  # noqa: DDP201\n"),
    ("find_DDP201", "find_DDP201  # noqa: DDP201"),
    ("find_DDP201   \r\nx = 1\r\n", "find_DDP201  # noqa: DDP201\r\nx = 1\r\n"),
    ("find_DDP201, find_DDP101\n", "find_DDP201, find_DDP101  # noqa: DDP101, DDP201\n"),
    ("find_DDP201  # why\n", "find_DDP201  # why  # noqa: DDP201\n"),
    ("find_DDP201  # noqa: E501\n", "find_DDP201  # noqa: E501, DDP201\n"),
    ("find_DDP201  # NOQA:E501 long\n", "find_DDP201  # NOQA:E501, DDP201 long\n"),
    ("x = (\n    find_DDP201,\n)\n", "x = (\n    find_DDP201,  # noqa: DDP201\n)\n"),
    ("x = find_DDP201 + \\\n    1\n", "x = find_DDP201 + \\\n    1  # noqa: DDP201\n"),
    ("x = find_DDP201, '''\n'''\n", "x = find_DDP201, '''\n'''  # noqa: DDP201\n"),
    ("if find_DDP201:\n    pass\n", "if find_DDP201:  # noqa: DDP201\n    pass\n"),
    ("x = 1\nfind_DDP201\t\n", "x = 1\nfind_DDP201  # noqa: DDP201\n"),
]


@pytest.mark.parametrize(("before", "after"), SILENCED)
def test_add_noqa(run: Run, before: str, after: str) -> None:
    write("a.py", before)
    ran = run("--add-noqa")
    assert (ran.code, ran.places) == (0, [])
    assert Path("a.py").read_bytes().decode() == after
    assert run().code == 0
    run("--add-noqa")
    assert Path("a.py").read_bytes().decode() == after


REASONS = ["", "known since 2023", "H100 only", "see #12 # noqa: E501"]


@pytest.mark.parametrize("reason", REASONS)
def test_flake8_reads_what_was_written(run: Run, folder: Path, reason: str) -> None:
    """Real flake8 with a code of its own, which each text has where ours has a finding."""
    for number, (before, _) in enumerate(SILENCED):
        write(f"t{number}.py", before)
    assert run("--add-noqa", reason).code == 0
    for path in folder.glob("t*.py"):
        text = path.read_bytes().decode()
        assert reason in text
        path.write_bytes(text.replace("# noqa: DDP", "# noqa: F").replace(", DDP", ", F").encode())
        path.write_bytes(path.read_bytes().replace(b"F201", b"F821").replace(b"F101", b"F821"))
        path.write_bytes(path.read_bytes().replace(b"find_DDP", b"undefined"))
    command = [sys.executable, "-m", "flake8", "--isolated", "--select=F821", "."]
    assert subprocess.run(command, capture_output=True, text=True).stdout == ""
    command.insert(-1, "--disable-noqa")
    shown = subprocess.run(command, capture_output=True, text=True).stdout
    assert {line.split(":")[0] for line in shown.splitlines()} == {
        f"./t{number}.py" for number in range(len(SILENCED))
    }


def test_a_reason_that_looks_like_a_code_is_not_read_as_one(run: Run) -> None:
    write("a.py", "find_DDP201\n")
    run("--add-noqa", "H100 only")
    assert Path("a.py").read_text() == "find_DDP201  # noqa: DDP201 - H100 only\n"
    noqa = Noqa(SourceFile(Path("a.py"), "a.py"))
    assert noqa.directives[0].codes == ("DDP201",)
    assert noqa.find(Place("a.py", 1, 0, 1, 1), "DDP201")


def test_a_reason_beside_another(run: Run) -> None:
    write("a.py", "find_DDP201  # noqa: E501 long\n")
    run("--add-noqa", "known")
    assert Path("a.py").read_text() == "find_DDP201  # noqa: E501, DDP201 long; known\n"


def test_add_noqa_keeps_encoding_mark_and_mode(run: Run) -> None:
    text = "# coding: latin-1\nx = 'é'; find_DDP201\n"
    Path("a.py").write_bytes(text.encode("latin-1"))
    Path("a.py").chmod(0o755)
    Path("b.py").write_bytes(b"\xef\xbb\xbffind_DDP201\n")
    assert run("--add-noqa", "naïve").code == 0
    assert Path("a.py").read_bytes() == (
        "# coding: latin-1\nx = 'é'; find_DDP201  # noqa: DDP201 naïve\n".encode("latin-1")
    )
    assert stat.S_IMODE(Path("a.py").stat().st_mode) == 0o755
    assert Path("b.py").read_bytes() == (b"\xef\xbb\xbffind_DDP201  # noqa: DDP201 na\xc3\xafve\n")


def test_a_file_whose_encoding_lacks_the_reason_is_left_alone(run: Run) -> None:
    text = b"# coding: latin-1\nfind_DDP201\n"
    Path("a.py").write_bytes(text)
    ran = run("--add-noqa", "\u4e16")
    assert (ran.code, ran.places) == (1, ["a.py:2 DDP201"])
    assert "a.py was left as it is: it cannot hold" in ran.err
    assert Path("a.py").read_bytes() == text


def test_add_noqa_in_a_notebook(run: Run) -> None:
    write("a.ipynb", notebook("x = 1\n", "!ls\nfind_DDP201"))
    assert run("--add-noqa").code == 0
    cells = json.loads(Path("a.ipynb").read_text())["cells"]
    assert cells[1]["source"] == ["!ls\n", "find_DDP201  # noqa: DDP201"]


def test_add_noqa_to_what_is_new(run: Run, git: Callable[..., str]) -> None:
    write("a.py", "find_DDP101\n")
    git("add", ".")
    git("commit", "-qm", "one")
    write("a.py", "find_DDP101\nfind_DDP201\n")
    assert run("--diff-only", "HEAD", "--add-noqa").code == 0
    assert Path("a.py").read_text() == "find_DDP101\nfind_DDP201  # noqa: DDP201\n"


# Comments with nothing to suppress


def test_unused_noqa(run: Run) -> None:
    write(
        "a.py",
        "find_DDP201  # noqa: DDP201, E501\n"
        "find_DDP201  # noqa: DDP101, DDP201\n"
        "x = 1  # noqa: E501, DDP1\n"
        "x = 1  # noqa\n"
        "x = 1  # noqa: DDP999\n"
        "x = 1  # noqa: DDP3\n"  # may be for DDP309, which did not run
        "x = '# noqa: DDP201'\n",
    )
    ran = run("--unused-noqa")
    assert ran.code == 1
    assert [line.split(" suppresses")[0] for line in ran.out.splitlines()] == [
        "a.py:2:14: DDP101",
        "a.py:3:8: DDP1",
        "a.py:5:8: DDP999",
    ]
    assert "a.py:6:8: DDP3 " in run("--unused-noqa", "--extend-select", "DDP309").out
    assert "DDP1 " not in run("--unused-noqa", "--ignore", "DDP101").out


def test_every_noqa_is_used(run: Run) -> None:
    write("a.py", "f(\n    find_DDP201,\n)  # noqa: DDP2\n")
    ran = run("--unused-noqa")
    assert (ran.code, ran.out) == (0, "Every noqa code in 1 file suppresses something.\n")


def test_unused_noqa_in_a_notebook(run: Run) -> None:
    write("a.ipynb", notebook("find_DDP201  # noqa: DDP201\n", "x = 1\ny = 1  # noqa: DDP201\n"))
    assert run("--unused-noqa").out.startswith("a.ipynb:cell 2:2:8: DDP201 suppresses nothing")


# What does not go together


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--update-baseline"], "--update-baseline goes with --baseline FILE"),
        (["--diff-only", "HEAD", "--fix"], "--diff-only does not go with --fix"),
        (["--diff-only", "HEAD", *UPDATE], "--diff-only does not go with --update-baseline"),
        (["--add-noqa", "--no-noqa"], "--add-noqa does not go with --no-noqa"),
        (["--unused-noqa", "--fix"], "--unused-noqa does not go with --fix"),
        (["--unused-noqa", "--format", "json"], "leave out --format"),
        (["--add-noqa", "a.py"], "paths go first: ddp-lint check a.py --add-noqa"),
        (["--add-noqa", "two\nlines"], "one line of text"),
        (["--add-noqa", "why", "-"], "not for text on stdin"),
    ],
)
def test_contradictions(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"x = 1\n")))
    write("a.py", "find_DDP201\n")
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert Path("a.py").read_text() == "find_DDP201\n"
    assert not Path("known.json").exists()
