"""Who comes to a place, where conditions that ask for no rank are taken to hold."""

from __future__ import annotations

import pytest
from astroid import nodes

from ddp_lint.model import Program
from ddp_lint.model.guards import Audience
from tests.model.programs import program_of

SETUP = """
import argparse
import os
import torch
import torch.distributed as dist

args = argparse.ArgumentParser().parse_args()
rank = int(os.environ["RANK"])
local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("nccl")
def here():
    pass
"""


def call_of(program: Program, name: str = "here") -> nodes.Call:
    (found,) = (
        call
        for call, _ in program.facts.calls
        if isinstance(call.func, nodes.Name) and call.func.name == name
    )
    return found


def audience(body: str) -> Audience:
    program = program_of(SETUP + body)
    return program.facts.ranks.audience(call_of(program))


@pytest.mark.parametrize(
    ("test", "reached"),
    [
        ("rank == 0", (True, False, False, False)),
        ("local_rank == 0", (True, False, True, False)),
        ("not rank", (True, False, False, False)),
        ("rank != -1", (True, True, True, True)),
        ("args.epoch % 5 == 0", (True, True, True, True)),
        ("args.epoch % 5 == 0 and rank == 0", (True, False, False, False)),
        ("args.epoch % 5 == 0 or rank == 0", (True, None, None, None)),
        ("args.is_chief_writer", (None, None, None, None)),
        ("dist.get_world_size() == 1", (False, False, False, False)),
        ("'LOCAL_RANK' in os.environ", (True, True, True, True)),
    ],
)
def test_conditions(test: str, reached: tuple[bool | None, ...]) -> None:
    assert audience(f"if {test}:\n    here()\n").reached == reached


def test_an_early_return_on_the_other_ranks() -> None:
    body = """
def report():
    if rank != 0:
        return
    here()
report()
"""
    assert audience(body).one


def test_every_caller_is_guarded_or_one_is_not() -> None:
    guarded = "def save():\n    here()\nif rank == 0:\n    save()\n"
    assert audience(guarded).one
    assert all(audience(guarded + "save()\n").reached)


def test_what_the_project_writes_into_a_decorator_counts_before_its_name() -> None:
    body = """
def main_process_only(function):
    def wrapped(*args):
        if local_rank == 0:
            return function(*args)
    return wrapped
@main_process_only
def save():
    here()
save()
"""
    assert audience(body).reached == (True, False, True, False)


def test_a_caller_that_leaves_the_model_out_does_not_come_to_the_save() -> None:
    body = """
def checkpoint(path, model=None):
    if model is not None:
        here()
checkpoint("last.pt")
if rank == 0:
    checkpoint("last.pt", model=torch.nn.Linear(3, 3))
"""
    program = program_of(SETUP + body)
    assert program.facts.ranks.way_of_all(call_of(program)) is None
    assert program.facts.ranks.audience(call_of(program)).one


def test_a_spawn_index_is_the_rank_where_the_group_is_told_so() -> None:
    body = """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
def here():
    pass
def worker(gpu):
    dist.init_process_group("nccl", rank={rank}, world_size=8)
    if gpu == 0:
        here()
mp.spawn(worker, nprocs=8)
"""
    for rank, reached in (
        ("gpu", (True, False, False, False)),
        ("8 * node + gpu", (True, False, True, False)),
    ):
        program = program_of(body.replace("{rank}", rank))
        assert program.facts.ranks.audience(call_of(program)).reached == reached


def test_a_function_that_nobody_calls_is_not_known_to_run() -> None:
    program = program_of(SETUP + "def save():\n    here()\n")
    unit = program.facts.values.unit_of(call_of(program))
    assert not program.facts.ranks.is_run(unit)


def test_a_callback_runs_on_whatever_rank_comes_by() -> None:
    body = "import atexit\ndef save():\n    here()\natexit.register(save)\n"
    program = program_of(SETUP + body)
    assert program.facts.ranks.way_of_all(call_of(program)) is None
