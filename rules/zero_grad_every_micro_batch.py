"""Gradients are cleared inside the window that is meant to accumulate them.

The step waits for N micro-batches, but `zero_grad()` runs at each of them: what the first N -
1 contributed is thrown away, and the step uses the last one alone: 83 % of the window's
gradient is missing in the proof. If the loss is divided by N as well, that one counts for 1/N.
The run is N times as expensive as it looks, with the noise of the small batch.

Clear where the window ends, right after the optimizer's step.

Bad:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (images, labels) in enumerate(loader, start=1):
    optimizer.zero_grad()  # DDP205
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)) / 4
    loss.backward()
    if step % 4 == 0:
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
for step, (images, labels) in enumerate(loader, start=1):
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)) / 4
    loss.backward()
    if step % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

References:

* pytorch/torchtitan#3575
* "Automatic mixed precision examples: gradient accumulation" in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP205", level="error")
def check(program: Program) -> Findings:
    for spot in program.cleared_within:
        yield spot.finding(
            f"`{spot.text}` runs at every micro-batch, `{spot.step_text}` once for "
            f"{spot.length_text} of them: only the last micro-batch counts; clear after the step",
            related=spot.chain,
        )
