"""What is written to checkpoint files, by whom, and where to."""

from __future__ import annotations

import pytest

from ddp_lint.model.saves import Save, saves
from tests.model.programs import program_of

SETUP = """
import io
import os
import tempfile
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

rank = int(os.environ["RANK"])
dist.init_process_group("nccl")
model = DDP(nn.Linear(3, 3).cuda())
folder = "out"
"""


def save_of(body: str) -> Save:
    (found,) = saves(program_of(SETUP + body).facts)
    return found


@pytest.mark.parametrize(
    ("path", "differs"),
    [
        ('"last.pt"', False),
        ('os.path.join(folder, "last.pt")', False),
        ('f"{folder}/{rank}.pt"', True),
        ('"%s.pt" % dist.get_rank()', True),
        ('f"part_{os.getpid()}.pt"', True),
        ("tempfile.mkdtemp()", True),
        ('os.environ["RANK"] + ".pt"', True),
    ],
)
def test_paths(path: str, differs: bool) -> None:
    save = save_of(f"torch.save(model.module.state_dict(), {path})\n")
    assert save.is_local is differs
    assert save.by_all is not differs


def test_a_loop_over_epochs_and_one_over_samples() -> None:
    write = 'torch.save(model.module.state_dict(), f"{one}.pt")\n'
    assert not save_of(f"for one in range(3):\n    {write}").is_local
    files = "from torch.utils.data import DataLoader\nloader = DataLoader(model)\n"
    assert save_of(f"{files}for one in loader:\n    {write}").is_local


def test_memory_is_no_file() -> None:
    program = program_of(SETUP + "torch.save(model.state_dict(), io.BytesIO())\n")
    assert saves(program.facts) == ()


def test_parts_through_dictionaries_names_and_helpers() -> None:
    body = """
def state(of):
    return {"weights": of.state_dict()}
everything = state(model)
everything["step"] = 3
torch.save(everything, "last.pt")
"""
    assert "of.state_dict()" in [part.as_string() for part in save_of(body).parts]


def test_one_node_by_the_size_of_the_group() -> None:
    body = """
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
def worker(gpu, gpus):
    dist.init_process_group("nccl", rank=gpu + 0, world_size=gpus)
    if gpu == 0:
        torch.save({}, "last.pt")
mp.spawn(worker, nprocs=torch.cuda.device_count(), args=({size},))
"""
    for size, several in (("torch.cuda.device_count()", False), ("16", True)):
        (save,) = saves(program_of(body.replace("{size}", size)).facts)
        assert save.by_one_of_each_node is several
