"""Gradients are summed over several micro-batches and never averaged.

A loss is a mean over its micro-batch. N backward passes without a division add N such means,
so the gradient is N times that of one large batch, exactly 4 times in the proof with four of
them. SGD then learns with N times the learning rate, a clipping limit cuts N times as hard,
and changing the number of micro-batches, which should change nothing but memory, changes the
training. AdamW hides most of it until clipping or its epsilon come in.

Divide the loss by the number of micro-batches before `backward()`. Where samples are weighted
by tokens, sum first and divide the gradients once, before the step.

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
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    loss.backward()  # DDP203
    if step % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
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
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    (loss / 4).backward()
    if step % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
```

Cannot see: a learning rate that was tuned for the sum. If that is so, say it with a `noqa`.

References:

* "Automatic mixed precision examples: gradient accumulation" in the PyTorch documentation
* karpathy/nanoGPT, commit 553f949f
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP203", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for loss in program.unaveraged:
        yield loss.finding(
            f"`{loss.loss_text}` is added up over {loss.length_text} micro-batches and never "
            "divided: the gradient is that many times too large; divide it before the backward",
            related=loss.chain,
            fix=loss.fix,
        )
