"""The guard tests the function, not its answer: it is true on every rank.

A function is never false.  `if is_main_process:` lets every rank through, and `if not
is_main_process:` lets none through: all ranks write the checkpoint, or none waits.  Nothing
warns, and with one process it looks right.  The parentheses are missing.

Bad:

```python
import os

import torch
import torch.distributed as dist
from torch import nn


def is_main_process():
    return dist.get_rank() == 0


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = nn.Linear(64, 8).cuda()
if is_main_process:  # DDP406
    torch.save(model.state_dict(), "initial.pt")
dist.destroy_process_group()
```

Good:

```python
import os

import torch
import torch.distributed as dist
from torch import nn


def is_main_process():
    return dist.get_rank() == 0


torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = nn.Linear(64, 8).cuda()
if is_main_process():
    torch.save(model.state_dict(), "initial.pt")
dist.destroy_process_group()
```

References:

* "Truth value testing" in the Python documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP406", level="error", fixes="safe")
def check(program: Program) -> Findings:
    for test in program.uncalled_tests:
        yield test.finding(
            f"`{test.name}` is a function, and a function is always true: every rank gets the "
            f"same answer here; call it, `{test.name}()`",
            fix=test.calling,
        )
