"""The whole suite: all proofs hold, none does with its sides mixed up, the record is valid."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from runtime_checks import proofs
from tests.runtime.launch import ROOT, Run, own, run, torchrun

SCHEMA = json.loads((ROOT / "runtime_checks" / "record.schema.json").read_text())
PROOFS = proofs.discover()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(torchrun(), [], tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module", params=["good-is-bad", "bad-is-good"])
def sabotaged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    out = tmp_path_factory.mktemp(request.param)
    return run(torchrun(), [f"--sabotage={request.param}"], out)


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: proof.stem)
def test_proof(whole: Run, proof: proofs.Proof) -> None:
    entry = whole.proofs[proof.stem]
    assert entry["reason"] == "" or entry["status"] == "not_run"
    assert entry["status"] in ("proven", "not_run")


@pytest.mark.parametrize("proof", [one for one in PROOFS if one.has_bad], ids=lambda one: one.stem)
def test_sabotage_is_noticed(whole: Run, sabotaged: Run, proof: proofs.Proof) -> None:
    expected = "not_run" if whole.proofs[proof.stem]["status"] == "not_run" else "disproved"
    assert sabotaged.proofs[proof.stem]["status"] == expected, sabotaged.proofs[proof.stem][
        "reason"
    ]


def test_exit_codes(whole: Run, sabotaged: Run) -> None:
    assert (whole.code, sabotaged.code) == (0, 1)


def test_nothing_else_than_what_needs_a_gpu_is_left_out(whole: Run) -> None:
    reasons = {entry["reason"] for entry in whole.proofs.values() if entry["status"] == "not_run"}
    assert reasons <= {"needs a GPU", "needs a GPU for each rank"}


def test_record_is_valid(whole: Run) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(whole.record, SCHEMA)


def test_record_of_failures_is_valid_and_strict_json(tmp_path: Path) -> None:
    names = own("raises", "wrong", "noisy", "needs_a_gpu_per_rank")
    done = run(torchrun(), [*names, "--timeout=20", "--device=cpu"], tmp_path)
    jsonschema.validate(done.record, SCHEMA)
    text = (tmp_path / "record.json").read_text()
    json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))
    assert done.proofs["noisy"]["seen"]["good"][0]["infinite"] == "inf"


def test_schema_refuses_a_proven_proof_with_a_failed_check(whole: Run) -> None:
    record = whole.record
    proven = next(entry for entry in record["proofs"] if entry["status"] == "proven")
    proven["checks"][0]["ok"] = False
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(record, SCHEMA)


def test_record_says_what_it_does_not_cover(whole: Run) -> None:
    launch = whole.record["environment"]["launch"]
    uncovered = " ".join(whole.record["not_covered"])
    assert "several nodes" in uncovered
    assert ("NCCL" in uncovered) == (launch["backend"] != "nccl")


def test_every_rank_judged_every_check(whole: Run) -> None:
    for entry in whole.proofs.values():
        for check in entry["checks"]:
            assert len(check["values"]) == len(check["limits"]) == 2, (entry["proof"], check)


def test_record_holds_no_path_of_this_machine(whole: Run) -> None:
    text = json.dumps(whole.record)
    assert str(ROOT) not in text
    assert str(whole.out) not in text


def test_more_ranks_than_two(tmp_path: Path) -> None:
    """From three ranks on the order of a sum matters, and with it what a resume must restore."""
    done = run(torchrun(4), ["--only=reference_loop", "--only=DDP501"], tmp_path)
    assert [entry["status"] for entry in done.proofs.values()] == ["proven", "proven"], done.stdout


def test_a_proof_can_lie_anywhere(tmp_path: Path) -> None:
    """A fixed copy of a proof speaks of the harness as the proof itself does."""
    copy = tmp_path / "clip_before_unscale.py"
    copy.write_text((ROOT / "runtime_checks" / copy.name).read_text())
    done = run(torchrun(), [f"--proof-file={copy}"], tmp_path / "out")
    (entry,) = done.record["proofs"]
    assert (entry["rule"], entry["status"]) == ("DDP201", "proven"), entry["reason"]


@pytest.mark.parametrize(
    "path",
    sorted((ROOT / "runtime_checks" / "records").glob("*.json")),
    ids=lambda path: path.stem,
)
def test_kept_records_are_valid_and_listed(path: Path) -> None:
    kept = json.loads(path.read_text())
    jsonschema.validate(kept, SCHEMA)
    assert kept["summary"]["disproved"] == kept["summary"]["failed"] == 0
    assert path.name in (path.parent / "README.md").read_text()
