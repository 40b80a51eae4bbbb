"""What the proofs measure with, beyond the probes: it counts, and it can count nothing."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from PIL import Image
from torch.nn.functional import cross_entropy
from torch.optim import SGD

from runtime_checks import decoding
from runtime_checks.decoding import decoded_by_pillow
from runtime_checks.images import write_jpegs
from runtime_checks.small import Noted, Updates, agreed, gradient_norm, make_dataset, make_model
from runtime_checks.streams import slow_device

pytestmark = pytest.mark.filterwarnings("ignore:.*lr_scheduler.*:UserWarning")


def _step(model: torch.nn.Module, optimizer: SGD, *, clear: bool) -> float:
    inputs, targets = make_dataset(8)[:]
    if clear:
        optimizer.zero_grad()
    aside = copy.deepcopy(model)
    norm = gradient_norm(aside, cross_entropy(aside(inputs), targets))
    loss = cross_entropy(model(inputs), targets)
    loss.backward()
    optimizer.step()
    return norm


def test_updates_see_the_gradient_that_a_step_uses() -> None:
    model = make_model()
    optimizer = SGD(model.parameters(), lr=0.25)
    updates = Updates(model, optimizer)
    norms = [_step(model, optimizer, clear=True) for _ in range(3)]
    assert updates.norms == pytest.approx(norms)
    assert updates.strays == [0.0, 0.0, 0.0]
    assert updates.rates == [0.25, 0.25, 0.25]


def test_updates_tell_inherited_gradients() -> None:
    model = make_model()
    optimizer = SGD(model.parameters(), lr=0.25)
    updates = Updates(model, optimizer)
    for _ in range(2):
        _step(model, optimizer, clear=False)
    assert updates.strays[0] == 0.0
    assert updates.strays[1] > 0.5


def test_gradient_norm_leaves_no_gradient() -> None:
    model = make_model()
    inputs, targets = make_dataset(8)[:]
    assert gradient_norm(model, cross_entropy(model(inputs), targets)) > 0
    assert all(parameter.grad is None for parameter in model.parameters())


def test_noted_samples_by_epoch() -> None:
    dataset = Noted(4)
    for index in (3, 1, 0, 2):
        dataset[index]
    assert dataset.epochs(2) == [[3, 1], [0, 2]]
    assert Noted(4).epochs(2) == [[], []]


def test_ranks_agree_or_do_not() -> None:
    assert agreed([1, 1]) == 1
    assert agreed([1, 2]) == [1, 2]


def test_decoded_pixels(tmp_path: Path) -> None:
    (path,) = write_jpegs(tmp_path, 1, (640, 480))
    with decoded_by_pillow() as seen:
        assert decoding.full(path).shape == (120, 160, 3)
        assert (seen.images, seen.pixels) == (1, 640 * 480)
        decoding.draft(path)
        assert (seen.images, seen.pixels) == (2, 640 * 480 + 160 * 120)
    decoding.full(path)
    assert seen.images == 2


def test_opening_a_file_decodes_nothing(tmp_path: Path) -> None:
    (path,) = write_jpegs(tmp_path, 1, (640, 480))
    with decoded_by_pillow() as seen, Image.open(path) as image:
        assert image.size == (640, 480)
    assert (seen.images, seen.pixels) == (0, 0)


needs_model = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a real device")


@needs_model
def test_model_reads_too_early_only_without_a_wait() -> None:
    for wait, expected in (False, -32.0), (True, 32.0):
        with slow_device(copy=3, kernel=1):
            side = torch.cuda.Stream()
            with torch.cuda.stream(side):
                batch = torch.ones(32).cuda(non_blocking=True)
            if wait:
                torch.cuda.current_stream().wait_stream(side)
            assert batch.sum().item() == expected


@needs_model
def test_model_overwrites_what_nobody_keeps() -> None:
    for keep, expected in (False, 64.0), (True, 32.0):
        with slow_device(copy=1, kernel=10):
            side = torch.cuda.Stream()
            main = torch.cuda.current_stream()
            busy = torch.ones(32).cuda().sum()
            with torch.cuda.stream(side):
                batch = torch.ones(32).cuda(non_blocking=True)
            main.wait_stream(side)
            total = batch.sum()
            if keep:
                batch.record_stream(main)
            del batch
            with torch.cuda.stream(side):
                following = torch.full((32,), 2.0).cuda(non_blocking=True)
            assert total.item() == expected
            assert following.sum().item() == 64.0
            assert busy.item() == 32.0


@needs_model
def test_model_reserves_once_for_one_stream() -> None:
    with slow_device(copy=1, kernel=1):
        for _ in range(3):
            torch.ones(32).cuda()
        once = torch.cuda.memory_reserved()
        with torch.cuda.stream(torch.cuda.Stream()):
            torch.ones(32).cuda()
        assert torch.cuda.memory_reserved() == 2 * once


@needs_model
def test_model_leaves_torch_as_it_was() -> None:
    before = torch.cuda.Stream, torch.Tensor.record_stream
    with slow_device(copy=1, kernel=1):
        assert before[0] is not torch.cuda.Stream
    assert before == (torch.cuda.Stream, torch.Tensor.record_stream)
    assert torch.ones(2).sum().item() == 2.0
