"""The learning-rate schedule is stepped before the optimizer.

Since PyTorch 1.1 a scheduler sets the rate of the steps that *follow*. Stepped first, the
value that its constructor set is never used: a warm-up loses its first step, an epoch schedule
decays one epoch early. In the proof the first step runs at 0.05 where 0.1 was set. PyTorch
warns once, `Detected call of lr_scheduler.step() before optimizer.step()`, in a line that is
easily lost. With a GradScaler it also moves on when the scaler skips the step.

Schedules of one's own that set the rate of the coming step have to run first, and are left
alone.

Bad:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
for _ in range(90):
    schedule.step()  # DDP209
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
        optimizer.step()
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
schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30)
for _ in range(90):
    for images, labels in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
        optimizer.step()
    schedule.step()
```

Cannot see: what kind a scheduler is that is handed in from outside of the project; the rule is
silent then.

References:

* "How to adjust learning rate" on the page of `torch.optim` in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP209", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for schedule in program.early_schedules:
        yield schedule.finding(
            f"`{schedule.text}` runs before `{schedule.step_text}`: the first value of the "
            "schedule is skipped; advance it after the optimizer's step",
            related=schedule.chain,
            fix=schedule.fix,
        )
