"""The reference loop: exact evaluation, one reduction a step, and a resume that changes no bit.

It trains twice on JPEG files made here: once in one go, once interrupted in the middle of an
epoch and gone on with.  The first run is watched; what it read, reduced and wrote is counted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import torch

from . import reference
from .context import device, gather, rank, scratch, world_size
from .harness import Check, Seen, needs
from .images import write_classes
from .probes import collectives, digest, digests, host_reads, writers
from .reference import Config, Pictures

NEEDS = needs(shared_folder=True)
VALIDATION = (9, 9, 8, 7)  # 33 images: no number of ranks but 1, 3, 11 and 33 divides them
STEPS = 12  # two epochs of six
INTERRUPTED = 8  # in the middle of the second
CONFIG = Config(
    epochs=2,
    batch_size=4,
    accumulate=2,
    warmup_steps=2,
    precision="fp16",
    workers=0,
    log_every=3,
    save_every=100,
)
#: Set-up and checkpoints may wait; what the loop itself reads is seen without CUDA's help.
ACCORDING_TO_CUDA = "synchronizing"
SETTINGS = {
    "batch": [4, 32, 32, 3],
    "amp": "float16",
    "accumulate": 2,
    "steps": STEPS,
    "deterministic algorithms": True,
}


def good() -> Seen:
    # Eleven micro-batches per rank and epoch: the last window of each epoch holds only one.
    torch.use_deterministic_algorithms(True)
    pictures = scratch() / "pictures"
    if rank() == 0:
        images = 44 * world_size()
        write_classes(pictures / "train", [images // 4] * 4)
        write_classes(pictures / "val", VALIDATION, seed=100)
    gather("pictures are there")
    config = replace(CONFIG, data=str(pictures), out=str(scratch() / "in_one_go"))
    with (
        _watched() as watched,
        host_reads(grad_scaler=False) as reads,
        collectives() as traffic,
        writers() as writes,
    ):
        model = reference.train(config, device())
    correct, total = reference.evaluate(model, _validation(config), device(), config)

    again = replace(config, out=str(scratch() / "interrupted"), workers=1)
    reference.train(replace(again, max_steps=INTERRUPTED), device())
    resumed = reference.train(again, device())

    orders = watched.orders
    return {
        "orders": orders,
        "reads": {place: n for place, n in reads.places.items() if ACCORDING_TO_CUDA not in place},
        "all-reduces": traffic.count,
        "files written": dict(writes.by_path),
        "evaluation": [correct, total],
        "recount": _recount(model, _validation(config)),
        "in one go": digests(model),
        "resumed": digests(resumed),
        "digests": {
            **{f"order of epoch {epoch}": digest(order) for epoch, order in enumerate(orders)},
            **{f"batch {number}": each for number, each in enumerate(watched.batches)},
            **digests(model),
        },
    }


class _Watched:
    def __init__(self) -> None:
        self.orders: list[list[int]] = []
        self.batches: list[str] = []


@contextmanager
def _watched() -> Iterator[_Watched]:
    """Note the orders that the sampler deals and the batches that arrive."""
    watched = _Watched()
    deal, augment = reference.ResumableSampler.__iter__, reference.augment

    def noted_deal(sampler: reference.ResumableSampler) -> Iterator[int]:
        order = list(deal(sampler))
        watched.orders.append(order)
        return iter(order)

    def noted_augment(images: torch.Tensor, seed: int) -> torch.Tensor:
        flipped = augment(images, seed)
        watched.batches.append(digest(flipped))
        return flipped

    reference.ResumableSampler.__iter__ = noted_deal  # type: ignore[method-assign]
    reference.augment = noted_augment
    try:
        yield watched
    finally:
        reference.ResumableSampler.__iter__ = deal  # type: ignore[method-assign]
        reference.augment = augment


def _validation(config: Config) -> Pictures:
    return Pictures(Path(config.out) / "val")


def _recount(model: torch.nn.Module, dataset: Pictures) -> list[int]:
    """The evaluation once more, by each rank alone, image by image."""
    right = 0
    model.eval()
    with torch.inference_mode():
        for image, label in dataset:  # type: ignore[attr-defined]
            right += int(model(image[None].to(device())).argmax() == label.to(device()))
    return [right, len(dataset)]


def evidence(bad: Sequence[Seen], good: Sequence[Seen]) -> Iterator[Check]:
    mine = good[rank()]
    steps, logs, epochs = STEPS, STEPS // CONFIG.log_every, CONFIG.epochs
    differ = [name for name, one in mine["in one go"].items() if mine["resumed"][name] != one]
    yield Check("tensors that an interruption changed", len(differ), "==", 0, "good")
    ranks_agree = all(one["in one go"] == mine["in one go"] for one in good)
    yield Check("ranks have the same parameters", ranks_agree, "==", True, "good")
    yield Check("evaluation", mine["evaluation"], "==", mine["recount"], "good")
    yield Check("images evaluated", mine["evaluation"][1], "==", sum(VALIDATION), "good")
    reductions = 1 + steps + logs + epochs  # one to settle the buckets
    yield Check("all-reduces", mine["all-reduces"], "==", reductions, "good")
    reads = sum(mine["reads"].values())
    yield Check("reads by the host", reads, "==", epochs + (logs if rank() == 0 else 0), "good")
    writers = [one["files written"] for one in good]
    expected = [{"checkpoint.tmp": epochs}] + [{}] * (len(good) - 1)
    yield Check("files written", writers, "==", expected, "good")
    first, second = mine["orders"]
    yield Check("order of the second epoch", second, "!=", first, "good")
    for epoch in range(epochs):
        dealt = [index for one in good for index in one["orders"][epoch]]
        yield Check(
            f"images dealt twice in epoch {epoch}", len(dealt) - len({*dealt}), "==", 0, "good"
        )
