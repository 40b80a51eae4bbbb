"""Python decides on the value of a device tensor on every training step.

`if torch.isnan(loss)`, `assert loss < limit` and `math.isfinite(loss)` have to know the value.
Python cannot take either branch before the device has computed it, so the host waits as it
does for `.item()`: one read per step in the proof, none when the device decides.

A loss that is not finite is better caught every N steps, where it still stops the run early
enough. Where it would only be skipped, that lets it into the weights: the device has to set the
gradients to zero. `torch.where` on the loss does not do it, as zero times a NaN in the activations
is a NaN. Asked of the norm of the gradients, which is the same on all ranks, it does. With a
GradScaler neither is needed, it skips steps with gradients that are not finite.

Bad:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    if torch.isnan(loss):  # DDP102
        raise RuntimeError("the loss is not a number")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Good (asked now and then):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, (images, labels) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    if step % 100 == 0 and torch.isnan(loss):
        raise RuntimeError("the loss is not a number")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Good (decided on the device):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for parameter in model.parameters():
        parameter.grad = torch.where(torch.isfinite(norm), parameter.grad, 0.0)
    optimizer.step()
```

Cannot see: a value that was copied to the host earlier without waiting and is looked at one
step later, as asynchronous loggers do.

References:

* pytorch/pytorch#44103
* `torch.cuda.set_sync_debug_mode` in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule

#: What helps, by what the step needs the decision for.
_REMEDIES = {
    "update": "whether the weights are updated hangs on it: decide on the device (`torch.where` "
    "for each gradient)",
    "count": "it asks what only counts: count in a Python number",
    "unsure": "decide on the device where that can be",
    "look": "decide on the device, or check every N steps",
}


@rule("DDP102", level="warning")
def check(program: Program) -> Findings:
    for branch in program.branches:
        remedy = _REMEDIES.get(
            "count" if branch.counts else branch.need,
            "the step is computed by it: decide on the device (`torch.where`, `clamp`)",
        )
        yield branch.finding(
            f"`{branch.test_text}` is decided in Python on every step, so the host waits for the "
            f"device each time; {remedy}",
            related=branch.chain,
        )
