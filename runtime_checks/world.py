"""Who runs together, and over what: ranks, devices, the backend, the store that they meet at.

Nothing here touches a GPU: the processes that call this fork the ones that do.
"""

from __future__ import annotations

import datetime
import json
import multiprocessing
import os
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.distributed import TCPStore  # type: ignore[attr-defined]
from torch.distributed.distributed_c10d import PrefixStore, Store

#: How long ranks wait for each other between proofs, in seconds.
PATIENCE = 60.0
#: Forking is what makes a fresh process per proof cheap; elsewhere it is not safe with torch.
START: Any = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


@dataclass(frozen=True)
class Launch:
    """This process's place, as torchrun tells it."""

    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    nodes: int
    by: str

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Launch:
        """From torchrun's variables; one lone process where there are none."""
        if "RANK" not in environ:
            return cls(0, 1, 0, 1, 1, "python")
        world = int(environ["WORLD_SIZE"])
        local = int(environ.get("LOCAL_WORLD_SIZE", world))
        nodes = int(environ.get("GROUP_WORLD_SIZE", "1"))
        rank, local_rank = int(environ["RANK"]), int(environ.get("LOCAL_RANK", environ["RANK"]))
        return cls(rank, world, local_rank, local, nodes, "torchrun")


@dataclass(frozen=True)
class Backend:
    """What collectives go over and where tensors live.  ``why`` is for people."""

    name: str
    device: str
    shared_gpu: bool
    why: str


_CPU = Backend("gloo", "cpu", False, "no GPU here")


def choose_backend(asked: str, gpus: int, local_world_size: int) -> Backend:
    """The backend for a node that has ``gpus`` GPUs and runs ``local_world_size`` ranks.

    ``asked`` is "auto", "cpu" or "cuda".  NCCL refuses two ranks on one GPU, hence gloo there.
    Raises ``ValueError`` where "cuda" was asked for and there is none.
    """
    if asked == "cpu":
        return Backend("gloo", "cpu", False, "asked for")
    if gpus == 0:
        if asked == "cuda":
            raise ValueError("--device cuda, but torch finds no GPU")
        return _CPU
    if gpus >= local_world_size:
        return Backend("nccl", "cuda", False, f"{gpus} GPUs for {local_world_size} ranks")
    return Backend("gloo", "cuda", True, f"{local_world_size} ranks share {gpus} GPUs")


def agree(choices: Sequence[Backend]) -> Backend:
    """One backend for all nodes: the CPU where one has no GPU, gloo where one shares its GPUs."""
    for choice in choices:
        if choice.device == "cpu":
            return choice
    for choice in choices:
        if choice.shared_gpu:
            return choice
    return choices[0]


class Meeting:
    """Where ranks leave word for each other, past any process group: it works where those hang.

    A rank that waits longer than ``patience`` seconds gets ``RuntimeError``.
    """

    def __init__(self, store: Store, rank: int, world_size: int, patience: float) -> None:
        self.store = store
        self.rank = rank
        self.world_size = world_size
        self.patience = patience
        self._met = 0

    def gather(self, value: Any) -> list[Any]:
        """What every rank passed to its n-th call, by rank.  Values travel as JSON."""
        self._met += 1
        keys = [f"{self._met}/{rank}" for rank in range(self.world_size)]
        self.store.set(keys[self.rank], json.dumps(value))
        self._await(keys)
        return [json.loads(self.store.get(key)) for key in keys]

    def _await(self, keys: list[str]) -> None:
        # The store's own wait() would hold back signals, and with them Ctrl-C, until it is over.
        deadline = time.monotonic() + self.patience
        pause = 0.001
        while not self.store.check(keys):
            if time.monotonic() > deadline:
                late = [key.partition("/")[2] for key in keys if not self.store.check([key])]
                raise RuntimeError(f"no word from rank {', '.join(late)} in {self.patience:g} s")
            time.sleep(pause)
            pause = min(2 * pause, 0.05)

    def say(self, word: str, value: Any = "") -> None:
        self.store.set(word, json.dumps(value))

    def heard(self, word: str) -> bool:
        return bool(self.store.check([word]))


def rendezvous(launch: Launch) -> None:
    """Make sure that there is a store to connect to, and that the environment says where.

    Under torchrun its agent keeps one.  Elsewhere rank 0 keeps one for as long as it lives.
    """
    if launch.by == "python":
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    agent_keeps_it = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    if launch.rank == 0 and not agent_keeps_it:
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        _kept.append(TCPStore(host, port, is_master=True, wait_for_workers=False))


_kept: list[TCPStore] = []


def connect(prefix: str, launch: Launch, patience: float = PATIENCE) -> Meeting:
    """A connection of this process's own to the store of the run, under a name."""
    store = TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=False,
        timeout=datetime.timedelta(seconds=patience),
    )
    named = PrefixStore(f"runtime_checks/{prefix}", store)
    return Meeting(named, launch.rank, launch.world_size, patience)


def _count_gpus() -> int:
    """Asked in a process of its own: who has asked the CUDA runtime cannot fork its users."""
    if not torch.backends.cuda.is_built():
        return 0
    with ProcessPoolExecutor(1, START) as elsewhere:
        return elsewhere.submit(torch.cuda.device_count).result()


def settle(asked: str, launch: Launch, meeting: Meeting) -> Backend:
    """The backend of the whole run, the same on every rank.

    Raises ``ValueError`` on all of them where one cannot have what was asked for.
    """
    try:
        mine = asdict(choose_backend(asked, _count_gpus(), launch.local_world_size))
    except ValueError as error:
        mine = {"impossible": str(error)}
    choices = meeting.gather(mine)
    for choice in choices:
        if "impossible" in choice:
            raise ValueError(choice["impossible"])
    return agree([Backend(**choice) for choice in choices])
