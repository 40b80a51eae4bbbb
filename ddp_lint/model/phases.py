"""Layer 3, phases: code that training never comes to, as its own words tell.

A dataset often serves training and tests alike and asks which it is: ``if self.phase ==
"train"``.  Who passes the word is seldom in sight, but what it means is.
"""

from __future__ import annotations

import re

from astroid import nodes

from ddp_lint.model.flow import conditions
from ddp_lint.model.modules import Class, Unit
from ddp_lint.model.tree import Node, dotted, elements, walk

_TRAINING = re.compile(r"(is_|in_|for_|do_)?train(ing)?(_?(mode|phase|val|set|split))?$", re.I)
_TESTING = re.compile(
    r"(is_|in_|for_|do_)?(test(ing)?|val|valid(ation)?|eval(uation|uate)?|dev|infer(ence)?"
    r"|predict(ion)?)(_?(mode|phase|set|split))?$",
    re.I,
)
#: What finds functions by their names, without being given them.
_LOOKING_UP = frozenset({"Fire", "fire.Fire", "globals", "locals", "vars", "eval", "exec"})
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def is_left_out_of_training(node: Node) -> bool:
    """Whether training never comes to ``node`` within its unit, or only while it fills a cache."""
    return any(
        is_of_tests(condition.test, condition.holds)
        or _is_while_caching(condition.test, condition.holds)
        for condition in conditions(node)
    )


def is_for_tests(cls: Class) -> bool:
    """Whether a class, or the file that it is in, says by its name that tests read from it."""
    file = cls.module.key.rpartition("/")[2].removesuffix(".py")
    words = {word for name in (cls.name, file) for word in _WORDS.findall(name)}
    return any(map(_TESTING.match, words)) and not any(map(_TRAINING.match, words))


def is_left_over(unit: Unit) -> bool:
    """Whether this is a ``main`` whose file runs as a script without it: nothing there names it,
    or looks its functions up."""
    if unit.name != "main" or unit.decorator_names or not unit.module.is_script:
        return False
    return not any(
        (isinstance(node, nodes.Name) and node.name == "main")
        or (isinstance(node, nodes.Const) and node.value == "main")
        or (isinstance(node, nodes.Call) and dotted(node.func) in _LOOKING_UP)
        for node in walk(unit.module.tree)
    )


def is_of_tests(test: Node, holds: bool) -> bool:
    """Whether a test comes out so only where something else than training goes on."""
    match test:
        case nodes.UnaryOp(op="not", operand=operand):
            return is_of_tests(operand, not holds)
        case nodes.BoolOp(op=op, values=values):
            every = all if (op == "or") is holds else any
            return every(is_of_tests(value, holds) for value in values)
        case nodes.Compare(left=left, ops=[("==" | "is" | "!=" | "is not" as op, right)]):
            return _says(_word(left) or _word(right), holds is (op in ("==", "is")))
        case nodes.Compare(left=left, ops=[("in" | "not in" as op, right)]):
            named = [_word(one) for one in _listed(right)] or [_word(left)]
            every = all if holds is (op == "in") else any
            return every(_says(word, holds is (op == "in")) for word in named)
        case nodes.Name() | nodes.Attribute():
            return _says(dotted(test).rpartition(".")[2], holds)
    return False


def _says(word: str, holds: bool) -> bool:
    """``phase == "train"`` that does not hold, ``phase == "test"`` that does."""
    return bool(_TESTING.match(word)) if holds else bool(_TRAINING.match(word))


def _word(node: Node) -> str:
    """``"train"``, ``Split.TRAIN``."""
    if isinstance(node, nodes.Const):
        return node.value if isinstance(node.value, str) else ""
    return node.attrname if isinstance(node, nodes.Attribute) and node.attrname.isupper() else ""


def _listed(node: Node) -> list[Node]:
    return elements(node) if isinstance(node, nodes.Tuple | nodes.List | nodes.Set) else []


def _is_while_caching(test: Node, holds: bool) -> bool:
    """``if self.caching_mode is not None``: one pass before training, not each epoch of it."""
    if isinstance(test, nodes.Compare) and len(test.ops) == 1:
        op, right = test.ops[0]
        if not (isinstance(right, nodes.Const) and right.value is None):
            return False
        return holds is (op in ("is not", "!=")) and "caching" in dotted(test.left).lower()
    return holds and "caching" in dotted(test).lower()
