"""Accumulation windows: what counts them, and what looks like it."""

from __future__ import annotations

import pytest

from tests.model.programs import program_of

HEAD = """\
import torch
from torch import nn

net = nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


def use(batches, args, count=0, epoch=0):
"""


def lengths(*lines: str) -> list[str]:
    """How long the windows of the one loop that steps are, as written."""
    text = HEAD + "\n".join(f"    {line}" for line in lines)
    (update,) = program_of(text).training.updates
    return sorted({window.length_text for window in update.windows})


def test_counted_by_the_index() -> None:
    assert lengths(
        "for i, batch in enumerate(batches):",
        "    net(batch).backward()",
        "    if (i + 1) % args.accumulate == 0:",
        "        optimizer.step()",
    ) == ["`args.accumulate`"]


def test_counted_by_hand() -> None:
    assert lengths(
        "for batch in batches:",
        "    net(batch).backward()",
        "    count += 1",
        "    if count == args.accumulate:",
        "        optimizer.step()",
        "        count = 0",
    ) == ["`args.accumulate`"]


def test_by_a_flag() -> None:
    assert lengths(
        "for i, batch in enumerate(batches):",
        "    last = i % 4 == 3 or i == len(batches) - 1",
        "    net(batch).backward()",
        "    if not last:",
        "        continue",
        "    optimizer.step()",
    ) == ["`4`"]


def test_a_loop_of_its_own() -> None:
    assert lengths(
        "stream = iter(batches)",
        "for _ in range(100):",
        "    for _ in range(args.accumulate):",
        "        net(next(stream)).backward()",
        "    optimizer.step()",
    ) == ["`args.accumulate`"]


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(
            [
                "for i, batch in enumerate(batches):",
                "    net(batch).backward()",
                "    if i % 1 == 0:",
                "        optimizer.step()",
            ],
            id="of one",
        ),
        pytest.param(
            [
                "for i, batch in enumerate(batches):",
                "    net(batch).backward()",
                "    optimizer.step()",
                "    if i % 100 == 0:",
                "        print(i)",
            ],
            id="a gate that the step does not wait for",
        ),
        pytest.param(
            [
                "for batch in batches:",
                "    net(batch).backward()",
                "    if epoch % 2 == 0:",
                "        optimizer.step()",
            ],
            id="a counter that the loop does not change",
        ),
        pytest.param(
            [
                "for i, batch in enumerate(batches):",
                "    if i % 5 == 0:",
                "        net(batch).backward()",
                "        optimizer.step()",
            ],
            id="the backward waits as well",
        ),
        pytest.param(
            [
                "heads = [nn.Linear(2, 2), nn.Linear(2, 2)]",
                "for batch in batches:",
                "    for head in heads:",
                "        head(net(batch)).backward()",
                "    optimizer.step()",
            ],
            id="parts of the model",
        ),
    ],
)
def test_is_none(lines: list[str]) -> None:
    assert lengths(*lines) == []
