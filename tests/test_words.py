"""The names of a project's own helpers in its settings change what is said about it."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from ddp_lint.api import lint

HEAD = """
    import os
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn.parallel import DistributedDataParallel
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
    from helpers import *

    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
    model = DistributedDataParallel(nn.Linear(32, 10).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
LOADER = """
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=64, sampler=sampler, num_workers=4)
"""
STEP = """
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(model(inputs.cuda()), labels.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
EPOCHS = """
    for epoch in range(3):
        sampler.set_epoch(epoch)
"""
END = """
    dist.destroy_process_group()
"""


def codes(folder: Path, main: str, helpers: str, settings: str = "") -> set[str]:
    """The rules that speak of ``main.py`` and of ``helpers.py``, all of which it imports."""
    for name, text in (("main.py", main), ("helpers.py", helpers)):
        (folder / name).write_text(dedent(text))
    (folder / "pyproject.toml").write_text(f"[tool.ddp-lint]\n{settings}\n")
    return {finding.code for finding in lint([folder])}


SAVING = HEAD + LOADER + EPOCHS + STEP


@pytest.mark.parametrize(
    ("helper", "guarded"),
    [
        ("import launcher\ndef may_write():\n  return launcher.ask()\n", "if may_write():"),
        ("import launcher\nmay_write = launcher.ask()\n", "if may_write:"),
        ("import launcher\njob = launcher.Job()\n", "if job.may_write:"),
    ],
)
def test_guards(folder: Path, helper: str, guarded: str) -> None:
    """Nothing in the text says on which ranks they are true; without the word they may be on
    all, and a collective behind them may be reached by all."""
    main = SAVING + f"        {guarded}\n            dist.all_reduce(loss)\n" + END
    assert "DDP501" not in codes(folder, main, helper)
    assert "DDP501" in codes(folder, main, helper, 'guards = ["may_write"]')
    assert "DDP501" in codes(folder, main, helper, 'guards = ["helpers.may_write"]')
    assert "DDP501" not in codes(folder, main, helper, 'guards = ["may_read"]')


def test_guards_that_decorate(folder: Path) -> None:
    helper = """
        import torch
        from launcher import chosen

        @chosen
        def save(model, path):
            torch.distributed.barrier()
            torch.save(model.module.state_dict(), path)
    """
    main = SAVING + "        save(model, 'last.pt')\n" + END
    assert "DDP501" not in codes(folder, main, helper)
    assert "DDP501" in codes(folder, main, helper, 'guards = ["chosen"]')
    assert "DDP401" in codes(folder, main, helper.replace("@chosen", ""))
    assert "DDP401" not in codes(folder, main, helper, 'guards = ["chosen"]')


def test_guards_that_are_tested_uncalled(folder: Path) -> None:
    helper = "import launcher\ndef may_write():\n  return launcher.ask()\n"
    main = SAVING + "        if may_write:\n            print('done')\n" + END
    assert "DDP406" not in codes(folder, main, helper)
    assert "DDP406" in codes(folder, main, helper, 'guards = ["may_write"]')


SHARDED = """
        class Shards(torch.utils.data.Sampler):
            def __init__(self, data, shuffle=True):
                self.data, self.shuffle, self.epoch = data, shuffle, 0

            def set_epoch(self, epoch):
                self.epoch = epoch

            def __iter__(self):
                return iter(shares.of_mine(self.data, self.shuffle, self.epoch))
"""


@pytest.mark.parametrize(
    ("made", "told", "speaks"),
    [
        ("Shards(data)", "", True),
        ("Shards(data, True)", "", True),
        ("Shards(data, shuffle=False)", "", False),
        ("Shards(data)", "sampler.set_epoch(epoch)", False),
        ("Shards(data)", "loader.sampler.set_epoch(epoch)", False),
    ],
)
def test_samplers_are_told_the_epoch(folder: Path, made: str, told: str, speaks: bool) -> None:
    loader = LOADER.replace("DistributedSampler(data)", made)
    main = HEAD + loader + EPOCHS.replace("sampler.set_epoch(epoch)", told) + STEP + END
    helper = "import torch\nimport shares\n" + dedent(SHARDED)
    assert "DDP301" not in codes(folder, main, helper)
    assert ("DDP301" in codes(folder, main, helper, 'samplers = ["Shards"]')) == speaks


def test_samplers_that_cannot_be_told(folder: Path) -> None:
    """Whose class is out of sight, or has no ``set_epoch``."""
    loader = LOADER.replace("DistributedSampler(data)", "Shards(data)")
    main = HEAD + loader + EPOCHS.replace("sampler.set_epoch(epoch)", "") + STEP + END
    own = "import torch\nimport shares\n" + dedent(SHARDED).replace("set_epoch", "begin")
    for helper in (own, "from shares import Shards"):
        assert "DDP301" not in codes(folder, main, helper, 'samplers = ["Shards"]')


def test_samplers_in_place_of_the_dataset(folder: Path) -> None:
    main = HEAD + "    loader = DataLoader(Mine(data), batch_size=64, shuffle=True)\n"
    main += EPOCHS.replace("sampler.set_epoch(epoch)", "") + STEP + END
    helper = """
        import shares
        from torch.utils.data import Dataset

        class Mine(Dataset):
            def __init__(self, data):
                self.data = shares.pick(data)

            def __getitem__(self, index):
                return self.data[index]

            def __len__(self):
                return len(self.data)
    """
    assert "DDP304" in codes(folder, main, helper)
    assert "DDP304" not in codes(folder, main, helper, 'samplers = ["Mine"]')


@pytest.mark.parametrize("name", ["say", "Voice", "voice"])
def test_loggers(folder: Path, name: str) -> None:
    helper = """
        import launcher

        class Voice:
            def say(self, text):
                if not launcher.is_quiet():
                    print(text)

        voice = Voice()
    """
    main = SAVING + "            voice.say(f'loss {epoch}')\n" + END
    selected = 'select = ["DDP509"]\n'
    assert codes(folder, main, helper, selected) == {"DDP509"}
    assert codes(folder, main, helper, f'{selected}loggers = ["{name}"]') == set()
    assert codes(folder, main, helper, f'{selected}loggers = ["other"]') == {"DDP509"}


def test_loggers_that_others_use_as_well(folder: Path) -> None:
    """The object is a logger; who prints without it is none."""
    helper = """
        class Voice:
            def say(self, text):
                print(text)

        voice = Voice()
    """
    said = "            voice.say(f'loss {epoch}')\n            Voice().say('again')\n"
    settings = 'select = ["DDP509"]\nloggers = ["voice"]'
    assert codes(folder, SAVING + said + END, helper, settings) == {"DDP509"}


SCALED = """
        import torch

        class Scaling:
            def __init__(self):
                self.scaler = torch.amp.GradScaler("cuda")

            def backward(self, loss):
                self.scaler.scale(loss).backward()

            def clip(self, model):
                torch.nn.utils.clip_grad_norm_(model.parameters(), self.limit())

            def step(self, optimizer):
                self.scaler.step(optimizer)
                self.scaler.update()

            def limit(self):
                return self.scaler.get_scale()
"""


def scaled_main(*, clear: str = "optimizer.zero_grad()") -> str:
    step = STEP.replace("optimizer.zero_grad()", clear).replace(
        "loss.backward()", "scaling.backward(loss)\n            scaling.clip(model)"
    )
    step = step.replace("optimizer.step()", "scaling.step(optimizer)")
    return HEAD + "    scaling = Scaling()\n" + LOADER + EPOCHS + step + END


def test_scaler_wrappers(folder: Path) -> None:
    """The limit that it clips to is scaled as well, which nobody can see."""
    assert "DDP201" in codes(folder, scaled_main(), SCALED)
    found = codes(folder, scaled_main(), SCALED, 'scaler-wrappers = ["Scaling"]')
    assert not {code for code in found if code.startswith("DDP2")}
    below = dedent(SCALED) + "\nclass Scaling16(Scaling):\n    pass\n"
    main = scaled_main().replace("Scaling()", "Scaling16()")
    assert "DDP201" not in codes(folder, main, below, 'scaler-wrappers = ["Scaling"]')


def test_scaler_wrappers_that_clear(folder: Path) -> None:
    """Nobody tells whether they do, so nothing is said."""
    main = scaled_main(clear="pass")
    assert "DDP204" in codes(folder, main, SCALED)
    assert "DDP204" not in codes(folder, main, SCALED, 'scaler-wrappers = ["Scaling"]')


@pytest.mark.parametrize("step", ["scaling(loss, optimizer)", "scaling.step(optimizer)"])
def test_scaler_wrappers_from_elsewhere(folder: Path, step: str) -> None:
    main = scaled_main(clear="pass").replace("scaling.step(optimizer)", step)
    helper = "from amp_tools import Scaling"
    found = codes(folder, main, helper, 'scaler-wrappers = ["amp_tools.Scaling"]')
    assert not {code for code in found if code.startswith("DDP2")}


def test_the_words_hold_for_one_file_too(folder: Path) -> None:
    helper = "import launcher\ndef may_write():\n  return launcher.ask()\n"
    main = SAVING + "        if may_write():\n            dist.all_reduce(loss)\n" + END
    assert "DDP501" in codes(folder, main, helper, 'guards = ["may_write"]')
    assert "DDP501" in {finding.code for finding in lint(folder / "main.py")}
    assert "DDP501" not in {finding.code for finding in lint(folder / "main.py", isolated=True)}
