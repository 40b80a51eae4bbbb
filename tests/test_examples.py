"""The two example projects run under torchrun, and the linter tells them apart."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ddp_lint
from tests import markers

EXAMPLES = markers.ROOT / "examples"
BROKEN, MENDED = EXAMPLES / "broken", EXAMPLES / "mended"
#: The rules that the project began with: one of each is in the broken example.
FOUNDING = {
    *("DDP101", "DDP102", "DDP103", "DDP201", "DDP202", "DDP301", "DDP302", "DDP303"),
    *("DDP401", "DDP402", "DDP403", "DDP406", "DDP407", "DDP501", "DDP502", "DDP503"),
}


def found(folder: Path) -> list[markers.Marked]:
    return sorted(
        markers.Marked(
            Path(finding.place.path).resolve().relative_to(folder).as_posix(),
            finding.place.line,
            finding.code,
        )
        for finding in ddp_lint.lint([folder])
    )


def test_linter_finds_what_is_broken() -> None:
    expected = markers.marked(markers.project_of(BROKEN))
    assert {mark.code for mark in expected} >= FOUNDING
    assert found(BROKEN) == expected


def test_linter_is_silent_on_what_is_mended() -> None:
    assert found(MENDED) == []


def test_twins_have_the_same_files_and_options() -> None:
    files, options = [], []
    for folder in (BROKEN, MENDED):
        files.append({path.name for path in folder.iterdir() if path.is_file()})
        source = (folder / "train.py").read_text(encoding="utf-8").replace(folder.name, "twin")
        options.append(source.partition("def parse_args")[2].partition("\ndef ")[0])
    assert files[0] == files[1]
    assert options[0] == options[1] != ""


def torchrun(script: Path, *options: str | Path) -> str:
    """Run it in two processes on this machine's CPU and give what it wrote."""
    pytest.importorskip("torch")
    pytest.importorskip("PIL")
    pytest.importorskip("numpy")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node=2", str(script), *map(str, options)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    environment.pop("TORCH_DISTRIBUTED_DEBUG", None)
    run = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
    )
    assert run.returncode == 0, run.stdout
    return run.stdout


def read_log(output: Path) -> list[dict[str, Any]]:
    lines = (output / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def plain_model(folder: Path) -> Any:
    spec = importlib.util.spec_from_file_location("example_model", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SmallNet(5)


@pytest.fixture(scope="module")
def broken_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("broken")
    torchrun(BROKEN / "train.py", "--output", output)
    return output


@pytest.fixture(scope="module")
def mended_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("mended")
    torchrun(MENDED / "train.py", "--output", output, "--predictions", "--accumulate", "3")
    return output


def test_broken_runs_and_is_broken(broken_run: Path) -> None:
    torch = pytest.importorskip("torch")
    log = read_log(broken_run)
    assert [entry["epoch"] for entry in log] == [0, 0, 1, 1]
    assert all(math.isfinite(entry["loss"]) for entry in log)
    names = torch.load(broken_run / "last.pt")["model"]
    assert all(name.startswith("module.") for name in names)


def test_broken_fine_tuning_runs(broken_run: Path, tmp_path: Path) -> None:
    options = ("--data", broken_run / "data", "--resume", broken_run / "last.pt")
    text = torchrun(BROKEN / "finetune.py", "--output", tmp_path, "--workers", "0", *options)
    assert text.count("accuracy") == 2


def test_mended_trains_and_counts_each_image_once(mended_run: Path) -> None:
    first, second = read_log(mended_run)
    assert (first["epoch"], second["epoch"]) == (0, 1)
    assert math.isfinite(first["loss"])
    assert second["loss"] < first["loss"]
    predictions = json.loads((mended_run / "predictions.json").read_text(encoding="utf-8"))
    assert len(predictions) == 45
    truth = [name for name in ("brick", "grass", "sand", "snow", "water") for _ in range(9)]
    right = sum(a == b for a, b in zip(predictions, truth, strict=True))
    assert second["accuracy"] == right / 45


def test_mended_checkpoints_load_into_a_plain_model(mended_run: Path) -> None:
    torch = pytest.importorskip("torch")
    model = plain_model(MENDED)
    model.load_state_dict(torch.load(mended_run / "best.pt"))
    checkpoint = torch.load(mended_run / "last.pt")
    model.load_state_dict(checkpoint["model"])
    assert checkpoint["epoch"] == 1
    assert checkpoint["scaler"]
    assert all(value.isfinite().all() for value in model.state_dict().values())
    assert not list(mended_run.glob("*.unfinished"))


def test_mended_goes_on_from_a_checkpoint(mended_run: Path, tmp_path: Path) -> None:
    options = ("--data", mended_run / "data", "--resume", mended_run / "last.pt")
    torchrun(
        MENDED / "train.py", "--output", tmp_path, "--epochs", "3", "--workers", "0", *options
    )
    (entry,) = read_log(tmp_path)
    assert entry["epoch"] == 2
    assert entry["loss"] < read_log(mended_run)[0]["loss"]


def test_mended_fine_tuning_loads_features_and_learns(mended_run: Path, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    options = ("--data", mended_run / "data", "--resume", mended_run / "last.pt")
    torchrun(MENDED / "finetune.py", "--output", tmp_path, "--workers", "0", *options)
    before = torch.load(mended_run / "last.pt")["model"]
    after = torch.load(tmp_path / "head.pt")
    frozen = [name for name in after if name.startswith("features.")]
    assert frozen
    assert all(torch.equal(after[name], before[name]) for name in frozen)
    assert not torch.equal(after["head.weight"], before["head.weight"])


def test_mended_sharded_training_saves_a_shard_per_process(
    mended_run: Path, tmp_path: Path
) -> None:
    options = ("--data", mended_run / "data", "--accumulate", "4", "--workers", "0")
    torchrun(MENDED / "train_sharded.py", "--output", tmp_path, *options)
    assert len(list((tmp_path / "epoch-1").glob("*.distcp"))) == 2
