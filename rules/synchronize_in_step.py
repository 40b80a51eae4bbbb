"""Every training step waits for the device, or for the other ranks.

`torch.cuda.synchronize()` empties the queue of kernels that keeps the device busy while Python
prepares the next step. `dist.barrier()` adds a collective that carries nothing (one per step
in the proof, with the same parameters in the end): the gradient all-reduce already keeps the
ranks together. Both are mostly left over from timing or from debugging.

Correct results never need either of them in the step: reads synchronize by themselves, and
collectives are ordered. To time a step use CUDA events and read them some steps later (an
`elapsed_time()` of events that the device has not passed raises), or synchronize every N steps
and divide. A `monitored_barrier()`, or a barrier that is alone in a `try`, asks whether all ranks
still have data, and is not reported.

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
    torch.cuda.synchronize()  # DDP103
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

Good (timed every 100 steps):

```python
import time

import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
began = time.perf_counter()
for step, (images, labels) in enumerate(loader, start=1):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device)).backward()
    optimizer.step()
    if step % 100 == 0:
        torch.cuda.synchronize()
        print((time.perf_counter() - began) / step)
```

Cannot see: what an option is set to. A wait that the user switches on, to profile for
instance, is not reported.

References:

* ByteDance-Seed/VeOmni#938
* `torch.cuda.Event` in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP103", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for wait in program.waits:
        if not (wait.updates and wait.at_every_update) or wait.is_question:
            continue
        if wait.clock == "events":
            message = (
                "runs on every step, so that the events after it can be read: read their "
                "`elapsed_time()` some steps later, when the device has long passed them"
            )
        elif wait.clock == "host":
            message = (
                "runs on every step for the clock after it: the device idles until Python has "
                "queued the next one; read the clock every N steps and divide, or record "
                "`torch.cuda.Event`s"
            )
        else:
            message = (
                "runs on every step: the device idles until Python has queued the next one; "
                "remove it"
            )
        yield wait.finding(f"`{wait.text}` {message}", related=wait.chain, fix=wait.removal)
