"""One rank of one proof, in a process of its own: run both sides, gather, judge.

The process ends by ``os._exit``: a gloo group with a DDP model that was used aborts every few
runs when the interpreter takes it down, long after the proof is over.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch.distributed.distributed_c10d import PrefixStore

from . import context, proofs
from .harness import Check, Needs, Seen, Side
from .proofs import Proof
from .world import Backend, Launch, Meeting, connect

#: For tests of the proofs themselves: what to run in the place of one side.
Sabotage = Literal["", "good-is-bad", "bad-is-good"]


@dataclass(frozen=True)
class Task:
    """One proof to run, and everything that its ranks need to know."""

    proof: Proof
    number: int
    launch: Launch
    backend: Backend
    seed: int
    timeout: float
    scratch: Path
    shared_scratch: bool
    log: Path
    sabotage: Sabotage = ""
    expect_mended: bool = False


@dataclass
class Outcome:
    """How one rank came through.  ``result`` only on rank 0 and only where it is "done".

    "done", "not_run" (``detail``: what is missing), "raised" (``detail``: what; the log has the
    traceback), and, as the supervisor sees it, "died", "hung" or "stopped" because another rank
    failed.
    """

    status: Literal["done", "not_run", "raised", "died", "hung", "stopped"]
    detail: str = ""
    result: dict[str, Any] = field(default_factory=dict)


def main(task: Task, answer: Connection) -> None:
    """The whole life of the process."""
    _detach(task.log)
    try:
        outcome = _run(task)
    except BaseException as error:  # also SystemExit: a proof may call exit()
        words = str(error).strip().partition("\n")[0]
        outcome = Outcome("raised", f"{type(error).__name__}: {words}")
        traceback.print_exc()
    answer.send(outcome)
    answer.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _detach(log: Path) -> None:
    """Leave the supervisor's terminal, signals and process group, and die when it dies."""
    if sys.platform == "linux":
        parent_death_signal = 1
        ctypes.CDLL(None).prctl(parent_death_signal, signal.SIGKILL)
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    sys.stdout.flush()
    sys.stderr.flush()
    os.dup2(file, 1)
    os.dup2(file, 2)


def _run(task: Task) -> Outcome:
    meeting = connect(f"proof/{task.number}", task.launch, task.timeout)
    missing = meeting.gather(unmet(task.proof.needs, task))
    if any(missing):
        return Outcome("not_run", next(filter(None, missing)))
    module = proofs.load(task.proof)
    device = _set_up(task, meeting)
    task.scratch.mkdir(parents=True, exist_ok=True)
    surroundings = context.Surroundings(device, task.scratch, meeting)
    return Outcome("done", result=_judge(module, task, surroundings))


def unmet(needs: Needs, task: Task) -> str:
    """What a proof cannot do without and this run does not have; "" where nothing."""
    if task.launch.world_size < needs.ranks:
        return f"needs {needs.ranks} ranks, this run has {task.launch.world_size}"
    if (needs.cuda or needs.gpu_per_rank) and task.backend.device != "cuda":
        return "needs a GPU"
    if needs.gpu_per_rank and task.backend.name != "nccl":
        return "needs a GPU for each rank"
    if _version(torch.__version__) < _version(needs.torch):
        return f"needs torch {needs.torch}"
    if needs.shared_folder and not task.shared_scratch:
        return "needs a folder that all nodes share"
    for module in needs.modules:
        if find_spec(module) is None:
            return f"needs {module}: pip install {module}"
    return ""


def _version(text: str) -> tuple[int, ...]:
    """``"2.13.0+cpu"`` as (2, 13), to compare."""
    return tuple(int(part) for part in text.split(".")[:2] if part.isdecimal())


def _set_up(task: Task, meeting: Meeting) -> torch.device:
    device = torch.device("cpu")
    if task.backend.device == "cuda":
        device = torch.device("cuda", task.launch.local_rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    dist.init_process_group(
        task.backend.name,
        store=PrefixStore("default_group", meeting.store),
        rank=task.launch.rank,
        world_size=task.launch.world_size,
        timeout=timedelta(seconds=task.timeout),
    )
    # NCCL keeps no time limit while it connects: better here than inside a proof.
    dist.all_reduce(torch.zeros(1, device=device))
    return device


def _judge(module: ModuleType, task: Task, surroundings: context.Surroundings) -> dict[str, Any]:
    meeting = surroundings.meeting
    sides: dict[Side, Callable[[], Seen]] = {"good": module.good}
    if task.proof.has_bad:
        sides["bad"] = module.good if task.sabotage == "bad-is-good" else module.bad
        sides["good"] = module.bad if task.sabotage == "good-is-bad" else module.good
    if task.expect_mended:
        sides = {"good": module.bad}
    seen: dict[str, list[Seen]] = {"bad": [], "good": []}
    seconds = {}
    for side in ("bad", "good"):
        if side not in sides:
            continue
        context.enter(replace(surroundings, patience=1.0 if side == "bad" else 5.0))
        context.seed_everything(task.seed)
        began = time.perf_counter()
        mine = sides[side]()
        seconds[side] = time.perf_counter() - began
        seen[side] = meeting.gather(mine)
    if task.expect_mended:
        # A check of the good side may look at the other one too; there is none but this.
        seen["bad"] = seen["good"]
    checks = [one for one in module.evidence(seen["bad"], seen["good"]) if asked(one, task)]
    judged = meeting.gather([{**asdict(check), "ok": check.ok} for check in checks])
    result: dict[str, Any] = {"seen": seen, "checks": merge_checks(judged), "seconds": seconds}
    if task.launch.rank == 0:
        result["settings"] = getattr(module, "SETTINGS", {})
        result["simulated"] = getattr(module, "SIMULATED", "")
        result["not_covered"] = list(getattr(module, "NOT_COVERED", ()))
        if hasattr(module, "picture"):
            picture = module.picture(seen["bad"], seen["good"])
            result["picture"] = {"kind": type(picture).__name__, **asdict(picture)}
        # As it will be read: tuples and ranges are lists then.
        result = json.loads(json.dumps(result, default=list))
    for side in sides:
        if not any(check.of == side for check in checks):
            raise AssertionError(f"{task.proof.stem} checks nothing about its {side}()")
    # A rank that is gone takes its connections with it: leave together.
    meeting.gather("over")
    return result if task.launch.rank == 0 else {}


def asked(check: Check, task: Task) -> bool:
    """Whether a check counts: of a bad() that was mended only what is asked of good() does."""
    return check.of == "good" or not task.expect_mended


def merge_checks(by_rank: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """The checks of all ranks as one list, each with the values that the ranks judged.

    Raises ``AssertionError`` where ranks did not check the same things.
    """
    merged = []
    for same in zip(*by_rank, strict=True):
        first = same[0]
        assert all((c["name"], c["of"]) == (first["name"], first["of"]) for c in same), same
        merged.append(
            {
                **{key: first[key] for key in ("name", "of", "op", "rel", "abs")},
                "limits": [check["limit"] for check in same],
                "values": [check["value"] for check in same],
                "ok": all(check["ok"] for check in same),
            }
        )
    return merged
