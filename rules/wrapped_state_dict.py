"""The checkpoint holds the wrapper's parameters: every name begins with `module.`.

`DistributedDataParallel` and `DataParallel` keep the model as their attribute `module`, so their
`state_dict` says `module.0.weight`.  Such a file loads into a wrapper and nowhere else: a plain
model raises `RuntimeError` with two long lists of names (measured: 4 of 4 missing), and with
`strict=False` it loads none of them without a word.  Evaluation, export and every other program
that reads the file has to wrap or to strip the prefix.  Save `model.module.state_dict()`.

It is an error, not a warning, where the same program loads the file into a plain model.

Nothing is said where the program itself resumes from the file into a wrapper, or strips the
prefix as it loads.

Bad:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "last.pt")  # DDP403
dist.destroy_process_group()
```

Good:

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

local_rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(local_rank)
dist.init_process_group("nccl")
model = DistributedDataParallel(nn.Linear(64, 8).cuda(), device_ids=[local_rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device=local_rank)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "last.pt")
dist.destroy_process_group()
```

References:

* pytorch/pytorch#3805, NVIDIA/apex#647, Lightning-AI/pytorch-lightning#17996
* `torch.nn.modules.utils.consume_prefix_in_state_dict_if_present` removes the prefix from files
  that have it
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP403", level="warning", fixes="safe")
def check(program: Program) -> Findings:
    for state in program.wrapped_states:
        if state.is_resumed:
            continue
        text = state.wrapper_text
        message = (
            f"`{text}` is the wrapper here, so every name in the file begins with `module.`: "
            f"save `{text}.module{'' if state.is_whole else '.state_dict()'}`"
        )
        if state.failing_load is not None:
            message += f"; `{state.failing_load.text}` loads it into a plain model and fails"
        yield state.finding(message, related=state.places, fix=state.unwrapping, level=state.level)
