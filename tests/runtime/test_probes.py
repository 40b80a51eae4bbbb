"""Each probe alone: what it must count, and what it must not."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import HashStore  # type: ignore[attr-defined]
from torch.nn.parallel import DistributedDataParallel

from runtime_checks.probes import (
    collectives,
    digest,
    digests,
    graph_nodes,
    host_reads,
    saved_tensor_bytes,
    writers,
)


@pytest.fixture
def group() -> Iterator[None]:
    """A process group of one: what is counted does not depend on the number of ranks."""
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    gc.collect()
    dist.destroy_process_group()


def test_host_reads_names_line_and_kind() -> None:
    loss = torch.tensor(1.5)
    with host_reads() as reads:
        for _ in range(3):
            loss.item()
        float(loss)
    assert reads.count == 4
    (first, three), (second, one) = reads.places.items()
    assert (first.split()[1], three) == (".item()", 3)
    assert (second.split()[1], one) == ("float()", 1)
    assert first.startswith("test_probes.py:")


def test_host_reads_does_not_count_what_stays_on_the_device() -> None:
    values = torch.arange(4.0)
    with host_reads() as reads:
        values.shape, len(values), values.dtype, values[1], values[1:], values.sum() * 2
        torch.where(values > 1, values, 0), values.clamp(max=2), values.argmax()
    assert reads.count == 0


def test_host_reads_counts_the_scaler_only_when_asked() -> None:
    model = nn.Linear(2, 1)
    optimizer = torch.optim.AdamW(model.parameters())  # which reads its own counters, on the host
    for asked, expected in ((True, 1), (False, 0)):
        scaler = torch.amp.GradScaler("cpu")
        scaler.scale(model(torch.ones(1, 2)).sum()).backward()
        with host_reads(grad_scaler=asked) as reads:
            scaler.step(optimizer)
            scaler.update()
        assert reads.count == expected


def linear_bytes(model: nn.Module) -> int:
    return sum(parameter.numel() * 4 for parameter in model.parameters())


@pytest.mark.usefixtures("group")
def test_collectives_by_dispatch_and_by_hook_agree() -> None:
    inside: list[int] = []
    hooked: list[int] = []
    for seen, watch in ((inside, collectives), (hooked, None)):
        model = DistributedDataParallel(nn.Linear(8, 4))
        with watch() if watch else collectives(model) as traffic:
            for _ in range(3):
                model(torch.ones(2, 8)).sum().backward()
        seen += [traffic.count, traffic.bytes]
        assert seen == [3, 3 * linear_bytes(model)]
        del model


@pytest.mark.usefixtures("group")
def test_collectives_of_other_kinds_are_kept_apart() -> None:
    with collectives() as traffic:
        dist.broadcast(torch.ones(3), 0)
        dist.barrier()
        torch.ones(3).sum()
    assert (traffic.count, traffic.bytes) == (0, 0)
    assert traffic.other == {"broadcast": 1, "barrier": 1}


@pytest.mark.usefixtures("group")
def test_collectives_of_a_model_do_not_count_others() -> None:
    model = DistributedDataParallel(nn.Linear(8, 4))
    with collectives(model) as traffic:
        dist.all_reduce(torch.ones(3))
        with model.no_sync():
            model(torch.ones(2, 8)).sum().backward()
        model.module(torch.ones(2, 8)).sum()
    assert traffic.count == 0
    model(torch.ones(2, 8)).sum().backward()
    assert traffic.count == 0, "after the region nothing counts"
    del model


def test_collectives_refuses_a_plain_model() -> None:
    with pytest.raises(TypeError, match="not Linear"), collectives(nn.Linear(1, 1)):
        pass


def test_saved_tensor_bytes_follow_the_graph() -> None:
    inputs = torch.ones(5, 7, requires_grad=True)
    with saved_tensor_bytes() as saved:
        total = (inputs * inputs).exp().sum()
        held = saved.bytes
        total.backward()
        assert saved.bytes == 0, "backward lets go"
        kept = inputs.exp().sum()
        again = saved.bytes
        del kept
        assert saved.bytes == 0, "so does a graph that is gone"
    # Both factors of the product, and the result of exp.
    assert (held, again) == (3 * 5 * 7 * 4, 5 * 7 * 4)


def test_saved_tensor_bytes_without_a_graph() -> None:
    inputs = torch.ones(5, 7, requires_grad=True)
    with saved_tensor_bytes() as saved, torch.no_grad():
        kept = inputs.exp().sum()
        assert saved.bytes == 0
    with saved_tensor_bytes() as saved:
        sums = (inputs + 1).sum()  # a sum has nothing to save
        assert saved.bytes == 0
    del kept, sums


def test_the_probe_itself_keeps_no_graph_alive() -> None:
    inputs = torch.ones(5, 7, requires_grad=True)
    with saved_tensor_bytes() as saved:
        for _ in range(10):
            inputs.exp().sum()
        gc.collect()
        assert saved.bytes == 0


def test_graph_nodes() -> None:
    inputs = torch.ones(3, requires_grad=True)
    assert graph_nodes(inputs * 2) == 2  # the product and the leaf that it came from
    total: Any = 0
    counts = []
    for _ in range(3):
        total = total + (inputs * 2).sum()
        counts.append(graph_nodes(total))
    assert counts[2] - counts[1] == counts[1] - counts[0] > 0
    assert graph_nodes(total.detach()) == graph_nodes(torch.ones(3)) == 0


def test_writers_count_by_name(tmp_path: Path) -> None:
    original = torch.save
    with writers() as writes:
        torch.save({}, tmp_path / "model.pt")
        torch.save({}, str(tmp_path / "model.pt"))
        with open(tmp_path / "other.pt", "wb") as file:
            torch.save({}, file)
        torch.load(tmp_path / "model.pt")
        (tmp_path / "text").write_text("not through torch")
    assert writes.by_path == {"model.pt": 2, "other.pt": 1}
    assert torch.save is original


@pytest.mark.parametrize(
    "tensor",
    [torch.ones(3), torch.tensor(7), torch.ones(2, dtype=torch.bfloat16), torch.ones(3, 2).T],
)
def test_digest_of_a_tensor(tensor: torch.Tensor) -> None:
    assert digest(tensor) == digest(tensor.clone())
    assert digest(tensor) != digest(tensor + 1)
    assert digest(tensor) != digest(tensor.double())


def test_digest_tells_shapes_and_orders_apart() -> None:
    assert digest(torch.zeros(2, 3)) != digest(torch.zeros(3, 2))
    assert digest([1, 2, 3]) != digest([2, 1, 3])
    assert digest([1, 2, 3]) == digest([1, 2, 3])


def test_digest_is_no_read_of_the_code_under_watch() -> None:
    with host_reads() as reads:
        digest(torch.ones(3))
    assert reads.count == 0


def test_digests_are_in_the_order_of_the_module() -> None:
    norm = nn.BatchNorm1d(2)
    model = nn.Sequential(nn.Linear(2, 2), norm)
    assert list(digests(model)) == list(model.state_dict())
    before = digests(model)
    assert norm.running_mean is not None
    norm.running_mean += 1
    changed = [name for name, value in digests(model).items() if value != before[name]]
    assert changed == ["1.running_mean"]
