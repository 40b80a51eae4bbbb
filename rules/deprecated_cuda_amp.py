"""Mixed precision is imported from `torch.cuda.amp`, which PyTorch has moved to `torch.amp`.

`torch.cuda.amp.autocast`, `GradScaler`, `custom_fwd` and `custom_bwd` (and their
`torch.cpu.amp` twins) raise a `FutureWarning` since PyTorch 2.4 and will go. The names in
`torch.amp` take the kind of device as their first argument and work for all of them:
`autocast` since PyTorch 1.12, `GradScaler` since 2.3, `custom_fwd` and `custom_bwd` since 2.4.
So `--fix` writes the new `autocast`, and the others only with `--unsafe-fixes`.

Bad:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.cuda.amp.GradScaler()  # DDP211
for images, labels in loader:
    optimizer.zero_grad()
    with torch.cuda.amp.autocast():  # DDP211
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
```

Good:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cuda")
for images, labels in loader:
    optimizer.zero_grad()
    with torch.amp.autocast("cuda"):
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
```

A project whose requirements end before PyTorch 2.4 (`torch==1.7.0` in requirements*.txt,
environment*.yml, setup.py, setup.cfg or pyproject.toml, next to the file or above it) is left
alone: nothing warns there, and the new names may be missing.  One that begins before the new name
(`torch>=1.7`) gets no fix: whoever installs it today has the warning, and whoever has 1.7 needs
the old name.

Cannot see: the oldest PyTorch that a project supports, where it does not say so. An import that
is only the way out when the new name is missing is left alone, and so is a program that imports
`torch._six`, which needs an older PyTorch.

References:

* "Automatic mixed precision package" in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP211", level="note", fixes="unsafe")
def check(program: Program) -> Findings:
    for name in program.old_names:
        says = "is deprecated and warns" if len(name.names) == 1 else "are deprecated and warn"
        older = (
            f" (`{name.allowing_older}` allows older ones: choose by version, or raise it)"
            if name.allowing_older
            else ""
        )
        yield name.finding(
            f"{name.old} {says} since PyTorch 2.4: use {name.new}, which PyTorch has since "
            f"{name.since}{older}",
            fix=name.fix,
        )
