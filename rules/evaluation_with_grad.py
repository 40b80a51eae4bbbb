"""An evaluation loop records the autograd graph of every forward pass.

`model.eval()` switches dropout and batch statistics, and nothing else. Without
`torch.no_grad()` or `torch.inference_mode()` each forward pass saves its activations for a
backward pass that never comes: 12,800 bytes per batch for the two small layers of the proof,
as much as training needs for a large model. The evaluation is then what sets the largest batch
that fits, and takes longer than it has to.

Bad:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)


def evaluate(model, loader):
    model.eval()
    correct = torch.zeros((), device=device)
    for images, labels in loader:  # DDP602
        correct += (model(images.to(device)).argmax(1) == labels.to(device)).sum()
    model.train()
    return correct.item()


print(evaluate(model, loader))
```

Good:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    correct = torch.zeros((), device=device)
    for images, labels in loader:
        correct += (model(images.to(device)).argmax(1) == labels.to(device)).sum()
    model.train()
    return correct.item()


print(evaluate(model, loader))
```

Cannot see: a context that is handed in from outside; the rule is silent then, and also where
the graph is used, as by adversarial attacks.

References:

* "Autograd mechanics: locally disabling gradient computation" in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP602", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for loop in program.recording_evaluations:
        yield loop.finding(
            f"every `{loop.forward_text}` of this evaluation records a graph that nobody uses: "
            "memory as in training; wrap it in `torch.no_grad()`",
            related=loop.chain,
            fix=loop.fix,
        )
