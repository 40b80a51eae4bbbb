"""What has to hold for a statement to be reached, as its unit's branches and early exits say."""

from __future__ import annotations

from textwrap import dedent

import pytest
from astroid import nodes

from ddp_lint.model.flow import conditions
from ddp_lint.model.tree import parse


def conditions_of_goal(body: str) -> list[tuple[str, bool]]:
    """Those of the statement ``goal()``."""
    tree = parse(dedent(body), "example")
    (goal,) = (call for call in tree.nodes_of_class(nodes.Call) if call.func.as_string() == "goal")
    return [(condition.test.as_string(), condition.holds) for condition in conditions(goal)]


@pytest.mark.parametrize(
    ("arms", "expected"),
    [
        ("if a:\n    x()\nelse:\n    return", [("a", True)]),
        ("if a:\n    return\nelif b:\n    x()", [("a", False)]),
        ("if a:\n    return\nelif b:\n    return", [("a", False), ("b", False)]),
        ("if a:\n    x()\nelif b:\n    y()\nelse:\n    return", [("a or b", True)]),
        ("if a:\n    x()\nelif b:\n    return\nelse:\n    z()", [("a or not b", True)]),
        ("if a:\n    return\nelif b:\n    y()\nelse:\n    return", [("a", False), ("b", True)]),
        ("if a:\n    x()\nelif b:\n    return\nelse:\n    raise E", [("a", True)]),
        ("if a:\n    x()\nelif b:\n    y()", []),
    ],
)
def test_an_arm_that_leaves(arms: str, expected: list[tuple[str, bool]]) -> None:
    assert conditions_of_goal(f"{arms}\ngoal()") == expected


def test_what_is_asked_of_one_chain_is_the_same_for_all_behind_it() -> None:
    tree = parse("if a:\n    x()\nelif b:\n    y()\nelse:\n    exit()\none()\ntwo()", "example")
    one, two = (statement.value for statement in tree.body[1:])
    assert conditions(one) == conditions(two)


def test_the_statement_that_leaves_is_said() -> None:
    tree = parse("if a:\n    x()\nelif b:\n    y()\nelse:\n    exit()\ngoal()", "example")
    (condition,) = conditions(tree.body[1].value)
    assert condition.exit is not None
    assert condition.exit.as_string() == "exit()"
