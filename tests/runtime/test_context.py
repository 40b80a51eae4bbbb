"""What proofs ask their surroundings: a trap that tells hangs from errors, words past groups."""

from __future__ import annotations

import gc
import random
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch.distributed import HashStore  # type: ignore[attr-defined]

from runtime_checks import context
from runtime_checks.context import Surroundings, trap
from runtime_checks.world import Meeting


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Surroundings]:
    """A world of one, as a worker makes it."""
    store = HashStore()
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "1")
    dist.init_process_group("gloo", store=store, rank=0, world_size=1)
    surroundings = Surroundings(torch.device("cpu"), Path(), Meeting(store, 0, 1, 5.0))
    context.enter(surroundings)
    yield surroundings
    context._now = None
    gc.collect()
    dist.destroy_process_group()


@pytest.mark.usefixtures("alone")
def test_trap_hands_back_what_was_done() -> None:
    def reduce(group: dist.ProcessGroup) -> float:
        value = torch.ones(1)
        dist.all_reduce(value, group=group)
        return value.item()

    trapped = trap(reduce)
    assert (trapped.status, trapped.value, trapped.error) == ("done", 1.0, "")


@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize(
    ("words", "status"),
    [
        ("Timed out waiting 1000ms for recv operation to complete", "hang"),
        ("Connection closed by peer [127.0.0.1]:1", "hang"),
        ("shapes do not match", "error"),
    ],
)
def test_trap_tells_a_hang_from_an_error(words: str, status: str) -> None:
    def fail(group: dist.ProcessGroup) -> None:
        raise RuntimeError(words)

    trapped = trap(fail)
    assert (trapped.status, trapped.value, trapped.error) == (status, None, words)


@pytest.mark.usefixtures("alone")
def test_trap_hides_no_mistake_of_the_proof() -> None:
    def mistaken(group: dist.ProcessGroup) -> None:
        raise KeyError("name")

    with pytest.raises(KeyError):
        trap(mistaken)


@pytest.mark.parametrize(("patience", "seconds"), [(1.0, 2.0), (5.0, 10.0)])
def test_trap_waits_longer_where_nothing_should_hang(
    alone: Surroundings, monkeypatch: pytest.MonkeyPatch, patience: float, seconds: float
) -> None:
    made: list[timedelta] = []
    original: Any = dist.new_group

    def noted(*, backend: str, timeout: timedelta) -> object:
        made.append(timeout)
        return original(backend=backend, timeout=timeout)

    monkeypatch.setattr(dist, "new_group", noted)
    context.enter(replace(alone, patience=patience))
    trap(lambda group: None, timeout=2.0)
    assert made == [timedelta(seconds=seconds)]


def test_outside_a_proof_there_is_nothing_to_ask() -> None:
    with pytest.raises(RuntimeError, match="no proof is running"):
        context.device()


def test_seeding_reaches_every_generator() -> None:
    def draw() -> tuple[float, float, float]:
        context.seed_everything(7)
        return random.random(), float(np.random.rand()), torch.rand(1).item()

    assert draw() == draw()


def test_a_meeting_gathers_by_rank_and_again() -> None:
    store = HashStore()
    gathered: dict[int, list[object]] = {}

    def member(rank: int) -> None:
        meeting = Meeting(store, rank, 3, 10.0)
        first = meeting.gather({"rank": rank})
        gathered[rank] = [first, meeting.gather(rank * 10)]

    threads = [Thread(target=member, args=(rank,)) for rank in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = [[{"rank": 0}, {"rank": 1}, {"rank": 2}], [0, 10, 20]]
    assert gathered == {0: expected, 1: expected, 2: expected}


def test_a_meeting_names_who_does_not_come() -> None:
    with pytest.raises(RuntimeError, match=r"no word from rank 1, 2 in 0\.05 s"):
        Meeting(HashStore(), 0, 3, 0.05).gather("here")
