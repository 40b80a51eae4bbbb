"""A loss is kept from step to step together with its autograd graph.

`total += loss` does not add a number. The sum is a tensor with a history, and the history
holds the graph of every step. How much that costs depends on what is left of the graph:

* Where `backward()` has run, it has freed what the forward pass saved, and the nodes of the
  graph stay, 8 per step in the proof: host memory and a slower and slower release, a note.
* Where nothing runs backward, as in an evaluation or for a value that is only logged, all
  activations stay: 5.8 MB per step in one measured run, 233 MB in 40 steps. Device memory runs
  out, an error.

Add `loss.detach()`: that is the value without the history, and reads nothing back.

Bad:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for images, labels in loader:
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss  # DDP601
print(total / len(loader))
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
total = 0.0
for images, labels in loader:
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.detach()
print(total / len(loader))
```

Cannot see: a container that is emptied elsewhere. Sums that are back-propagated, windows that
start over at each optimizer step, and what is kept at steps that are named one by one
(`if step == 0`), are left alone.

References:

* "Frequently asked questions: my model reports out of memory" in the PyTorch documentation
* NVIDIA/DeepLearningExamples, commit 4cb857b9; dmlc/dgl#5302
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP601", level="error", fixes="safe")
def check(program: Program) -> Findings:
    for kept in program.kept_graphs:
        stays = (
            "the nodes of every step's graph stay until it is let go"
            if kept.stays == "nodes"
            else "all activations of every step stay on the device until it is let go"
        )
        yield kept.finding(
            f"`{kept.holder_text}` keeps `{kept.value_text}` with its graph: {stays}; "
            f"add `.detach()`",
            related=kept.chain,
            fix=kept.fix,
            level=kept.level,
        )
