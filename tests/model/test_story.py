"""What a program runs, in order, functions entered."""

from __future__ import annotations

from astroid import nodes

from ddp_lint.model.frames import key
from ddp_lint.model.story import Event, Story
from tests.model.programs import program_of

SETUP = """
import torch
import torch.distributed as dist
from contextlib import contextmanager
"""


def told(body: str) -> list[Event]:
    (telling,) = program_of(SETUP + body).facts.once(Story).tellings
    return telling


def names(events: list[Event]) -> list[str]:
    return [event.call.as_string() for event in events]


def test_functions_are_entered_where_they_are_called() -> None:
    body = """
def set_up():
    dist.init_process_group("nccl")
set_up()
torch.cuda.set_device(0)
"""
    assert names(told(body)) == ["dist.init_process_group('nccl')", "torch.cuda.set_device(0)"]


def test_a_context_manager_ends_after_its_body() -> None:
    body = """
@contextmanager
def in_step():
    yield
    dist.barrier()
with in_step():
    torch.save({}, "last.pt")
torch.load("last.pt")
"""
    assert names(told(body))[-3:] == [
        "torch.save({}, 'last.pt')",
        "dist.barrier()",
        "torch.load('last.pt')",
    ]


def test_local_names_of_two_calls_are_not_the_same() -> None:
    body = """
def encode(path):
    cached = path + ".pt"
    torch.save({}, cached)
encode("a")
encode("b")
"""
    events = told(body)
    paths = {key(e.call.args[1], e.frame) for e in events if isinstance(e.call, nodes.Call)}
    assert len(paths) == 2
