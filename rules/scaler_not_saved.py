"""A checkpoint to resume from holds model and optimizer, but not the GradScaler.

The scale is found by trying: it is halved at every overflow and doubled after a long time
without one. A run that resumes without it starts over at the initial scale. Until that has
come down, each step overflows and is skipped: all of the first 10 steps after the resume in
the proof (whose initial scale is 2**30), none with the state restored. Skipped steps are
silent, while the schedule goes on.

Save `scaler.state_dict()` beside the others and load it with them.

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
for _ in range(10):
    for images, labels in loader:
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    torch.save(state, "last.pt")  # DDP212
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
for _ in range(10):
    for images, labels in loader:
        optimizer.zero_grad()
        with torch.amp.autocast("cuda"):
            loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    state = {
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scaler": scaler.state_dict(),
    }
    torch.save(state, "last.pt")
```

Cannot see: a checkpoint that nobody means to resume from. One that holds no optimizer, or is
written once behind all loops while nothing loads an optimizer's state, is taken for a result and
left alone.

References:

* "Automatic mixed precision recipe: saving and resuming" in the PyTorch tutorials
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP212", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for save in program.lost_scalers:
        yield save.finding(
            f"this checkpoint has no `{save.scaler_text}.state_dict()`: a resumed run starts at "
            "the initial scale and skips steps until it has come down; save and load it",
            related=save.chain,
            fix=save.fix,
        )
