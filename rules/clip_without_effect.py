"""Gradients are clipped before there are any, or after they have been used.

Before `backward()` the gradients of this step are not there: cleared ones are clipped, and the
ones that the backward pass then computes go to the optimizer unlimited. After
`optimizer.step()` they have been used, and `zero_grad()` throws the clipped ones away. Either
way the run trains without clipping while its configuration says otherwise; in the proof a
gradient of 11.6 times the limit reaches the optimizer.

The order is backward, (unscale,) clip, step.

Bad (after the step):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
    optimizer.step()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # DDP210
```

Bad (before the backward pass):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # DDP210
    loss.backward()
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
for images, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
```

References:

* `torch.nn.utils.clip_grad_norm_` in the PyTorch documentation
* pytorch/vision, `references/classification/train.py` at commit 017e9b99
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP210", level="error")
def check(program: Program) -> Findings:
    for clip in program.useless_clips:
        says = (
            f"`{clip.name}` runs before `{clip.other_text}` has made any gradients"
            if clip.when == "before the backward"
            else f"`{clip.name}` runs after `{clip.other_text}` has used the gradients"
        )
        yield clip.finding(
            f"{says}: the run trains unclipped; clip between the backward and the step",
            related=clip.chain,
        )
