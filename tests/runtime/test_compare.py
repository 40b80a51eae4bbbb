"""Where two records part: the first digest, every other value, and nothing fleeting."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from runtime_checks.compare import differences, first_digest, main

RECORD: dict[str, Any] = {
    "environment": {"torch": "2.13"},
    "observed": {"seconds": 3.0},
    "proofs": [
        {
            "proof": "one",
            "status": "proven",
            "digests": {
                "good": [
                    {"batch 0": "a", "batch 1": "b", "weight": "c"},
                    {"batch 0": "d", "batch 1": "e", "weight": "c"},
                ]
            },
            "seen": {"good": [{"count": 1}, {"count": 2}]},
            "observed": {"good": [{"clock": 1}, {"clock": 2}]},
            "seconds": {"good": 0.1},
        },
        {"proof": "two", "status": "proven", "digests": {}, "seen": {}, "seconds": {}},
    ],
}


@pytest.fixture
def other() -> dict[str, Any]:
    return copy.deepcopy(RECORD)


def test_times_are_no_difference(other: dict[str, Any]) -> None:
    other["observed"]["seconds"] = 4.0
    other["proofs"][0]["observed"]["good"][0]["clock"] = 5
    other["proofs"][0]["seconds"]["good"] = 7.0
    assert list(differences(RECORD, other)) == []


def test_the_first_digest_is_the_one_that_came_about_first(other: dict[str, Any]) -> None:
    # Rank 1 parted at batch 1, before the weights of rank 0 did.
    other["proofs"][0]["digests"]["good"][0]["weight"] = "x"
    other["proofs"][0]["digests"]["good"][1]["batch 1"] = "y"
    assert first_digest(RECORD, other) == "one, good, rank 1: batch 1 (e, y)"


def test_a_digest_that_is_gone_is_a_difference(other: dict[str, Any]) -> None:
    del other["proofs"][0]["digests"]["good"][0]["batch 0"]
    assert first_digest(RECORD, other) == "one, good, rank 0: batch 0 (a, absent)"


def test_ranks_that_both_have_are_compared(other: dict[str, Any]) -> None:
    del other["proofs"][0]["digests"]["good"][1]
    assert first_digest(RECORD, other) == ""
    assert "proofs.one.digests.good: 2 and 1 of them" in differences(RECORD, other)


def test_a_proof_more_does_not_shift_the_others(other: dict[str, Any]) -> None:
    other["proofs"].insert(0, {"proof": "zero"})
    other["proofs"][1]["seen"]["good"][1]["count"] = 3
    found = list(differences(RECORD, other))
    assert found == ["proofs.one.seen.good[1].count: 2, 3", "proofs.zero: only in the second"]


@pytest.mark.parametrize(("mine", "its"), [(1, True), (0, False), (1, 1.0), ("1", 1)])
def test_types_count(mine: object, its: object) -> None:
    assert len(list(differences({"value": mine}, {"value": its}))) == 1


def test_command(
    other: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [str(tmp_path / name) for name in ("a.json", "b.json")]
    Path(paths[0]).write_text(json.dumps(RECORD))
    Path(paths[1]).write_text(json.dumps(RECORD))
    assert main(paths) == 0
    assert capsys.readouterr().out == "the same but for times\n"
    other["environment"]["torch"] = "2.14"
    other["proofs"][0]["digests"]["good"][0]["weight"] = "x"
    Path(paths[1]).write_text(json.dumps(other))
    assert main(paths) == 1
    told = capsys.readouterr().out.splitlines()
    assert told[0] == "first to differ: one, good, rank 0: weight (c, x)"
    assert '  environment.torch: "2.13", "2.14"' in told


@pytest.mark.parametrize("text", ["", "[]", "{}", "3"])
def test_what_is_no_record_is_said(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    assert main([str(path), str(path)]) == 2
    assert f"{path}: no record of a run" in capsys.readouterr().err
    assert main([str(path)]) == 2
    assert main([str(tmp_path / "absent.json")] * 2) == 2
