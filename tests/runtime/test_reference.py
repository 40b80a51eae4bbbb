"""The reference loop: run as a script, resumed, fed by its prefetcher, stopped by an error."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import textwrap
from collections import namedtuple
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]
from torch.utils.data import DataLoader

import ddp_lint
from runtime_checks import reference
from runtime_checks.images import write_classes
from runtime_checks.probes import digests
from runtime_checks.reference import Config, Prefetcher, ResumableSampler, over_tensors
from tests.runtime.launch import ROOT, environment, processes_with

SCRIPT = ROOT / "runtime_checks" / "reference.py"
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    write_classes(folder / "train", [10, 10, 10, 10])
    write_classes(folder / "val", [5, 4, 4, 4], seed=100)
    return folder


@pytest.fixture
def group() -> Iterator[None]:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    gc.collect()
    dist.destroy_process_group()


def torchrun(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", str(script)]
    return subprocess.run(
        [*command, *arguments], cwd=ROOT, env=environment(), capture_output=True, text=True
    )


def test_our_own_linter_has_nothing_to_say_about_it() -> None:
    assert ddp_lint.lint([SCRIPT]) == []
    assert "noqa" not in SCRIPT.read_text()


def test_as_a_script_it_trains_and_goes_on(pictures: Path, tmp_path: Path) -> None:
    options = ["--data", str(pictures), "--out", str(tmp_path / "out"), "--batch-size=4"]
    options += ["--log-every=2", "--precision=bf16", "--workers=1"]
    first = torchrun(SCRIPT, *options, "--epochs=2")
    assert first.returncode == 0, first.stderr
    assert "epoch 1: " in first.stdout
    assert first.stdout.count("of 17 right") == 2, "rank 0 alone says it, once an epoch"
    second = torchrun(SCRIPT, *options, "--epochs=3")
    assert second.returncode == 0, second.stderr
    assert "epoch 1" not in second.stdout
    assert "epoch 2: " in second.stdout
    state = torch.load(tmp_path / "out" / "checkpoint.pt")
    assert not any(name.startswith("module.") for name in state["model"])
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "checkpoint.pt",
        "train",
        "val",
    }


def test_an_exception_on_one_rank_ends_all(pictures: Path, tmp_path: Path) -> None:
    """The others are in a collective then; nobody hangs, and the checkpoint is a whole one."""
    script = tmp_path / "failing.py"
    script.write_text(
        textwrap.dedent(
            """
            import os
            from runtime_checks import reference
            from runtime_checks.reference import main  # also found by the workers

            rate = reference.learning_rate

            def failing(config, step, last):
                if step == 4 and os.environ["RANK"] == "1":
                    raise ValueError("no such step")
                return rate(config, step, last)

            reference.learning_rate = failing
            main()
            """
        )
    )
    out = tmp_path / "out"
    options = ["--data", str(pictures), "--out", str(out), "--batch-size=4", "--save-every=2"]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", str(script)]
    ended = subprocess.run(
        [*command, *options],
        env=environment(PYTHONPATH=str(ROOT)),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 1
    assert "ValueError: no such step" in ended.stderr
    assert torch.load(out / "checkpoint.pt")["step"] in (3, 4)
    assert processes_with(str(script)) == []


def trained(config: Config, out: Path, **changes: Any) -> dict[str, str]:
    return digests(reference.train(replace(config, out=str(out), **changes), CPU))


@pytest.fixture
def config(pictures: Path) -> Config:
    return Config(str(pictures), epochs=2, batch_size=4, accumulate=3, precision="fp32", workers=0)


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("steps", [1, 4, 6, 8])
def test_a_resumed_run_changes_no_bit(config: Config, tmp_path: Path, steps: int) -> None:
    """Ten micro-batches and four steps an epoch: within one, at its end, in the second, last."""
    in_one_go = trained(config, tmp_path / "one")
    interrupted = trained(config, tmp_path / "two", max_steps=steps)
    assert (interrupted == in_one_go) == (steps == 8)
    assert trained(config, tmp_path / "two") == in_one_go


@pytest.mark.usefixtures("group")
def test_where_the_sampler_stood_matters(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the test above: without the sampler's place the bits do change."""
    in_one_go = trained(config, tmp_path / "one")
    trained(config, tmp_path / "two", max_steps=2)
    monkeypatch.setattr(
        ResumableSampler, "skip", property(lambda self: 0, lambda self, value: None)
    )
    assert trained(config, tmp_path / "two") != in_one_go


@pytest.mark.usefixtures("group")
def test_every_image_is_dealt_once_an_epoch_also_after_a_skip() -> None:
    whole = ResumableSampler(range(10), 2, 0, drop_last=True)  # type: ignore[arg-type]
    dealt = list(whole)
    whole.skip = 2
    assert (list(whole), len(whole)) == (dealt[2:], 3)


@pytest.mark.usefixtures("group")
def test_evaluation_is_exact(config: Config, tmp_path: Path) -> None:
    model = reference.train(replace(config, out=str(tmp_path)), CPU)
    data = reference.Pictures(tmp_path / "val")
    correct, total = reference.evaluate(model, data, CPU, config)
    images = [data[index] for index in range(len(data))]
    right = sum(int(model(image[None]).argmax() == label) for image, label in images)
    assert (correct, total) == (right, 17)


def test_a_checkpoint_is_replaced_only_by_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    reference.save_checkpoint(path, {"step": 1})
    with pytest.raises(Exception, match="pickle"):
        reference.save_checkpoint(path, {"step": lambda: 2})
    assert torch.load(path) == {"step": 1}


Pair = namedtuple("Pair", "left right")


def test_over_tensors_keeps_the_nesting() -> None:
    batch = {"a": [torch.ones(1), "text"], "b": Pair(torch.ones(2), (torch.ones(3), None))}
    doubled = over_tensors(lambda each: each * 2, batch)
    assert isinstance(doubled["b"], Pair)
    assert doubled["a"][1] == "text"
    assert doubled["b"].right[0].tolist() == [2.0] * 3
    assert doubled["b"].right[1] is None


class Streams:
    """Stands in for CUDA's streams and notes, in order, what the prefetcher does with them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log: list[tuple[str, float]] = []
        self._inside = False
        monkeypatch.setattr(torch.cuda, "stream", self._stream)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda device: self)
        monkeypatch.setattr(torch.Tensor, "to", self._copy())
        monkeypatch.setattr(torch.Tensor, "record_stream", self._record())

    @contextlib.contextmanager
    def _stream(self, stream: object) -> Iterator[None]:
        assert stream == "side"
        self._inside = True
        yield
        self._inside = False

    def _copy(self) -> Callable[..., torch.Tensor]:
        def to(tensor: torch.Tensor, device: torch.device, non_blocking: bool) -> torch.Tensor:
            assert non_blocking
            self._note("copy", tensor)
            return tensor.clone()

        return to

    def _record(self) -> Callable[..., None]:
        def record_stream(tensor: torch.Tensor, stream: object) -> None:
            assert stream is self
            self._note("record", tensor)

        return record_stream

    def wait_stream(self, stream: object) -> None:
        assert stream == "side"
        assert not self._inside
        self.log.append(("wait", -1))

    def _note(self, what: str, tensor: torch.Tensor) -> None:
        assert self._inside == (what == "copy")
        self.log.append((what, tensor.flatten()[0].item()))


@pytest.fixture
def streams(monkeypatch: pytest.MonkeyPatch) -> Streams:
    return Streams(monkeypatch)


def prefetcher(samples: int, stream: object = "side") -> Prefetcher:
    data: Any = torch.arange(float(samples))
    loader = DataLoader(data, batch_size=2)
    made = Prefetcher(loader, CPU)
    assert made.stream is None
    made.stream = stream  # type: ignore[assignment]
    return made


@pytest.mark.parametrize("samples", [0, 1, 2, 3, 10])
@pytest.mark.parametrize("stream", ["side", None])
def test_prefetcher_delivers_everything_in_every_epoch(
    streams: Streams, samples: int, stream: object
) -> None:
    batches = prefetcher(samples, stream)
    assert len(batches) == (samples + 1) // 2
    for _ in range(2):
        assert [value for batch in batches for value in batch.tolist()] == list(range(samples))


def test_prefetcher_waits_and_records_before_it_copies_on(streams: Streams) -> None:
    """Both hazards: a batch that has not arrived, and memory given to the next one too early."""
    used = []
    for batch in prefetcher(6):
        used.append(batch[0].item())
        streams.log.append(("use", used[-1]))
    assert streams.log == [
        ("copy", 0),
        *[("wait", -1), ("record", 0), ("copy", 2), ("use", 0)],
        *[("wait", -1), ("record", 2), ("copy", 4), ("use", 2)],
        *[("wait", -1), ("record", 4), ("use", 4)],
    ]


def test_prefetcher_left_early_starts_anew(streams: Streams) -> None:
    batches = prefetcher(6)
    for batch in batches:
        assert batch.tolist() == [0, 1]
        break
    assert [batch[0].item() for batch in batches] == [0, 2, 4]
