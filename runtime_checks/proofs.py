"""The proofs of this folder: found by what their files define, not by a list.

Nothing is imported to find them, so that a file that cannot be imported is one failed proof and
not the end of the suite.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

from .harness import Needs, needs

_HERE = Path(__file__).resolve().parent
_CODE = re.compile(r"\bDDP\d{3}\b")
_DECLARED = re.compile(r"^@rule\(\s*\"(DDP\d{3})\"", re.M)
_MARKER = re.compile(r"#\s*(DDP\d{3}(?:\s*,\s*DDP\d{3})*)\s*$")


@dataclass(frozen=True)
class Proof:
    """A file that defines ``good`` and ``evidence``, and ``bad`` unless it shows no defect.

    ``code`` is that of the rule with the same name, and where that is not written yet, what the
    first marked line says; "" where no line is marked.
    """

    path: Path
    code: str
    summary: str
    has_bad: bool
    needs: Needs = field(default_factory=Needs)

    @property
    def stem(self) -> str:
        return self.path.stem


class Unreadable(Exception):
    """A proof that cannot be read, or that is not there; the message says why."""


class NoProof(Unreadable):
    """A file that defines no ``good()`` and ``evidence()``."""


def discover(folder: Path = _HERE) -> list[Proof]:
    """All proofs of a folder in the order of their codes; what shows no defect comes first.

    Raises ``Unreadable`` where one of them cannot be read.
    """
    found = []
    for path in sorted(folder.glob("[!_]*.py")):
        try:
            found.append(read(path))
        except NoProof:
            continue
    return sorted(found, key=lambda proof: (proof.code, proof.stem))


def read(path: Path) -> Proof:
    """The proof of one file.  Raises ``Unreadable``, and ``NoProof`` where it holds none."""
    try:
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from None
    except SyntaxError as error:
        if re.search(r"^def evidence\(", text, re.M):
            return Proof(path, _code(path, text), f"does not parse: {error}", True)
        raise Unreadable(f"{path}: {error}") from None
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    if not {"good", "evidence"} <= functions:
        raise NoProof(f"{path}: no proof, it defines no good() and evidence()")
    summary = (ast.get_docstring(tree) or "").partition("\n")[0]
    return Proof(path, _code(path, text), summary, "bad" in functions, _needs(path, tree))


def _needs(path: Path, tree: ast.Module) -> Needs:
    """What ``NEEDS = needs(...)`` declares.  Raises ``Unreadable`` where it is no literal."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name("NEEDS")], value=ast.Call(args=[], keywords=given)):
                try:
                    return needs(**{str(one.arg): ast.literal_eval(one.value) for one in given})
                except (ValueError, TypeError) as error:
                    raise Unreadable(f"{path}: NEEDS cannot be read: {error}") from None
    return Needs()


def markers(text: str) -> dict[int, list[str]]:
    """The codes that end lines of a proof as a comment, by line from 1."""
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _MARKER.search(line)
        if match:
            found[number] = _CODE.findall(match.group(1))
    return found


def _code(path: Path, text: str) -> str:
    rule = _HERE.parent / "rules" / path.name
    if rule.is_file():
        declared = _DECLARED.search(rule.read_text(encoding="utf-8"))
        if declared:
            return declared.group(1)
    return next((codes[0] for codes in markers(text).values()), "")


def select(proofs: Iterable[Proof], wanted: Iterable[str]) -> list[Proof]:
    """Those whose code or name is wanted.  Raises ``Unreadable`` for a word that names none."""
    proofs = list(proofs)
    chosen: list[Proof] = []
    for word in wanted:
        name = word.replace("-", "_")
        hits = [proof for proof in proofs if word.upper() == proof.code or name == proof.stem]
        if not hits:
            raise Unreadable(f"no proof for {word!r}")
        chosen += [proof for proof in hits if proof not in chosen]
    return chosen


def load(proof: Proof) -> ModuleType:
    """Import a proof.  Also a file elsewhere may say ``from .harness import ...``."""
    if proof.path.parent == _HERE:
        return importlib.import_module(f"{__package__}.{proof.stem}")
    name = f"{__package__}._elsewhere_{proof.stem}"
    spec = importlib.util.spec_from_file_location(name, proof.path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
