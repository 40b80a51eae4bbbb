"""Every training step gives the cached device memory back.

PyTorch keeps freed blocks and hands them to the next step. `torch.cuda.empty_cache()` returns
them to the driver, and a step that needs them again asks the driver anew: freeing waits for
the device, and allocating from the driver takes far longer than from the cache. No tensor
becomes available by it that was not available before; a run that is out of memory stays so.

It has its place where the pattern of use changes for long: after an out-of-memory error,
before an evaluation with other shapes, between phases of a run. Against fragmentation within
training `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` is the better remedy.

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
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
    optimizer.step()
    torch.cuda.empty_cache()  # DDP104
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

Good (after an out-of-memory error):

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
    try:
        torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        continue
    optimizer.step()
```

References:

* `torch.cuda.empty_cache` and "CUDA semantics: memory management" in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP104", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for clear in program.cache_clears:
        if clear.updates and clear.at_every_update:
            yield clear.finding(
                f"`{clear.text}` runs on every step: it waits for the device, and the next step "
                "asks the driver for the same memory again; remove it",
                related=clear.chain,
                fix=clear.removal,
            )
