"""Gradients are clipped while they still carry the scale of the GradScaler.

`scaler.scale(loss).backward()` leaves gradients that are larger by the scale, 65536 at first.
Clipping those to a norm of 1 cuts every step, and `scaler.step` then divides by the scale: the
update is clipped to 1/65536 of what was meant. Measured against the same run in full
precision, an update of SGD is 1.5e-05 of the right one, the returned norm 87,942 where 1.34 is
true. AdamW hides it, since it normalises its updates (0.975 of the right one), but all steps
are clipped instead of none, so the limit no longer means anything.

Call `scaler.unscale_(optimizer)` after the backward pass and before the clip. `scaler.step`
knows that and does not unscale again, and the check for overflow still works.

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
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # DDP201
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
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
```

Cannot see: an optimizer of another library that unscales in its own `clip_grad_norm`; such
calls are left alone.

References:

* "Automatic mixed precision examples: gradient clipping" in the PyTorch documentation
* pytorch/examples#1196, milesial/Pytorch-UNet#470, Lightning-AI/pytorch-lightning#9330
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP201", level="error", fixes="safe")
def check(program: Program) -> Findings:
    for clip in program.clips_of_scaled:
        yield clip.finding(
            f"`{clip.name}` cuts gradients that are still scaled, 65536 times too large at first: "
            f"every update shrinks with them; {clip.remedy}",
            related=clip.chain,
            fix=clip.fix,
        )
