"""What the fixes of DDP506 make of programs: the local rank, by a name that does not lie."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.test_mending import check


def on_devices(body: str) -> str:
    start = """
        import os

        import torch
        import torch.distributed as dist

        dist.init_process_group("nccl")
        model = torch.nn.Linear(2, 2)
    """
    return dedent(start) + dedent(body)


@pytest.mark.parametrize("asked", ['int(os.getenv("RANK"))', "dist.get_rank()"])
def test_the_local_rank_is_called_by_the_name_that_it_has(asked: str) -> None:
    program = on_devices("""
        rank = {}
        my_gpu = int(os.getenv("LOCAL_RANK"))
        print(rank)
        ddp = torch.nn.parallel.DistributedDataParallel(model.to({name}), device_ids=[{name}])
    """).replace("{}", asked)
    check("DDP506", program.format(name="rank"), program.format(name="my_gpu"))


def test_a_name_that_is_not_bound_yet_or_something_else_on_some_way_is_not_used() -> None:
    program = on_devices("""
        rank = dist.get_rank()
        model.to(rank)
        gpu = int(os.environ["LOCAL_RANK"])
    """)
    check("DDP506", program, None)
    check(
        "DDP506",
        on_devices("""
        rank = dist.get_rank()
        gpu = int(os.environ["LOCAL_RANK"])
        if gpu == 9:
            gpu = 0
        model.to(rank)
    """),
        None,
    )


@pytest.mark.parametrize(
    ("before", "after"), [("gpu", "gpu"), ("rank", "local_rank"), ("RANK", "LOCAL_RANK")]
)
def test_what_is_called_after_the_rank_of_the_job_does_not_hold_another(
    before: str, after: str
) -> None:
    program = on_devices("""
        {name} = int(os.environ["{key}"])
        model.to({name})
        ones = torch.ones(2, device={name})
    """)
    check(
        "DDP506",
        program.format(name=before, key="RANK"),
        program.format(name=after, key="LOCAL_RANK"),
    )


def test_a_name_that_is_taken_is_not_given_again() -> None:
    check(
        "DDP506",
        on_devices("""
        rank = int(os.environ["RANK"])
        model.to(rank)


        def other(local_rank):
            return local_rank
    """),
        None,
    )
