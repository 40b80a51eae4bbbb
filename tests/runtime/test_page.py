"""The record for people: table, page and pictures."""

from __future__ import annotations

import io
import math
import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from runtime_checks import page, record, svg, table
from runtime_checks.harness import Check
from runtime_checks.progress import Progress
from runtime_checks.proofs import Proof
from runtime_checks.record import round_for_people
from runtime_checks.worker import Outcome, merge_checks
from tests.runtime.launch import PROOFS


def check(name: str, value: Any, limit: Any, of: str, ok: bool = True) -> dict[str, Any]:
    numbers = {"values": [value, value], "limits": [limit, limit]}
    return {"name": name, "of": of, "op": "==", "rel": 0.001, "abs": 0.0, "ok": ok, **numbers}


def entry(**changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "rule": "DDP201",
        "proof": "clip_before_unscale",
        "summary": "Clipping <what> is `still scaled`.",
        "status": "proven",
        "reason": "",
        "simulated": "",
        "settings": {"batch": [16, 32], "amp": "float16"},
        "checks": [check("share", 1.5e-05, 1.5e-05, "bad"), check("share", 1.0, 1.0, "good")],
        "seen": {"bad": [], "good": []},
        "digests": {},
        "picture": None,
        "not_covered": ["Adam & others"],
        "observed": {},
        "seconds": {},
    }
    return {**made, **changes}


def written(*entries: dict[str, Any]) -> dict[str, Any]:
    launch = {"ranks": 2, "nodes": 1, "backend": "gloo", "device": "cpu"}
    environment = {"torch": "2", "python": "3", "gpus": [], "processor": "CPU", "launch": launch}
    return {
        "schema": 1,
        "environment": environment,
        "settings": {"seed": 1},
        "proofs": list(entries),
        "summary": record.summary(entries),
        "not_covered": ["several nodes"],
        "observed": {"started": "2026-01-01", "seconds": 1.5},
    }


class Tags(HTMLParser):
    """Checks that what is opened is closed, and collects texts and links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.ids: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "input", "wbr"):
            self.open.append(tag)
        given = dict(attrs)
        self.ids += [given["id"] or ""] if "id" in given else []
        self.links += [given["href"] or ""] if "href" in given else []
        assert "src" not in given, "the page needs nothing else"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        return

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


PICTURES: list[dict[str, Any]] = [
    {
        "kind": "Lines",
        "title": "Update <against> scale",
        "x_label": "scale",
        "y_label": "share",
        "x": [1, 128, 65536],
        "series": {"bad": [1, 1 / 128, 1 / 65536], "good": [1, 1, 1]},
        "log_x": True,
        "log_y": True,
    },
    {
        "kind": "Bars",
        "title": "Readers",
        "y_label": "failed",
        "bars": {"bad: written in place": 92.0, "good: replaced": 0.0},
        "log_y": False,
    },
    {"kind": "Pairing", "title": "Steps", "bad": [[0, 1, 3], [0, 1, 2, 3]], "good": [[0, 1]] * 2},
]


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture["kind"])
def test_pictures_are_wellformed_and_finite(picture: dict[str, Any]) -> None:
    drawn = svg.draw(picture)
    root = ElementTree.fromstring(drawn)
    assert root.attrib["aria-label"] == picture["title"]
    for word in re.findall(r' (?:x|y|cx|cy|width|height)="([^"]+)"', drawn):
        assert math.isfinite(float(word))
        assert float(word) >= 0
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    for node in root.iter():
        assert float(node.attrib.get("x", 0)) <= width
        assert float(node.attrib.get("y", 0)) <= height


def test_pairing_marks_where_steps_differ() -> None:
    root = ElementTree.fromstring(svg.draw(PICTURES[2]))
    boxes = [node.attrib["class"] for node in root.iter("rect")]
    # Columns from left to right, ranks from top to bottom; the fourth has rank 1 alone.
    assert (
        boxes
        == ["box good"] * 4 + ["box bad"] * 2 + ["box bad missing", "box bad"] + ["box good"] * 4
    )


def test_bars_are_as_long_as_their_numbers() -> None:
    root = ElementTree.fromstring(svg.draw({**PICTURES[1], "bars": {"bad": 40.0, "good": 10.0}}))
    bad, good = (float(node.attrib["width"]) for node in root.iter("rect"))
    assert bad / good == pytest.approx(4, rel=0.01)


@pytest.mark.parametrize("values", [[], [0.0], [5.0, 5.0], [-3.0, 2.0], [1e-9, 1e9]])
@pytest.mark.parametrize("log", [False, True])
def test_scales_keep_values_in_range(values: list[float], log: bool) -> None:
    scale = svg.Scale.over(values, 10, 110, log=log)
    for value in values:
        assert 10 <= scale(value) <= 110
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 9
    assert ticks == sorted(set(ticks))


def test_page_is_wellformed_and_escapes() -> None:
    entries = [
        entry(picture=PICTURES[0]),
        entry(proof="other", status="failed", reason="<raised>"),
    ]
    text = page.render(written(*entries))
    tags = Tags(text)
    assert [link.removeprefix("#") for link in tags.links] == ["clip_before_unscale", "other"]
    assert {"clip_before_unscale", "other"} <= {*tags.ids}
    assert "Clipping &lt;what&gt; is <code>still scaled</code>." in text
    assert "&lt;raised&gt;" in text
    assert "Adam &amp; others" in text
    assert "16 x 32" in text
    assert "several nodes" in text


def test_table_row_puts_the_two_sides_beside_each_other() -> None:
    stream = io.StringIO()
    table.write([entry(), entry(proof="other", status="not_run", reason="why", checks=[])], stream)
    rows = stream.getvalue().splitlines()
    assert rows[1].split() == ["DDP201", "clip_before_unscale", "share", "1.5e-05", "1", "proven"]
    assert rows[2].split() == ["DDP201", "other", "why", "not", "run"]
    assert rows[3] == "DDP201 other: why"


def test_headline_without_a_common_name_takes_the_first_of_each() -> None:
    checks = [check("a", 1, 1, "bad"), check("b", 2, 2, "good")]
    assert table.headline(entry(checks=checks)) == table.Headline("a / b", "1", "2")


def test_values_that_differ_by_rank_are_all_shown() -> None:
    assert table.values({"values": [1, 2]}) == "1 | 2"
    assert table.values({"values": [2, 2]}) == "2"


@pytest.mark.parametrize(
    ("value", "shown"),
    [(True, "yes"), (1, "1"), (12800, "12,800"), (0.00689123, "0.006891"), (None, "-")],
)
def test_values_for_people(value: object, shown: str) -> None:
    assert round_for_people(value) == shown


def outcome(*values: int, limit: int = 1) -> list[Outcome]:
    checks = [Check("n", value, "==", limit, "good") for value in values]
    judged = [[{**vars(one), "ok": one.ok}] for one in checks]
    result = {"checks": merge_checks(judged), "seen": {"bad": [], "good": []}}
    return [Outcome("done", result=result if rank == 0 else {}) for rank in range(len(values))]


PROOF = Proof(PROOFS / "holds.py", "DDP501", "", True)


@pytest.mark.parametrize(
    ("outcomes", "status", "reason"),
    [
        (outcome(1, 1), "proven", ""),
        (outcome(2, 2), "disproved", "good: n: not 2 == 1"),
        (outcome(1, 2), "disproved", "good: n: not 1 == 1 (rank 0), 2 == 1 (rank 1)"),
        ([Outcome("not_run", "needs a GPU")] * 2, "not_run", "needs a GPU"),
        ([Outcome("stopped"), Outcome("died", "of x")], "failed", "rank 1 died: of x"),
        ([Outcome("raised", "E: x")] * 2, "failed", "rank 0, 1 raised E: x"),
    ],
)
def test_verdicts(outcomes: list[Outcome], status: str, reason: str) -> None:
    made = record.entry(PROOF, outcomes)
    assert (made["status"], made["reason"]) == (status, reason)


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (["proven"], 0),
        (["proven", "not_run"], 0),
        (["proven", "disproved", "failed"], 1),
        (["proven", "failed"], 2),
        (["not_run"], 2),
        ([], 2),
    ],
)
def test_exit_codes(statuses: list[str], code: int) -> None:
    assert record.exit_code([entry(status=status) for status in statuses]) == code


def test_ranks_that_check_different_things_prove_nothing() -> None:
    mine = {**vars(Check("a", 1, "==", 1, "good")), "ok": True}
    with pytest.raises(AssertionError):
        merge_checks([[mine], [{**mine, "name": "b"}]])
    with pytest.raises(ValueError, match="shorter"):
        merge_checks([[mine], []])


@pytest.mark.parametrize(
    ("check", "ok"),
    [
        (Check("n", 1.0004, "close", 1.0, "good"), True),
        (Check("n", 1.1, "close", 1.0, "good"), False),
        (Check("n", 1.1, "close", 1.0, "good", rel=0.2), True),
        (Check("n", 0.001, "close", 0.0, "good", abs=0.01), True),
        (Check("n", float("nan"), "close", float("nan"), "good"), False),
        (Check("n", [1, 2], "==", [1, 2], "bad"), True),
        (Check("n", 2, "!=", 2, "bad"), False),
        (Check("n", 2, ">=", 2, "bad"), True),
        (Check("n", 2, "<", 2, "bad"), False),
    ],
)
def test_checks(check: Check, ok: bool) -> None:
    assert check.ok is ok


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_keeps_to_one_line_on_a_terminal() -> None:
    terminal = Terminal()
    progress = Progress(2, terminal)
    progress.start(PROOF)
    progress.done(entry())
    progress.start(PROOF)
    progress.done(entry(status="disproved", reason="no"))
    progress.end()
    text = terminal.getvalue()
    assert text.count("\n") == 1, "only what is not as it should be stays"
    assert "[1/2] DDP501 holds ..." in text
    assert "(no)\n" in text


def test_progress_appends_elsewhere() -> None:
    stream = io.StringIO()
    progress = Progress(1, stream)
    progress.start(PROOF)
    progress.done(entry())
    progress.end()
    assert stream.getvalue() == "[1/1] DDP201 clip_before_unscale: proven\n"
