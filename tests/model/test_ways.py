"""The ways through one iteration: what happens on each, in which order, on whose behalf."""

from __future__ import annotations

import pytest

from ddp_lint.model import Program
from tests.model.programs import program_of

HEAD = """\
import torch
from torch import nn

net = nn.Linear(2, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")


def use(amp, batches, update=True, count=0):
"""


def ways(program: Program) -> list[str]:
    """The kinds of what happens on each way of the one loop that steps."""
    (update,) = program.training.updates
    return sorted(" ".join(event.move.kind for event in way.events) for way in update.ways)


def body(*lines: str) -> str:
    return HEAD + "    for batch in batches:\n" + "\n".join(f"        {line}" for line in lines)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ["net(batch).backward()", "optimizer.step()", "optimizer.zero_grad()"],
            ["backward step clear"],
            id="straight",
        ),
        pytest.param(
            [
                "loss = net(batch)",
                "if amp: scaler.scale(loss).backward()",
                "else: loss.backward()",
                "if amp: scaler.step(optimizer); scaler.update()",
                "else: optimizer.step()",
            ],
            ["backward step", "backward step update"],
            id="one switch decides twice",
        ),
        pytest.param(
            [
                "if amp is not None: net(batch).backward()",
                "if amp is None: optimizer.zero_grad()",
                "optimizer.step()",
            ],
            ["backward step", "clear step"],
            id="two spellings of one test",
        ),
        pytest.param(
            [
                "if count == 0: net(batch).backward()",
                "count = batch[0]",
                "if count == 0: optimizer.step()",
            ],
            ["", "backward", "backward step", "step"],
            id="what was decided is forgotten when it is assigned",
        ),
        pytest.param(
            [
                "net(batch).backward()",
                "if not update:",
                "    continue",
                "optimizer.step()",
            ],
            ["backward", "backward step"],
            id="an early end",
        ),
        pytest.param(
            [
                "net(batch).backward()",
                "if amp:",
                "    raise ValueError",
                "optimizer.step()",
            ],
            ["backward step"],
            id="a way that raises is none",
        ),
        pytest.param(
            ["for o in [optimizer]:", "    net(batch).backward()", "    o.step()"],
            [],
            id="the inner loop is the one that steps",
        ),
    ],
)
def test_ways(lines: list[str], expected: list[str]) -> None:
    program = program_of(body(*lines))
    if not expected:
        (update,) = program.training.updates
        assert update.node.lineno == HEAD.count("\n") + 2
    else:
        assert ways(program) == expected


METHODS = """\
import torch
from torch import nn


class Plain:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    def backward(self, loss):
        loss.backward()

    def step(self):
        self.optimizer.step()


class Scaled(Plain):
    def __init__(self, net, optimizer):
        super().__init__(net, optimizer)
        self.scaler = torch.amp.GradScaler("cuda")

    def backward(self, loss):
        self.scaler.scale(loss).backward()

    def step(self):
        self.scaler.step(self.optimizer)
        self.scaler.update()


def train(work, batches):
    for batch in batches:
        work.backward(work.net(batch))
        work.step()


net = nn.Linear(2, 2)
"""


def test_one_receiver_has_one_class() -> None:
    made = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    both = "train(Plain(net, optimizer), [])\ntrain(Scaled(net, optimizer), [])\n"
    assert ways(program_of(METHODS + made + both)) == ["backward step", "backward step update"]


def test_only_classes_that_the_program_makes() -> None:
    made = "optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
    made += "train(Plain(net, optimizer), [])"


def test_a_parameter_is_what_this_call_passes() -> None:
    text = """
    import torch
    from torch import nn

    net = nn.Linear(2, 2)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)


    def finish(loss, update):
        loss.backward()
        if update:
            optimizer.step()


    for index, batch in enumerate([]):
        finish(net(batch), True)
        finish(net(batch), False)
    """
    assert ways(program_of(text)) == ["backward step backward"]


def test_a_closure_is_run_by_the_step() -> None:
    text = """
    import torch
    from torch import nn

    net = nn.Linear(2, 2)
    optimizer = torch.optim.LBFGS(net.parameters())
    for batch in []:
        def closure():
            optimizer.zero_grad()
            loss = net(batch)
            loss.backward()
            return loss

        optimizer.step(closure)
    """
    assert ways(program_of(text)) == ["clear backward step"]


def test_methods_of_an_actor_are_entered() -> None:
    text = """
    import torch
    from torch import nn
    from cluster import this_host


    class Trainer:
        def __init__(self):
            self.net = nn.Linear(2, 2)
            self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

        def backward(self, batch):
            self.net(batch).backward()

        def step(self):
            self.optimizer.step()


    mesh = this_host().spawn_procs()
    trainer = mesh.spawn("trainer", Trainer)
    for batch in []:
        trainer.backward.call(batch)
        trainer.step.call()
    """
    assert ways(program_of(text)) == ["backward step"]
