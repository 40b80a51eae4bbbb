"""What a loop draws from, with what between, and what each loader is told."""

from __future__ import annotations

import pytest

from ddp_lint.model import Program
from ddp_lint.model.tree import position
from tests.model.programs import program_of

HEAD = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from tqdm import tqdm

data = TensorDataset(torch.randn(8, 2))
net = nn.Linear(2, 2)
"""
STEP = "net(batch).sum().backward()"


def drawn(program: Program) -> list[tuple[str, bool, list[int]]]:
    """Each loader that a step loop draws from: its name, owned or not, lines of the loops."""
    return [
        (
            feed.loader.name,
            feed.draw.source.owned,
            [position(node)[0] - HEAD.count("\n") for node, _ in feed.draw.loops],
        )
        for feed in program.epochs.feeds
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            f"loader = DataLoader(data)\nfor _ in range(3):\n  for batch in loader:\n    {STEP}",
            [("loader", False, [2])],
            id="a loop in a loop",
        ),
        pytest.param(
            "loader = DataLoader(data)\n"
            f"for i, batch in enumerate(tqdm(loader, desc='epoch')):\n  {STEP}",
            [("loader", False, [])],
            id="a progress bar",
        ),
        pytest.param(
            "loader = DataLoader(data)\nfor _ in range(3):\n  batches = iter(loader)\n"
            f"  for _ in range(9):\n    batch = next(batches)\n    {STEP}",
            [("loader", False, [2])],
            id="next of an iterator",
        ),
        pytest.param(
            "def endless(it):\n  while True:\n    yield from it\n"
            f"loader = DataLoader(data)\nbatches = endless(loader)\nfor _ in range(9):\n"
            f"  batch = next(batches)\n  {STEP}",
            [("loader", False, [2])],
            id="an endless generator",
        ),
        pytest.param(
            "class Ahead:\n  def __init__(self, source):\n    self.source = source\n"
            "  def __iter__(self):\n    for batch in self.source:\n      yield batch\n"
            "loader = DataLoader(data)\nahead = Ahead(loader)\nfor _ in range(3):\n"
            f"  for batch in ahead:\n    {STEP}",
            [("loader", False, [9])],
            id="an object around it",
        ),
        pytest.param(
            "def make():\n  first = DataLoader(data)\n  return first, None\n"
            f"train, _ = make()\nfor batch in train:\n  {STEP}",
            [("first", False, [])],
            id="one of two that a function returns",
        ),
        pytest.param(
            "loaders = {}\nloaders['train'] = DataLoader(data)\n"
            f"for batch in loaders['train']:\n  {STEP}",
            [("DataLoader(...)", False, [])],
            id="from a dictionary",
        ),
        pytest.param(
            "from accelerate import Accelerator\nagent = Accelerator()\nplain = DataLoader(data)\n"
            f"model, loader = agent.prepare(net, plain)\nfor batch in loader:\n  {STEP}",
            [("plain", True, [])],
            id="prepared",
        ),
        pytest.param(
            "from somewhere import wrapped\nloader = DataLoader(data)\n"
            f"for batch in wrapped(loader):\n  {STEP}",
            [("loader", True, [])],
            id="behind something unknown",
        ),
        pytest.param(
            "loader = DataLoader(data)\n"
            f"for _ in range(len(loader)):\n  batch = data[0]\n  {STEP}",
            [],
            id="only its length",
        ),
    ],
)
def test_what_a_loop_draws_from(text: str, expected: list[tuple[str, bool, list[int]]]) -> None:
    assert drawn(program_of(HEAD + text)) == expected


@pytest.mark.parametrize(
    ("call", "given", "complete"),
    [
        ("DataLoader(data, 4, False, s)", ["s"], True),
        ("DataLoader(data, sampler=s)", ["s"], True),
        ("DataLoader(data, **{'sampler': s})", ["s"], True),
        ("DataLoader(data, **dict(sampler=s, num_workers=2))", ["s"], True),
        ("DataLoader(data, **{**first, 'batch_size': 2})", ["s"], True),
        ("DataLoader(data, **first)", ["s"], True),
        ("DataLoader(data, **updated)", ["s"], True),
        ("DataLoader(data, **sometimes)", ["s"], True),
        ("DataLoader(data, **unknown)", [], False),
        ("DataLoader(*everything)", [], False),
    ],
)
def test_arguments(call: str, given: list[str], complete: bool) -> None:
    program = program_of(
        HEAD + "from somewhere import unknown, everything, flag\ns = DistributedSampler(data)\n"
        "first = {}\nfirst['sampler'] = s\n"
        "updated = dict(batch_size=2)\nupdated.update({'sampler': s})\n"
        f"sometimes = {{}}\nif flag:\n  sometimes['sampler'] = s\nloader = {call}\n"
    )
    (loader,) = program.loading.loaders
    assert [node.as_string() for node in loader.sampler_nodes] == given
    assert loader.arguments.complete is complete
    assert loader.arguments.always("sampler") == (bool(given) and "sometimes" not in call)
    assert loader.arguments.absent("sampler") == (complete and not given)


@pytest.mark.parametrize(
    ("given", "workers"),
    [
        ("", 0),
        (", num_workers=3", 3),
        (", num_workers=min(8, os.cpu_count())", 8),
        (", num_workers=args.workers", 2),
        (", num_workers=args.threads", None),
        (", **kwargs", None),
    ],
)
def test_workers(given: str, workers: int | None) -> None:
    program = program_of(
        HEAD + "import argparse, os\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('-j', '--workers', type=int, default=2)\n"
        "parser.add_argument('--threads', type=int)\nargs = parser.parse_args()\n"
        f"loader = DataLoader(data{given})\n"
    )
    (loader,) = program.loading.loaders
    assert loader.workers == workers


def test_a_generator_that_yields_from_itself() -> None:
    program = program_of(
        HEAD + "def leaves(tree):\n  if isinstance(tree, list):\n    for one in tree:\n"
        "      yield from leaves(one)\n  else:\n    yield tree\n"
        f"for batch in leaves(DataLoader(data)):\n  {STEP}"
    )
    assert [name for name, _, _ in drawn(program)] == ["DataLoader(...)"]


def test_a_dataset_that_says_what_its_samples_are() -> None:
    program = program_of(
        HEAD + "from torch.utils.data import Dataset\nfrom PIL import Image\n"
        "class Photos(Dataset[torch.Tensor]):\n  def __getitem__(self, i):\n"
        f"    return Image.open(str(i))\nfor batch in DataLoader(Photos()):\n  {STEP}"
    )
    assert [decode.text for decode in program.samples.decodes] == ["Image.open(str(i))"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(
            "def run(loader, training):\n  for batch in loader:\n    out = net(batch).sum()\n"
            "    if training:\n      out.backward()\n"
            "train, val = DataLoader(data), DataLoader(data)\n"
            "run(train, training=True)\nrun(val, False)\n",
            ["train"],
            id="a flag says which call trains",
        ),
        pytest.param(
            "def run(loader, optimizer=None):\n  for batch in loader:\n"
            "    out = net(batch).sum()\n    if optimizer is not None:\n      out.backward()\n"
            "train, val = DataLoader(data), DataLoader(data)\n"
            "run(train, optimizer=torch.optim.SGD(net.parameters()))\nrun(val)\n",
            ["train"],
            id="so does an optimizer",
        ),
        pytest.param(
            f"def run(loader):\n  for batch in loader:\n    {STEP}\n"
            "train, val = DataLoader(data), DataLoader(data)\n"
            "run(train)\nwith torch.no_grad():\n  run(val)\n",
            ["train"],
            id="and a context",
        ),
        pytest.param(
            "class Ahead:\n  def __init__(self, loader):\n    self.loader = iter(loader)\n"
            "  def next(self):\n    return next(self.loader)\n"
            "train, val = DataLoader(data), DataLoader(data)\n"
            "def fit():\n  ahead = Ahead(train)\n  for _ in range(9):\n    batch = ahead.next()\n"
            f"    {STEP}\n"
            "def check():\n  ahead = Ahead(val)\n  net(ahead.next())\n"
            "fit()\ncheck()\n",
            ["train"],
            id="each object has its own iterator",
        ),
    ],
)
def test_which_of_several_loaders_trains(text: str, names: list[str]) -> None:
    assert [name for name, _, _ in drawn(program_of(HEAD + text))] == names


@pytest.mark.parametrize(
    "make",
    [
        "def make(dataset, sampler=None):\n  return DataLoader(dataset, sampler=sampler)\n",
        "def make(dataset, **options):\n  return DataLoader(dataset, **options)\n",
        "def make(dataset, sampler=None):\n  options = {}\n  if sampler:\n"
        "    options['sampler'] = sampler\n  return DataLoader(dataset, **options)\n",
    ],
)
def test_one_helper_makes_loaders_with_and_without_sampler(make: str) -> None:
    program = program_of(
        HEAD + make + "train = make(data, sampler=DistributedSampler(data))\nval = make(data)\n"
        f"for batch in train:\n  {STEP}\nfor batch in val:\n  {STEP}\n"
    )
    assert [len(feed.loader.samplers) for feed in program.epochs.feeds] == [1, 0]


def test_what_a_function_puts_into_its_own_keywords_stays_there() -> None:
    program = program_of(
        HEAD + "from settings import options\n"
        "def make(dataset, **given):\n  return DataLoader(dataset, **given)\n"
        "def sharded(dataset, **given):\n  given['sampler'] = DistributedSampler(dataset)\n"
        "  return make(dataset, **given)\n"
        "train, val = sharded(data, **options), make(data, **options)\n"
        f"for batch in train:\n  {STEP}\nfor batch in val:\n  {STEP}\n"
    )
    assert [len(feed.loader.samplers) for feed in program.epochs.feeds] == [1, 0]


def test_a_flag_of_the_caller_leaves_the_sampler_out() -> None:
    program = program_of(
        HEAD + "def make(dataset, distributed=False):\n  sampler = None\n  if distributed:\n"
        "    sampler = DistributedSampler(dataset)\n"
        "  return DataLoader(dataset, sampler=sampler)\n"
        "train, val = make(data, distributed=True), make(data)\n"
        f"for batch in train:\n  {STEP}\nfor batch in val:\n  {STEP}\n"
    )
    assert [len(feed.loader.samplers) for feed in program.epochs.feeds] == [1, 0]
