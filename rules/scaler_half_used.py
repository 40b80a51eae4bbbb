"""A GradScaler is used for one half of the step and not for the other.

Scale, backward, step, update belong together. What happens otherwise:

* Scaled gradients and a plain `optimizer.step()`: silent. The update is as many times too
  large as the scale says, 65,536 times in the proof.
* `scaler.step(optimizer)` without `scaler.update()`: raises at the second step.
* An unscaled `loss.backward()` and `scaler.step(optimizer)`: raises at the first step.
* `scaler.update()` between the steps of two optimizers whose gradients come from one backward:
  the second is unscaled by a scale that may have moved; with one overflow the first optimizer
  is skipped and the second steps.

Bad:

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
    optimizer.step()  # DDP206
```

Bad (never updated):

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
    scaler.step(optimizer)  # DDP206
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

References:

* "Automatic mixed precision examples" in the PyTorch documentation
* neosr-project/neosr#9
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP206", level="error", fixes="unsafe")
def check(program: Program) -> Findings:
    for use in program.half_uses:
        scaler = use.scaler_text
        says = {
            "plain step": f"`{use.text}` takes gradients that are still scaled: the update is as "
            f"many times too large as the scale, 65536 at first; use `{scaler}.step` and "
            f"`{scaler}.update()`",
            "steps twice": f"`{use.text}` repeats the update that `{scaler}.step` has made, also "
            "where that was skipped; remove it",
            "no update": f"`{use.text}` is never followed by `{scaler}.update()`: the second step "
            "raises RuntimeError, and the scale never changes",
            "never scaled": f"`{use.text}` propagates a loss that `{scaler}` has not scaled: "
            f"`{scaler}.step` raises AssertionError; use `{scaler}.scale(loss).backward()`",
            "update between": f"`{use.text}` is the second update after one backward: the step "
            "before it unscaled by a scale that may have moved; update once, after all steps",
        }
        yield use.finding(says[use.half], related=use.chain, fix=use.fix)
