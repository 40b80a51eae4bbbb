"""The helper for users' own tests: it fails where the host waits, and only there."""

from __future__ import annotations

import math
import subprocess
import sys
import textwrap
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from ddp_lint import nosync
from ddp_lint.nosync import HostSyncError, host_sync_allowed, no_host_sync, watch_host_reads
from tests.runtime.launch import ROOT

VALUE = torch.tensor(1.5)
VALUES = torch.arange(4.0)
INDEX = torch.tensor(1)


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda: VALUE.item(), ".item()"),
        (lambda: VALUES.tolist(), ".tolist()"),
        (lambda: VALUES.cpu(), ".cpu()"),
        (lambda: VALUES.numpy(), ".numpy()"),
        (lambda: np.asarray(VALUES), "numpy.asarray()"),
        (lambda: float(VALUE), "float()"),
        (lambda: int(VALUE), "int()"),
        (lambda: math.isnan(VALUE), "float()"),
        (lambda: 1 if VALUE > 1 else 0, "bool()"),
        (lambda: max(VALUE, VALUE), "bool()"),
        (lambda: f"{VALUE:.2f}", "formatting"),
        (lambda: str(VALUES), "printing"),
        (lambda: range(INDEX), "use as an index"),
        (lambda: VALUES[VALUES > 1], "indexing by a mask"),
        (lambda: VALUES.nonzero(), "nonzero()"),
        (lambda: torch.unique(VALUES), "unique()"),
        (lambda: torch.equal(VALUES, VALUES), "equal()"),
        (lambda: torch.cpu.synchronize(), "synchronize()"),
    ],
)
def test_reads_are_reported(read: Callable[[], object], what: str) -> None:
    with pytest.raises(HostSyncError) as raised, no_host_sync():
        read()
    ((found, times),) = raised.value.reads.items()
    assert (found.what, times) == (what, 1)
    assert (found.path, found.line) == (__file__, read.__code__.co_firstlineno)


def test_a_step_without_reads_passes() -> None:
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(TensorDataset(torch.ones(8, 4)), batch_size=2, shuffle=True)
    total = torch.zeros(())
    with no_host_sync():
        for (inputs,) in loader:
            loss = model(inputs).sum()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            total += loss.detach()
            assert inputs.shape == (2, 4)
            assert len(inputs) == 2


def test_the_line_of_the_helper_is_blamed_not_torch() -> None:
    def meter(loss: torch.Tensor) -> float:
        return loss.item()

    with pytest.raises(HostSyncError) as raised, no_host_sync():
        [meter(VALUE) for _ in range(3)]
    message = str(raised.value)
    assert message.startswith("the host waited for the device 3 times:\n")
    line = meter.__code__.co_firstlineno + 1
    assert f"{__file__}:{line}: .item()    return loss.item()  (3 times)" in message


def test_what_is_allowed_does_not_count() -> None:
    with no_host_sync(), host_sync_allowed():
        VALUE.item()

    def twice() -> None:
        with host_sync_allowed():
            VALUE.item()
        VALUE.item()

    with pytest.raises(HostSyncError, match="once"), no_host_sync():
        twice()


def test_the_scaler_may_ask_unless_told_otherwise() -> None:
    def step() -> None:
        model = torch.nn.Linear(2, 1)
        scaler = torch.amp.GradScaler("cpu")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler.scale(model(torch.ones(1, 2)).sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    with no_host_sync():
        step()
    with pytest.raises(HostSyncError), no_host_sync(grad_scaler=True):
        step()


def test_an_exception_of_the_region_goes_through() -> None:
    with pytest.raises(ZeroDivisionError), no_host_sync():
        1 / (VALUE.item() - 1.5)


def test_everything_is_put_back() -> None:
    before = torch.cuda.synchronize, torch.cpu.synchronize, warnings.showwarning
    with watch_host_reads():
        assert torch.cpu.synchronize is not before[1]
    assert (torch.cuda.synchronize, torch.cpu.synchronize, warnings.showwarning) == before
    assert VALUE.item() == 1.5


def test_what_cuda_itself_reports_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA's debug mode speaks through warnings; here a stand-in does."""
    modes: list[object] = []
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    noted: list[str] = []
    with warnings.catch_warnings(record=True) as others, nosync._cuda_warnings(noted.append):
        for _ in range(2):
            warnings.warn("called a synchronizing CUDA operation (Triggered ...)", stacklevel=1)
        warnings.warn("something else", stacklevel=1)
    assert len(noted) == 2
    assert modes == ["warn", 0]
    assert [str(one.message) for one in others] == ["something else"]


def test_a_read_and_what_cuda_says_about_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printing a tensor on a GPU synchronizes several times; it is one line to mend."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: 0)
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", lambda mode: None)

    def noisy(*args: object, **kwargs: object) -> str:
        warnings.warn("called a synchronizing CUDA operation", stacklevel=1)
        return "printed"

    monkeypatch.setattr(torch._tensor_str, "_str", noisy)
    elsewhere = torch.ones(3, device="meta")  # a tensor that is not on the host
    with watch_host_reads() as reads:
        str(elsewhere)
        VALUE.item()  # with a GPU at hand, a tensor on the host is just that
    assert [read.what for read in reads.elements()] == ["printing"]
    with watch_host_reads() as reads:
        noisy()
    assert [read.what for read in reads.elements()] == ["a synchronizing CUDA operation"]


def test_torch_is_imported_late() -> None:
    code = "import sys, ddp_lint.nosync; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


def test_the_documented_example_fails_with_file_and_line(tmp_path: Path) -> None:
    test = tmp_path / "test_step.py"
    test.write_text(
        textwrap.dedent(
            """
            import torch
            from ddp_lint.nosync import host_sync_allowed, no_host_sync

            def train_step(losses):
                loss = torch.ones(()) * 2
                losses.append(loss.item())
                return loss

            def test_training_step_never_waits():
                train_step([])
                with no_host_sync():
                    for step in range(3):
                        loss = train_step([])
                        with host_sync_allowed():
                            print(loss.item())
            """
        )
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert f"{test}:7: .item()    losses.append(loss.item())  (3 times)" in done.stdout
    assert ":16: .item()" not in done.stdout
