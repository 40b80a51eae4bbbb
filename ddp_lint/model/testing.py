"""Layer 9, testing: what only the tests of a project run."""

from __future__ import annotations

import re

from astroid import nodes

from ddp_lint.model.facts import Facts
from ddp_lint.model.flow import with_items
from ddp_lint.model.modules import Module, Unit
from ddp_lint.model.tree import Node, dotted

#: Where test runners look.
_FILE = re.compile(r"(^|/)(tests?|testing)/|(^|/)test_[^/]*\.py$|_test\.py$")


def is_of_tests(facts: Facts, unit: Unit) -> bool:
    """Whether every way to ``unit`` starts in a test."""
    tests = [_is_test(at) for at in _starts(facts, unit)]
    return bool(tests) and all(tests)


def _starts(facts: Facts, unit: Unit) -> list[Unit]:
    """Where what comes to ``unit`` starts."""
    known = facts.once(_by_identity)
    return [known[start] for start in facts.ranks.starts(unit) if start in known]


def _by_identity(facts: Facts) -> dict[int, Unit]:
    return {id(unit): unit for unit in facts.units}


def is_started_by_a_runner(facts: Facts, unit: Unit) -> bool:
    """Whether only a test runner comes to ``unit``, by test functions and what it makes for them:
    on one machine, with the ranks that the test asks for.

    A script is started by people, also where its name begins like a test's.
    """
    found = _starts(facts, unit)
    return bool(found) and all(at.is_function and _is_test(at) for at in found)


def is_to_fail(node: Node) -> bool:
    """Whether it stands in ``with pytest.raises(...)``, ``with self.assertRaisesRegex(...)``."""
    return any(
        isinstance(expression, nodes.Call)
        and dotted(expression.func).rpartition(".")[2].startswith(("raises", "assertRaises"))
        for expression, _ in with_items(node)
    )


def _is_test(unit: Unit) -> bool:
    return unit.name.startswith("test_") or is_test_file(unit.module)


def is_test_file(module: Module) -> bool:
    return _FILE.search(module.key) is not None
