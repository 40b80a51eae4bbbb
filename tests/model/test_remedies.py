"""What is said of a spot in a training step: the remedy must be one that can be followed."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from tests import markers

START = """
import time
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(64, 8), torch.randint(3, (64,)))
loader = DataLoader(data, batch_size=8, shuffle=True, num_workers=4)
model = nn.Linear(8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
STEP = """
loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
optimizer.zero_grad()
loss.backward()
optimizer.step()
"""


def messages(code: str, text: str) -> list[str]:
    project = markers.project_of_text(START + dedent(text))
    return [finding.message for finding in markers.findings(project) if finding.code == code]


def loop(before: str, after: str) -> str:
    body = indent(dedent(before) + STEP + dedent(after), "    ")
    return f"for x, y in loader:\n{body}"


@pytest.mark.parametrize(
    ("after", "says"),
    [
        ("torch.cuda.synchronize()", "remove it"),
        ("torch.cuda.synchronize()\nprint(time.perf_counter())", "for the clock after it"),
        ("end.record()\ntorch.cuda.synchronize()\nprint(begin.elapsed_time(end))", "steps later"),
        (
            "if torch.cuda.is_available():\n    torch.cuda.synchronize()\nend = time.time()",
            "clock",
        ),
    ],
)
def test_wait(after: str, says: str) -> None:
    (message,) = messages("DDP103", loop("", after))
    assert says in message
    assert ("remove it" in message) == (says == "remove it")


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ("print(y.cuda().sum().item())", "read it every N steps"),
        ("mask = torch.arange(0, y.cuda().max().item())", "`torch.arange` needs it there"),
        ("longest = int(y.cuda().max().item())\nx = x[:, :longest]", "`x[:, :longest]` needs it"),
        ("packed = nn.utils.rnn.pack_padded_sequence(x, y.cuda().cpu())", "on the host"),
        ("n = int(y.cuda()[0].item() / 2)\nat = np.random.randint(0, n)", "before that is moved"),
        ("n = model(x.cuda()).argmax().item()\npart = x[:, :n]", "`x[:, :n]` needs it there"),
        ("n = max(y.cuda().tolist())\nk = n // 2\npart = x.cuda()[:, :k]", "a slice needs it"),
        ("sizes = y.cuda().tolist()\nparts = x.split(sizes)", "`x.split` needs it there"),
    ],
)
def test_read(before: str, says: str) -> None:
    (message,) = messages("DDP101", loop(before, ""))
    assert says in message
    assert ("before that is moved" in message) == ("needs it" in message and "model" not in before)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("w = model(x.cuda()).mean().item()", "print(w)", "read it every N steps"),
        ("w = model(x.cuda()).mean().item()", "keep = [w]", "read it every N steps"),
        ("w = x.cuda().mean().item()\ngovernor.turn(w)", "", "for the device each time"),
        ("w = model(x.cuda()).mean().item()", "meter.turn(w)", "read it every N steps"),
        ("loss.extra = y.cuda().max().item()", "", "read it every N steps"),
        ("w = float(x.cuda().mean())\nx = x.cuda() * w", "", "leave the tensor (`.detach()`)"),
        ("x = x.cuda() / max(x.cuda().norm().item(), 1)", "", "with `clamp` for `min` and `max`"),
        ("x = x.cuda().mul(2).cpu()\nx = x + 1", "", "compute on the device"),
        ("if x.cuda().mean().item() > 0:\n    x = -x", "", "decide on the device (`torch.where`"),
        ("x = -x if x.cuda().mean().item() > 0 else x", "", "decide on the device (`torch.where`"),
        (
            "import math\nif not math.isfinite(x.cuda().sum().item()):\n    continue",
            "",
            "for each gradient",
        ),
    ],
)
def test_read_for_the_step(before: str, after: str, says: str) -> None:
    (message,) = messages("DDP101", loop(before, after))
    assert says in message
    assert ("every N steps" in message) == (says == "read it every N steps")


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("", "if loss > 3:\n    print('high')", "or check every N steps"),
        ("", "if torch.isnan(loss):\n    raise ValueError", "or check every N steps"),
        ("x = x.cuda()\nif x.mean() > 0:\n    x = -x", "", "(`torch.where`, `clamp`)"),
        ("if not torch.isfinite(x.cuda().sum()):\n    continue", "", "for each gradient"),
    ],
)
def test_branch(before: str, after: str, says: str) -> None:
    (message,) = messages("DDP102", loop(before, after))
    assert says in message
    assert ("every N steps" in message) == ("every N steps" in says)


SCALED = """
class Scaled(nn.Module):
    scale = 1.0

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 3)

    def forward(self, x):
        return self.net(x / self.scale)

model = {wrapped}
for x, y in loader:
    x = x.cuda()
    {holder}.scale = x.std(dim=-1).mean().item()
    history = [{holder}.scale]
"""


@pytest.mark.parametrize(
    ("wrapped", "holder", "says"),
    [
        ("Scaled().cuda()", "model", "leave the tensor (`.detach()`) in its place"),
        ("nn.DataParallel(Scaled().cuda())", "model.module", "for the device each time"),
        ("load('model').cuda()", "model.inner", "for the device each time"),
    ],
)
def test_what_the_model_is_told(wrapped: str, holder: str, says: str) -> None:
    text = SCALED.format(wrapped=wrapped, holder=holder)
    (message,) = messages("DDP101", text + indent(STEP, "    "))
    assert message.endswith(says)


COUNTER = """
class Runner(nn.Module):
    def __init__(self, begun):
        super().__init__()
        self.begun = begun
        self.count = torch.zeros((), device="cuda")

    def run(self):
        seen = torch.tensor(0, device="cuda")
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += 1
            {use}
            self.count.add_({number})

Runner(3).run()
"""


@pytest.mark.parametrize(
    ("code", "use", "number", "counts"),
    [
        ("DDP101", "print(int(self.count.item()))", "1", True),
        ("DDP101", "print(int(self.count.item()))", "(x.cuda() > 0).sum()", False),
        ("DDP101", "print(seen.item())", "1", True),
        ("DDP102", "if self.count > 100: print('long')", "1", True),
        ("DDP102", "if loss > 100: print('high')", "1", False),
    ],
)
def test_a_counter(code: str, use: str, number: str, counts: bool) -> None:
    (message,) = messages(code, COUNTER.format(use=use, number=number))
    assert ("count in a Python number" in message) == counts
    assert ("every N steps" in message) != counts


def test_feedback_into_the_next_step() -> None:
    text = """
        weight = 0.0
        for x, y in loader:
            good = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
            bad = model(-x.cuda()).abs().mean()
            loss = good - weight * bad
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            weight = weight + 0.001 * (good - bad).item()
            weight = min(max(weight, 0), 1)
        """
    (message,) = messages("DDP101", text)
    assert message.endswith("in its place, with `clamp` for `min` and `max`")


def test_backward_under_autocast() -> None:
    inner = indent(f"with torch.autocast('cuda'):{indent(STEP, '    ')}", "    ")
    (message,) = messages("DDP207", f"for x, y in loader:\n{inner}")
    assert message.endswith("dedent it")
    outer = indent(f"for x, y in loader:{indent(STEP, '    ')}", "    ")
    (message,) = messages("DDP207", f"with torch.autocast('cuda'):\n{outer}")
    assert message.endswith("let the region hold the forward pass alone")


@pytest.mark.parametrize("contexts", ["torch.autocast('cuda'), {}", "{}, torch.autocast('cuda')"])
def test_backward_under_autocast_and_what_has_to_stay(contexts: str) -> None:
    held = "torch.profiler.record_function('step')"
    inner = indent(f"with {contexts.format(held)}:{indent(STEP, '    ')}", "    ")
    (message,) = messages("DDP207", f"for x, y in loader:\n{inner}")
    assert message.endswith(f"a `with` of its own around the forward pass, inside `{held}`")


def test_old_names_of_one_import() -> None:
    text = "from torch.cuda.amp import GradScaler, autocast\nGradScaler()\n"
    (message,) = messages("DDP211", text)
    assert "`torch.cuda.amp.GradScaler` and `autocast` are deprecated" in message
    assert message.endswith("which PyTorch has since 2.3")


@pytest.mark.parametrize(
    ("use", "says"),
    [
        ("region = cuda_amp.autocast", '`functools.partial(torch.amp.autocast, "cuda")`'),
        ("region = cuda_amp.autocast()", '`torch.amp.autocast("cuda", ...)`'),
        (
            "class Mine(cuda_amp.GradScaler):\n    pass",
            '`torch.amp.GradScaler, whose constructor takes "cuda" first`',
        ),
    ],
)
def test_an_old_name_as_it_is_used(use: str, says: str) -> None:
    (message,) = messages("DDP211", f"import torch.cuda.amp as cuda_amp\n{use}\n")
    assert says in message


def test_the_namespace_is_younger_than_its_autocast() -> None:
    """`torch.autocast` is there since 1.10, `torch.amp` since 1.12."""
    (message,) = messages("DDP211", "with torch.cuda.amp.autocast():\n    pass\n")
    assert message.endswith("which PyTorch has since 1.12")


def test_the_training_loader_is_named() -> None:
    text = """
def move(x):
    return x.to("cuda")

tests = DataLoader(data, batch_size=8, pin_memory=True)
train = DataLoader(data, batch_size=8, shuffle=True, pin_memory=True, num_workers=4)
with torch.no_grad():
    for x, y in tests:
        print(model(move(x)))
"""
    (message,) = messages("DDP105", text + loop("x = move(x)", "").replace("loader", "train"))
    assert message.startswith("`train` pins")


def test_whoever_spawns_is_no_rank() -> None:
    text = """
import torch.distributed as dist
import torch.multiprocessing as mp

def work(index):
    dist.init_process_group("gloo", "tcp://localhost:29500", world_size=2, rank=index)
    for x, y in loader:
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        print("a step")
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, nprocs=2)
"""
    project = markers.project_of_text(START + text)
    (finding,) = (one for one in markers.findings(project) if one.code == "DDP509")
    assert [one.message for one in finding.related] == ["`mp.spawn()` starts the ranks here"]


def test_a_number_that_the_step_needs_is_none_to_read_later() -> None:
    case = Path(__file__).parents[1] / "cases/host_sync_in_step/sizes_by_chance.py"
    project = markers.project_of_text(case.read_text())
    found = [one.message for one in markers.findings(project) if one.code == "DDP101"]
    assert len(found) == 4
    assert not [message for message in found if "every N steps" in message]
