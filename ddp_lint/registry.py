"""Find the rules: every file of the rules folder declares one.

A wheel has that folder inside this package, a checkout has it beside it.  The files are loaded
under the package's own name either way, so that a user's own package called ``rules`` can
neither be taken for ours nor be shadowed by it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from ddp_lint.rule import Rule

_PACKAGE = Path(__file__).resolve().parent


def folder_of(part: str) -> Path:
    """Where ``rules`` or ``runtime_checks`` lies: beside the package, or inside it."""
    beside = _PACKAGE.parent
    in_checkout = (beside / "pyproject.toml").is_file() and (beside / part).is_dir()
    return (beside if in_checkout else _PACKAGE) / part


@cache
def all_rules() -> dict[str, Rule]:
    """Every rule by its code, in the order of the codes.

    Raises ``RuntimeError`` where there is none (a broken installation), or where two files
    claim one code.
    """
    found: dict[str, Rule] = {}
    for rule in _load(folder_of("rules")):
        if rule.code in found:
            raise RuntimeError(
                f"{rule.code} is claimed by {rule.name} and {found[rule.code].name}"
            )
        found[rule.code] = rule
    if not found:
        raise RuntimeError(f"ddp-lint is not installed properly: no rules in {folder_of('rules')}")
    return dict(sorted(found.items()))


def _load(folder: Path) -> Iterator[Rule]:
    for path in sorted(folder.glob("[!_]*.py")):
        name = f"ddp_lint.rules.{path.stem}"
        spec = spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules.get(name)
        if module is None:
            sys.modules[name] = module = module_from_spec(spec)
            spec.loader.exec_module(module)
        rules = [value for value in vars(module).values() if isinstance(value, Rule)]
        if len(rules) != 1:
            raise RuntimeError(f"{path}: a rule file declares one rule, this one {len(rules)}")
        yield from rules
