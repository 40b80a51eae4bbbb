"""Gradients are unscaled or clipped at every micro-batch of an accumulation window.

`unscale_` is allowed once per optimizer step. In a loop that steps every N micro-batches and
unscales at each of them, the second call raises `RuntimeError: unscale_() has already been
called on this optimizer since the last update()`: loud, but only in the runs that accumulate.

Clipping at every micro-batch without a scaler is silent. It cuts the partial sum again and
again, so early micro-batches lose weight against late ones and the sum is no longer the
gradient of the window. Under Accelerate `clip_grad_norm_` unscales as well: ask
`accelerator.sync_gradients` first.

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
for step, (images, labels) in enumerate(loader, start=1):
    with torch.amp.autocast("cuda"):
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)) / 4
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)  # DDP202
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if step % 4 == 0:
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
```

Bad (without a scaler):

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
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # DDP202
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
scaler = torch.amp.GradScaler("cuda")
for step, (images, labels) in enumerate(loader, start=1):
    with torch.amp.autocast("cuda"):
        loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)) / 4
    scaler.scale(loss).backward()
    if step % 4 == 0:
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
```

References:

* "Automatic mixed precision examples: gradient accumulation" in the PyTorch documentation
* huggingface/accelerate#641, huggingface/diffusers#686 and #721
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP202", level="error")
def check(program: Program) -> Findings:
    for spot in program.unscaled_within:
        waits = f"at every micro-batch, `{spot.step_text}` once for {spot.length_text} of them"
        yield spot.finding(
            f"`{spot.text}` runs {waits}: the second call raises RuntimeError; "
            "unscale only where the step is made"
            if spot.is_unscale
            else f"`{spot.name}` clips {waits}: it cuts partial sums, not the gradient of the "
            "window; clip only where the step is made",
            related=spot.chain,
        )
