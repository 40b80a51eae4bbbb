"""The command, from the words typed to the exit code, with an engine that finds what it is told.

What depends on a real terminal, pipe or interpreter runs a process of its own.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from ddp_lint import __version__
from ddp_lint.cli import main
from tests.test_flake8 import DATA
from tests.test_flake8 import TRAIN as PARTS

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def codes(self) -> list[str]:
        return re.findall(r"^\S+: (DDP\d{3}) ", self.out, re.M)


Run = Callable[..., Ran]
#: A program of one file.
TRAIN = PARTS.replace("from data import make_loader\n", DATA)


@pytest.fixture
def run(engine: None, folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Call it with words as a shell would hand them over."""

    def call(*words: str) -> Ran:
        try:
            code: object = main(words)
        except SystemExit as ended:
            code = ended.code or 0
        assert isinstance(code, int)
        return Ran(code, *capsys.readouterr())

    return call


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


# What can be typed


def test_alone_it_says_what_to_type(run: Run) -> None:
    ran = run()
    assert ran.code == 2
    assert "ddp-lint check ." in ran.out


def test_version(run: Run) -> None:
    assert run("--version").out == f"ddp-lint {__version__}\n"


@pytest.mark.parametrize("words", [["--help"], ["check", "--help"]])
def test_help_names_the_exit_codes(run: Run, words: list[str]) -> None:
    ran = run(*words)
    assert ran.code == 0
    assert "exit code: 0" in ran.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["chekc"], "did you mean 'check'?"),
        (["frobnicate"], "commands are check, explain"),
        (["here.py"], "to lint it, type: ddp-lint check here.py"),
        (["--colour"], "unrecognized arguments: --colour"),
        (["check", "--selct", "DDP101"], "did you mean '--select'?"),
        (["check", "--select", "DDP999"], "no rule is called 'DDP999'"),
        (["check", "--select", "DDP1012"], "did you mean 'DDP101'?"),
        (["check", "--ignore", "clip-before-unscal"], "did you mean 'clip-before-unscale'?"),
        (["check", "--fail-on", "erorr"], "did you mean 'error'?"),
        (["check", "--format", "jsn"], "did you mean 'json'?"),
        (["check", "--format", "zzz"], "there are text,"),
        (["check", "-j", "many"], "a number of processes, not 'many'"),
        (["check", "--config", "gone.toml"], "there is no file gone.toml"),
        (["check", "--unsafe-fixes"], "goes with --fix or --diff"),
        (["check", "--stdin-filename", "a.py"], "needs the path -"),
        (["check", "--output-file", "no/such/folder/x", "here.py"], "cannot be written"),
        (["explain", "DDP210"], "did you mean 'DDP201'?"),
        (["explain", "nothing-like-it"], "`ddp-lint rules` lists them all"),
        (["explain"], "the following arguments are required: CODE"),
    ],
)
def test_wrong_words_are_told_what_was_meant(run: Run, words: list[str], said: str) -> None:
    write("here.py", "")
    ran = run(*words)
    assert ran.code == 2
    assert said in ran.err
    assert ran.err.startswith("ddp-lint: ")
    assert ran.out == ""


def test_explain_by_code_and_by_name(run: Run) -> None:
    by_code = run("explain", "ddp201")
    assert by_code.code == 0
    assert by_code.out == run("explain", "clip-before-unscale").out
    assert by_code.out.startswith("# DDP201: clip-before-unscale\n\nLevel: error.\n\nThe summary")
    assert "off unless selected by its code" in run("explain", "DDP309").out


def test_rules(run: Run) -> None:
    lines = run("rules").out.splitlines()
    assert lines[0].split() == ["code", "level", "fix", "name", "finds"]
    assert lines[3].split()[:3] == ["DDP201", "error", "clip-before-unscale"]
    assert "note, off" in lines[5]
    assert len(lines) == 6


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["ddp-lint", "ch"], ["check"]),
        (["ddp-lint", "check", "--sel"], ["--select"]),
        (["ddp-lint", "check", "--select", "DDP2"], ["DDP201"]),
        (["ddp-lint", "explain", "clip"], ["clip-before-unscale"]),
        (["ddp-lint", "check", "--fail-on", "n"], ["note", "never"]),
        (["ddp-lint", "check", "tra"], ["train.py"]),
    ],
)
def test_completion_in_bash(run: Run, words: list[str], expected: list[str]) -> None:
    write("train.py", "")
    script = run("completion", "bash").out
    line = " ".join(f"'{word}'" for word in words)
    script += (
        f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _ddp_lint; echo ${{COMPREPLY[*]}}"
    )
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert (ran.stdout.split(), ran.stderr) == (expected, "")


def test_completion_for_other_shells(run: Run) -> None:
    assert run("completion", "zsh").out.startswith("autoload -U +X bashcompinit && bashcompinit\n")
    fish = run("completion", "fish").out.splitlines()
    assert all(line.startswith("complete -c ddp-lint -n '") for line in fish)
    assert any(line.endswith("-l fail-on -x -a 'note warning error never'") for line in fish)


# What is found, and the exit code


def test_findings_fail_the_run(run: Run) -> None:
    write("a.py", "x = 1\nfind_DDP101\n")
    write("b.py", "x = 1\n")
    ran = run("check")
    assert ran.code == 1
    assert ran.codes == ["DDP101"]
    assert "1 warning in 2 files" in ran.out
    assert ran.err == ""
    assert run("check", "b.py").code == 0
    assert run("check", "b.py").out == "No findings in 1 file.\n"


@pytest.mark.parametrize(
    ("code", "fail_on", "expected"),
    [
        ("DDP105", None, 0),
        ("DDP105", "note", 1),
        ("DDP101", None, 1),
        ("DDP101", "warning", 1),
        ("DDP101", "error", 0),
        ("DDP201", "error", 1),
        ("DDP201", "never", 0),
    ],
)
def test_fail_on(run: Run, code: str, fail_on: str | None, expected: int) -> None:
    write("a.py", f"find_{code}\n")
    words = ["check"] if fail_on is None else ["check", "--fail-on", fail_on]
    ran = run(*words)
    assert (ran.code, ran.codes) == (expected, [code])


def test_fail_on_of_the_file_that_the_finding_is_in(run: Run) -> None:
    write("a.py", "find_DDP105\n")
    write("pyproject.toml", "[tool.ddp-lint]\nfail-on = 'note'\n")
    assert run("check").code == 1
    write("strict/b.py", "find_DDP201\n")
    write("strict/pyproject.toml", "[tool.ddp-lint]\nfail-on = 'never'\n")
    assert run("check", "strict").code == 0
    assert run("check", ".").code == 1


def test_select_and_ignore(run: Run) -> None:
    write("a.py", "find_DDP101\nfind_DDP105\nfind_DDP201\nfind_DDP301\nfind_DDP309\n")
    assert run("check").codes == ["DDP101", "DDP105", "DDP201", "DDP301"]
    assert run("check", "--select", "DDP1,DDP301").codes == ["DDP101", "DDP105", "DDP301"]
    assert run("check", "--select", "DDP1", "--ignore", "DDP105").codes == ["DDP101"]
    assert run("check", "--select", "DDP309").codes == ["DDP309"]
    assert run("check", "--extend-select", "starved-loader").codes[-1] == "DDP309"
    assert run("check", "--ignore", "DDP1", "--ignore", "DDP2").codes == ["DDP301"]


def test_levels_from_the_settings(run: Run) -> None:
    write("a.py", "find_DDP101\n")
    write("pyproject.toml", "[tool.ddp-lint.levels]\nDDP101 = 'note'\n")
    ran = run("check")
    assert ran.code == 0
    assert "DDP101 note: " in ran.out


def test_noqa(run: Run) -> None:
    write("a.py", "find_DDP101  # noqa: DDP101\nfind_DDP201  # noqa\nfind_DDP301  # noqa: E501\n")
    ran = run("check")
    assert ran.codes == ["DDP301"]
    assert "2 findings suppressed by noqa." in ran.out
    assert len(run("check", "--no-noqa").codes) == 3


def test_exclude(run: Run) -> None:
    write("a.py", "find_DDP101\n")
    write("third_party/b.py", "find_DDP101\n")
    assert "third_party" not in run("check", "--exclude", "third_party/").out
    ran = run("check", "--exclude", "*.py")
    assert (ran.code, ran.out) == (0, "")
    assert "settings exclude everything" in ran.err
    write("pyproject.toml", "[tool.ddp-lint]\nexclude = ['third_party/']\n")
    assert "third_party" not in run("check").out
    assert run("check", "third_party/b.py").out == ""


def test_a_missing_path_does_not_stop_the_rest(run: Run) -> None:
    write("a.py", "find_DDP101\n")
    ran = run("check", "gone.py", "a.py")
    assert (ran.code, ran.codes) == (2, ["DDP101"])
    assert ran.err == "ddp-lint: gone.py does not exist\n"


def test_nothing_to_lint(run: Run) -> None:
    write("docs/a.md", "")
    ran = run("check", "docs")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "ddp-lint: docs holds no Python files or notebooks to lint\n"


def test_an_empty_path_beside_others_is_said(run: Run) -> None:
    write("docs/a.md", "")
    write("a.py", "x = 1\n")
    ran = run("check", "docs", "a.py")
    assert ran.code == 0
    assert "docs holds no Python files" in ran.err


def test_a_file_that_cannot_be_parsed(run: Run) -> None:
    write("bad.py", "x = 1\nprint 'two'\n")
    write("good.py", "x = 1\n")
    ran = run("check")
    assert ran.code == 1
    assert ran.out.startswith("bad.py:2: ")
    assert "No findings in 2 files. 1 problem: see above." in ran.out
    assert run("check", "--fail-on", "never").code == 1


def test_a_wrong_configuration(run: Run) -> None:
    write("a.py", "x = 1\n")
    write("pyproject.toml", "[tool.ddp-lint]\nslect = []\n")
    ran = run("check")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "ddp-lint: pyproject.toml:2: there is no setting 'slect'; did you mean 'select'?\n"
    )
    assert run("check", "--isolated").code == 0


def test_show_settings(run: Run) -> None:
    write("pyproject.toml", "[tool.ddp-lint]\nselect = ['DDP2']\n")
    ran = run("check", "--show-settings", "--ignore", "DDP201")
    assert ran.code == 0
    assert ran.out.startswith('# from pyproject.toml\n[tool.ddp-lint]\nselect = ["DDP2"]\n')
    assert 'ignore = ["DDP201"]' in ran.out


def test_text_on_stdin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write("a.py", "x = 1\n")
    for words, path in (
        (["check", "-", "--stdin-filename", "a.py"], "a.py"),
        (["check", "-"], "stdin.py"),
    ):
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"find_DDP201\n")))
        ran = run(*words)
        assert ran.code == 1
        assert ran.out.startswith(f"{path}:1:1: DDP201 error: ")


def test_many_processes_say_the_same(engine: None, folder: Path) -> None:
    """The workers have the real rules and engine, so this asks the real command."""
    for name in ("one", "two", "three"):
        write(f"{name}/.git/config", "")
        write(f"{name}/train.py", TRAIN)

    def check(*words: str) -> str:
        command = [sys.executable, "-m", "ddp_lint", "check", "--format", "json", *words]
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.run(command, capture_output=True, text=True, env=environment).stdout

    alone = check("-j", "1")
    assert len({finding["path"] for finding in json.loads(alone)["findings"]}) == 3
    assert check("-j", "2") == alone


# What the report looks like


def test_text(run: Run) -> None:
    write("lib/a.py", "def f():\n    x = related_DDP201 + 1\n")
    assert run("check").out == (
        "lib/a.py:2:9: DDP201 error: `related_DDP201` goes wrong on every rank\n"
        "  2 | x = related_DDP201 + 1\n"
        "    |     ^^^^^^^^^^^^^^\n"
        "    = lib/a.py:1:1: it starts here\n"
        "\n"
        "1 error in 1 file; `ddp-lint explain DDP201` says why and what to do.\n"
    )


def test_text_shows_the_fix(run: Run) -> None:
    write("a.py", "fix_DDP201\n")
    assert "\n    = fix: say fixed (--fix)\n" in run("check").out


def test_text_of_a_notebook(run: Run) -> None:
    cells = [{"cell_type": "code", "source": ["x = 1\n", "find_DDP101"]}]
    write("a.ipynb", json.dumps({"nbformat": 4, "metadata": {}, "cells": cells}))
    out = run("check").out
    assert out.startswith("a.ipynb:cell 1:2:1: DDP101 ")
    assert "  2 | find_DDP101\n" in out


@pytest.mark.parametrize(
    ("line", "shown", "caret"),
    [
        ("    x = find_DDP201", "x = find_DDP201", "    ^^^^^^^^^^^"),
        ("x = 'é\u4e16' + find_DDP201", "x = 'é\u4e16' + find_DDP201", " " * 12 + "^" * 11),
        ("if 1:\tfind_DDP201", "if 1:\tfind_DDP201", "     \t^^^^^^^^^^^"),
        ("find_DDP201, '\x1b[31m'", "find_DDP201, '\N{REPLACEMENT CHARACTER}[31m'", "^" * 11),
    ],
)
def test_the_caret_stands_below(run: Run, line: str, shown: str, caret: str) -> None:
    text = f"if 1:\n{line}\n" if line[0] == " " else f"{line}\n"
    write("a.py", text)
    _, second, third, *_ = run("check").out.splitlines()
    assert second.split("| ")[1] == shown
    assert third.split("| ")[1] == caret


def test_a_long_line_is_cut_around_the_place(run: Run) -> None:
    write("a.py", f"x = [{'1, ' * 200}find_DDP201, {'1, ' * 200}]\n")
    _, second, third, *_ = run("check").out.splitlines()
    at = third.index("^")
    assert second[at : at + 11] == "find_DDP201"
    assert len(second) < 140
    assert second.endswith("…")


def test_statistics(run: Run) -> None:
    write("a.py", "find_DDP101\nfind_DDP201\n" + "find_DDP301\n" * 10)
    assert (
        "10  DDP301  sampler-without-set-epoch\n 1  DDP101  host-sync-in-step\n"
        in run("check", "--statistics").out
    )


def test_json(run: Run) -> None:
    write("lib/a.py", "x = 'é' + related_DDP201\nfix_DDP101\n")
    write("lib/bad.py", "x = (\n")
    ran = run("check", "--format", "json")
    document = json.loads(ran.out)
    place = {"path": "lib/a.py", "line": 1, "column": 11, "end_line": 1, "end_column": 25}
    top = {"path": "lib/a.py", "line": 1, "column": 1, "end_line": 1, "end_column": 2}
    assert ran.code == 1
    assert document["version"] == 1
    assert document["findings"][0] == {
        "code": "DDP201",
        "name": "clip-before-unscale",
        "level": "error",
        **place,
        "message": "`related_DDP201` goes wrong on every rank",
        "related": [{**top, "message": "it starts here"}],
    }
    assert document["findings"][1]["fix"]["safe"] is True
    (edit,) = document["findings"][1]["fix"]["edits"]
    assert (edit["line"], edit["column"], edit["end_column"], edit["text"]) == (2, 1, 11, "fixed")
    (problem,) = document["problems"]
    assert (problem["path"], problem["line"]) == ("lib/bad.py", 1)
    assert document["summary"] == {
        "files": 2,
        "levels": {"note": 0, "warning": 1, "error": 1},
        "suppressed": 0,
        "codes": {"DDP201": 1, "DDP101": 1},
    }


def test_output_file(run: Run) -> None:
    write("a.py", "find_DDP201\n")
    ran = run("check", "--output-file", "report.txt")
    assert (ran.code, ran.out) == (1, "")
    assert Path("report.txt").read_text().startswith("a.py:1:1: DDP201 error: ")


# Fixes

FIXABLE = "x = fix_DDP201  # a comment\nfind_DDP101\n"


def test_fix(run: Run) -> None:
    write("a.py", FIXABLE)
    ran = run("check", "--fix")
    assert (ran.code, ran.codes) == (1, ["DDP101"])
    assert ran.err == "ddp-lint: fixed 1 finding in 1 file\n"
    assert Path("a.py").read_text() == FIXABLE.replace("fix_DDP201", "fixed")
    assert run("check", "--fix").err == ""


@pytest.mark.usefixtures("engine", "folder")
def test_diff(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write("a.py", FIXABLE)
    assert main(["check", "--diff"]) == 1
    patch, said = capfdbinary.readouterr()
    assert said == b"ddp-lint: would fix 1 finding in 1 file\n"
    assert Path("a.py").read_text() == FIXABLE
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    assert Path("a.py").read_text() == FIXABLE.replace("fix_DDP201", "fixed")
    assert main(["check", "--diff"]) == 0
    assert capfdbinary.readouterr() == (b"", b"")


def test_fixes_heed_noqa_and_settings(run: Run) -> None:
    write("a.py", "fix_DDP201  # noqa\n")
    write("b.py", "fix_DDP201\n")
    assert run("check", "--fix", "--exclude", "b.py").err == ""
    assert Path("a.py").read_text() == "fix_DDP201  # noqa\n"
    assert Path("b.py").read_text() == "fix_DDP201\n"


# Terminals, pipes and interpreters


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "ddp_lint", *words]


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)],
)
def test_colour_on_a_terminal_only(
    folder: Path, environment: dict[str, str], coloured: bool
) -> None:
    write("train.py", TRAIN)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", **environment}
    ours, theirs = pty.openpty()
    with subprocess.Popen(command("check"), stdout=theirs, stderr=theirs, env=env):
        os.close(theirs)
        shown = b""
        try:
            while part := os.read(ours, 4096):
                shown += part
        except OSError:  # how Linux says that the other end is closed
            pass
    os.close(ours)
    assert b"DDP301" in shown
    assert (b"\x1b[1;31m" in shown) == coloured
    piped = subprocess.run(command("check"), capture_output=True, env=env)
    assert b"\x1b" not in piped.stdout + piped.stderr


def test_a_closed_pipe_ends_it_quietly(folder: Path) -> None:
    write("train.py", TRAIN)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command("check"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_an_encoding_that_cannot_say_it(folder: Path) -> None:
    write("tränen.py", TRAIN.replace("dataset", "dätäset"))
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    ran = subprocess.run(command("check"), capture_output=True, text=True, env=env)
    assert ran.returncode == 1
    assert ran.stderr == ""
    assert ran.stdout.startswith("tr\\xe4nen.py:")


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["check", "--help"], []])
def test_little_is_imported_where_little_is_asked(words: list[str]) -> None:
    program = (
        "import sys\nfrom ddp_lint.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print('imported', *sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=ROOT, capture_output=True, text=True
    )
    imported = set(ran.stdout.splitlines()[-1].split()[1:])
    assert not imported & {"astroid", "ddp_lint.engine", "ddp_lint.sources", "torch", "flake8"}
