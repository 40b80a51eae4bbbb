"""What a proof does to itself stays its own: hangs, deaths, mistakes take nothing else along."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime_checks.compare import differences
from tests.runtime.launch import Run, own, processes_with, run, torchrun


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Good and bad proofs in one run; the healthy ones come after the worst."""
    proofs = own(
        "dies",
        "hangs",
        "raises",
        "one_sided",
        "needs_a_gpu_per_rank",
        "needs_what_is_not_there",
        "wrong",
        "noisy",
        "holds",
    )
    out = tmp_path_factory.mktemp("mixed")
    return run(torchrun(), [*proofs, "--timeout=4", "--device=cpu"], out)


def test_a_death_is_named_and_the_next_proofs_run(mixed: Run) -> None:
    assert mixed.proofs["dies"]["status"] == "failed"
    assert mixed.proofs["dies"]["reason"] == "rank 0 died: killed by SIGSEGV"
    assert mixed.proofs["holds"]["status"] == "proven"
    assert mixed.proofs["noisy"]["status"] == "proven"


def test_a_dead_proof_leaves_no_child(mixed: Run) -> None:
    assert processes_with("left-by-dies") == []


def test_a_hang_is_named(mixed: Run) -> None:
    assert mixed.proofs["hangs"]["status"] == "failed"
    assert "rank 1" in mixed.proofs["hangs"]["reason"]
    assert "no end after 4 s" in mixed.proofs["hangs"]["reason"]


def test_what_was_raised_is_named_and_logged(mixed: Run) -> None:
    assert mixed.proofs["raises"]["status"] == "failed"
    assert "rank 0 raised KeyError: 'no such thing'" in mixed.proofs["raises"]["reason"]
    log = (mixed.out / "logs" / "raises.rank0.txt").read_text()
    assert 'raise KeyError("no such thing")' in log


def test_a_proof_that_judges_one_side_fails(mixed: Run) -> None:
    assert mixed.proofs["one_sided"]["status"] == "failed"
    assert "nothing about its good()" in mixed.proofs["one_sided"]["reason"]


def test_what_cannot_be_shown_here_is_not_run(mixed: Run) -> None:
    assert mixed.proofs["needs_a_gpu_per_rank"]["status"] == "not_run"
    assert mixed.proofs["needs_a_gpu_per_rank"]["reason"] == "needs a GPU"
    missing = mixed.proofs["needs_what_is_not_there"]
    assert missing["status"] == "not_run", "before its import fails"
    assert missing["reason"] == "needs no_such_package: pip install no_such_package"


def test_a_wrong_proof_is_disproved_by_rank(mixed: Run) -> None:
    wrong = mixed.proofs["wrong"]
    assert wrong["status"] == "disproved"
    assert wrong["reason"] == "bad: answer: not 41 == 41 (rank 0), 42 == 41 (rank 1)"
    assert [check["ok"] for check in wrong["checks"]] == [False, True]


def test_the_verdict_is_the_exit_code_and_the_table(mixed: Run) -> None:
    assert mixed.code == 1
    for name, proof in mixed.proofs.items():
        row = next(line for line in mixed.stdout.splitlines() if name in line)
        assert proof["status"].replace("_", " ") in row
    assert "3 proven" not in mixed.stdout
    assert "2 proven, 1 disproved, 2 not run, 4 failed in" in mixed.stdout


def test_what_a_proof_prints_goes_to_its_log(mixed: Run) -> None:
    said = "a line that belongs into the log"
    assert said not in mixed.stdout + mixed.stderr
    assert said in (mixed.out / "logs" / "noisy.rank1.txt").read_text()


def test_progress_names_each_proof(mixed: Run) -> None:
    assert "[1/9] loop dies: failed" in mixed.stderr
    assert "[9/9] DDP501 holds: proven" in mixed.stderr


def test_runs_agree_but_for_times(tmp_path: Path) -> None:
    runs = [run(torchrun(), own("noisy", "holds"), tmp_path / name) for name in ("a", "b")]
    assert [one.code for one in runs] == [0, 0]
    observed = [one.proofs["noisy"]["observed"]["good"][0]["process"] for one in runs]
    assert observed[0] != observed[1]
    records = [one.record for one in runs]
    for record in records:  # somebody may commit between the two runs
        del record["environment"]["suite_commit"]
    assert list(differences(records[0], records[1])) == []
