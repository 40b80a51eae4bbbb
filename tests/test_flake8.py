"""The plugin in the real flake8: the same findings as the command, and no harm to others."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from ddp_lint.flake8_plugin import Plugin
from ddp_lint.registry import all_rules

ROOT = Path(__file__).parent.parent
INSTALLED = any(entry.name == "DDP" for entry in entry_points(group="flake8.extension"))

TRAIN = """\
import torch

from data import make_loader


def main(model, dataset):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loader, sampler = make_loader(dataset)
    for epoch in range(90):
        for inputs in loader:
            optimizer.zero_grad()
            loss = model(inputs).sum()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main(torch.nn.Linear(8, 1), torch.randn(64, 8))
"""
DATA = """\
from torch.utils.data import DataLoader, DistributedSampler


def make_loader(dataset):
    sampler = DistributedSampler(dataset)
    return DataLoader(dataset, sampler=sampler), sampler
"""
TOLD = TRAIN.replace("        for inputs", "        sampler.set_epoch(epoch)\n        for inputs")
#: A plugin that looks at docstrings, and at the whole tree, as it gets it.
OTHER = """\
import ast
import hashlib


class Plugin:
    def __init__(self, tree):
        self.tree = tree

    def run(self):
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef) and not ast.get_docstring(node):
                yield node.lineno, 0, "XDS101 no docstring", type(self)
        digest = hashlib.sha256(ast.dump(self.tree, include_attributes=True).encode())
        yield 1, 0, f"XDS102 {digest.hexdigest()}", type(self)
"""


def config(folder: Path, *, ours: bool = True, other: bool = False, also: str = "") -> Path:
    """A configuration with the plugins; ours only where it is not installed anyway."""
    plugins = []
    if ours and not INSTALLED:
        plugins.append("    DDP = ddp_lint.flake8_plugin:Plugin")
    if other:
        plugins.append("    XDS = other_plugin:Plugin")
    text = f"[flake8]\n{also}\n"
    if plugins:
        text += "[flake8:local-plugins]\nextension =\n" + "\n".join(plugins) + "\n"
    path = folder / "flake8.cfg"
    path.write_text(text)
    return path


def flake8(
    config: Path, *words: str | Path, cwd: Path, stdin: str | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "flake8", "--config", config, *words]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{config.parent}"}
    ran = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
    )
    assert ran.returncode in (0, 1), ran.stderr
    assert not ran.stderr
    return ran


def codes(ran: subprocess.CompletedProcess[str]) -> list[str]:
    return re.findall(r"^\S+ (DDP\d+) ", ran.stdout, re.M)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    (root / "train.py").write_text(TRAIN)
    (root / "data.py").write_text(DATA)
    return root


CORPUS = ["examples", "runtime_checks", "tests/cases"]


def test_same_findings_as_the_command(tmp_path: Path) -> None:
    """Over all that we have: examples, proofs and cases, with one process and with two."""
    command = [sys.executable, "-m", "ddp_lint", "check", "--isolated", "--format", "json"]
    ran = subprocess.run([*command, *CORPUS], cwd=ROOT, capture_output=True, text=True)
    by_command = sorted(
        (one["path"], one["line"], one["column"], f"{one['code']} {one['message']}")
        for one in json.loads(ran.stdout)["findings"]
        if not one["path"].endswith(".ipynb")
    )
    assert len(by_command) > len(all_rules())
    for jobs in ("1", "2"):
        options = ["--select=DDP", "--ddp-lint-isolated", f"-j{jobs}"]
        options.append("--format=%(path)s\t%(row)d\t%(col)d\t%(code)s %(text)s")
        ran = flake8(config(tmp_path), *options, *CORPUS, cwd=ROOT)
        rows = (line.split("\t") for line in ran.stdout.splitlines())
        by_flake8 = sorted((path, int(row), int(col), text) for path, row, col, text in rows)
        assert by_flake8 == by_command


def test_one_file_is_judged_with_its_project(project: Path, tmp_path: Path) -> None:
    assert codes(flake8(config(tmp_path), "train.py", cwd=project)) == ["DDP301"]
    (project / "train.py").write_text(TOLD)
    assert codes(flake8(config(tmp_path), "train.py", cwd=project)) == []


def test_unsaved_text_wins_over_the_disk(project: Path, tmp_path: Path) -> None:
    def on_stdin(text: str, name: str) -> list[str]:
        words = ["--stdin-display-name", name, "-"]
        return codes(flake8(config(tmp_path), *words, cwd=project, stdin=text))

    assert on_stdin(TRAIN, "train.py") == ["DDP301"]
    assert on_stdin(TOLD, "train.py") == []
    (project / "train.py").write_text(TOLD)
    assert on_stdin(TRAIN, "train.py") == ["DDP301"]
    assert on_stdin(TRAIN, "other.py") == ["DDP301"]
    assert on_stdin("x = 1\n", "train.py") == []


def test_stdin_without_a_name(project: Path, tmp_path: Path) -> None:
    assert codes(flake8(config(tmp_path), "-", cwd=project, stdin=TRAIN)) == ["DDP301"]


def test_line_endings_and_marks_are_the_same_text(project: Path, tmp_path: Path) -> None:
    (project / "train.py").write_bytes(b"\xef\xbb\xbf" + TRAIN.replace("\n", "\r\n").encode())
    ran = flake8(config(tmp_path), "--select=DDP", "train.py", cwd=project)
    assert re.match(r"train\.py:9:5: DDP301 ", ran.stdout)


def test_notes_are_off_unless_selected(project: Path, tmp_path: Path) -> None:
    note = next(rule for rule in all_rules().values() if rule.level == "note" and rule.on)
    bad = next(one.code for one in note.examples if one.verdict == "bad")
    (project / "noted.py").write_text(bad)
    for words, expected in (
        ([], False),
        ([f"--extend-select={note.code}"], True),
        ([f"--select={note.code}"], True),
        (["--select=DDP"], True),
        (["--ignore=E1"], False),
        (["--select=DDP", f"--extend-ignore={note.code}"], False),
    ):
        found = codes(flake8(config(tmp_path), *words, "noted.py", cwd=project))
        assert (note.code in found) == expected, words


def test_noqa_as_the_command_reads_it(project: Path, tmp_path: Path) -> None:
    marked = TRAIN.replace("range(90):", "range(90):  # noqa: DDP301")
    (project / "train.py").write_text(marked)
    assert codes(flake8(config(tmp_path), "train.py", cwd=project)) == []
    assert codes(flake8(config(tmp_path), "--disable-noqa", "train.py", cwd=project)) == ["DDP301"]


def test_settings_hold_here_too(project: Path, tmp_path: Path) -> None:
    pyproject = project / "pyproject.toml"
    pyproject.write_text("[tool.ddp-lint]\nignore = ['DDP301']\n")
    assert codes(flake8(config(tmp_path), "train.py", cwd=project)) == []
    words = ["--ddp-lint-isolated", "train.py"]
    assert codes(flake8(config(tmp_path), *words, cwd=project)) == ["DDP301"]
    other = tmp_path / "other.toml"
    other.write_text("[tool.ddp-lint]\nselect = ['DDP301']\n")
    words = ["--ddp-lint-config", str(other), "train.py"]
    assert codes(flake8(config(tmp_path), *words, cwd=project)) == ["DDP301"]
    pyproject.write_text("[tool.ddp-lint]\nexclude = ['train.py']\n")
    assert codes(flake8(config(tmp_path), "train.py", cwd=project)) == []
    pyproject.write_text("[tool.ddp-lint]\nslect = []\n")
    ran = flake8(config(tmp_path), "train.py", cwd=project)
    assert "DDP000 pyproject.toml:2: there is no setting 'slect'" in ran.stdout


def test_other_plugins_get_the_tree_as_it_was(project: Path, tmp_path: Path) -> None:
    (tmp_path / "other_plugin.py").write_text(OTHER)
    (project / "data.py").write_text(f'"""A docstring."""\nimport os\n{DATA}')

    def rest(*, ours: bool) -> list[str]:
        select = "--select=F,XDS,DDP" if ours else "--select=F,XDS"
        ran = flake8(config(tmp_path, ours=ours, other=True), select, ".", cwd=project)
        return [line for line in ran.stdout.splitlines() if " DDP" not in line]

    alone = rest(ours=False)
    assert any(" F401 " in line for line in alone)
    assert sum(" XDS102 " in line for line in alone) == 2
    assert rest(ours=True) == alone


def test_the_plugin_does_not_touch_the_tree(project: Path) -> None:
    import argparse

    options = argparse.Namespace(
        select=None,
        extend_select=None,
        disable_noqa=False,
        ddp_lint_config=None,
        ddp_lint_isolated=False,
    )
    Plugin.parse_options(options)
    tree = ast.parse(TRAIN)
    before = ast.dump(tree, include_attributes=True)
    lines = TRAIN.splitlines(keepends=True)
    found = list(Plugin(tree, str(project / "train.py"), lines).run())
    assert [text.split()[0] for _, _, text, _ in found] == ["DDP301"]
    assert ast.dump(tree, include_attributes=True) == before


def test_a_project_is_linted_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import argparse

    import ddp_lint.api
    import ddp_lint.engine

    for number in range(20):
        (project / f"more{number}.py").write_text("x = 1\n")
    real, calls = ddp_lint.engine.analyse, []

    def counted(project: object, rules: object) -> object:
        calls.append(project)
        return real(project, rules)  # type: ignore[arg-type]

    monkeypatch.setattr(ddp_lint.api, "analyse", counted)
    options = argparse.Namespace(
        select=None,
        extend_select=None,
        disable_noqa=False,
        ddp_lint_config=None,
        ddp_lint_isolated=False,
    )

    def lint_all() -> list[str]:
        found = []
        for path in sorted(project.glob("*.py")):
            lines = path.read_text().splitlines(keepends=True)
            results = Plugin(ast.parse(path.read_text()), str(path), lines).run()
            found += [text.split()[0] for _, _, text, _ in results]
        return found

    Plugin.parse_options(options)
    assert lint_all() == ["DDP301"]
    assert len(calls) == 1
    # The next run of flake8 in this process sees what has changed on the disk.
    (project / "train.py").write_text(TOLD)
    Plugin.parse_options(options)
    assert lint_all() == []
    assert len(calls) == 2
