"""Who may import whom: the layers of the linter, and what an import of it may bring along."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

#: From low to high; a module imports only from layers below its own, or from its own layer.
LAYERS = [
    ["finding"],
    ["ipython", "notebook", "edits"],
    ["sources"],
    ["model"],
    ["rule"],
    ["registry"],
    ["gate"],
    ["engine"],
    [
        "syntax",
        "noqa",
        "ignores",
        "settings",
        "roots",
        "discovery",
        "fix",
        "write",
        "baseline",
        "changed",
        "fingerprint",
        "suppress",
    ],
    ["report", "explain", "progress"],
    ["nosync"],  # for users' own tests: nothing else here imports it, and it alone needs torch
    [
        *("api", "adoption", "arguments", "completion", "cli", "flake8_plugin", "verify"),
        *("__main__", "__init__"),
    ],
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
#: What a rule may import: its language, and nothing that would let it do without.
RULE_IMPORTS = {"__future__", "ddp_lint.model", "ddp_lint.rule"}
MODULES = sorted((ROOT / "ddp_lint").rglob("*.py"))
RULES = sorted((ROOT / "rules").glob("*.py"))


def imports(path: Path, *, at_run_time: bool = False) -> Iterator[str]:
    """The modules that ``path`` imports, not counting those that only type checkers see."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {
        id(inside)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for inside in ast.walk(node)
    }
    for node in ast.walk(tree):
        if at_run_time and id(node) in skipped:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield node.module or ""
            if node.module == "ddp_lint":
                yield from (f"ddp_lint.{alias.name}" for alias in node.names)


def layer(name: str) -> int | None:
    """The rank of one of our modules; None for the names that ``ddp_lint`` itself gives."""
    return RANK.get(name.split(".")[1]) if "." in name else None


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_layers(path: Path) -> None:
    name = path.relative_to(ROOT / "ddp_lint").parts[0].removesuffix(".py")
    assert name in RANK, f"{name} is in no layer yet: say in which it belongs"
    for imported in imports(path, at_run_time=True):
        if imported.startswith("ddp_lint."):
            rank = layer(imported)
            assert rank is None or rank <= RANK[name], f"{path}: imports {imported}"


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_rules_speak_the_language_of_the_model(path: Path) -> None:
    assert set(imports(path)) <= RULE_IMPORTS


def test_astroid_stays_inside_the_model() -> None:
    """And what the model does not hand out, nobody else takes apart."""
    users = {path.relative_to(ROOT).parts[1] for path in MODULES if "astroid" in imports(path)}
    assert users <= {"model", "engine.py"}


@pytest.mark.parametrize("name", ["torch", "flake8", "numpy"])
def test_the_linter_needs_nothing_optional(name: str) -> None:
    for path in (*MODULES, *RULES):
        if path.stem != "nosync":
            names = set(imports(path))
            assert not {one for one in names if one.partition(".")[0] == name}, path
            assert "ddp_lint.nosync" not in names


def test_files_can_be_read_in_a_sitting() -> None:
    long = {
        path.relative_to(ROOT).as_posix(): lines
        for path in (*MODULES, *RULES)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 700
    }
    assert not long, "a word of the language is missing"
