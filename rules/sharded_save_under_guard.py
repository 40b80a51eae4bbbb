"""A save in which all ranks take part is called on one rank only: it waits for the others forever.

Where parameters or optimizer state are sharded, no rank has the whole checkpoint.  FSDP's
`state_dict` gathers it from all ranks, `torch.distributed.checkpoint.save` and DeepSpeed's
`save_checkpoint` have each rank write its part, and `accelerator.save_state` does one of these
under FSDP and DeepSpeed.  Under `if rank == 0:` the first all-gather waits for ranks that went
on to the next step: the job hangs until the process group's timeout (10 or 30 minutes by
default), or takes their next gradients for parameters.

Call it on all ranks, and put only what is really one rank's work under the guard: writing the
full state dict to a file, deleting old checkpoints, logging.

Bad (FSDP):

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = FullyShardedDataParallel(nn.Linear(64, 8).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
if dist.get_rank() == 0:
    torch.save(model.state_dict(), "last.pt")  # DDP407
dist.destroy_process_group()
```

Bad (Accelerate):

```python
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
model = nn.Linear(64, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
for step in range(1000):
    loss = model(torch.randn(32, 64, device=accelerator.device)).square().mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    if accelerator.is_main_process and step % 100 == 0:
        accelerator.save_state("checkpoint")  # DDP407
```

Good (FSDP: gathered on all ranks, written by one):

```python
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
model = FullyShardedDataParallel(nn.Linear(64, 8).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    loss = model(torch.randn(32, 64, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
options = StateDictOptions(full_state_dict=True, cpu_offload=True)
weights = get_model_state_dict(model, options=options)
if dist.get_rank() == 0:
    torch.save(weights, "last.pt")
dist.destroy_process_group()
```

Good (Accelerate):

```python
import torch
from accelerate import Accelerator
from torch import nn

accelerator = Accelerator()
model = nn.Linear(64, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = accelerator.prepare(model, optimizer)
for step in range(1000):
    loss = model(torch.randn(32, 64, device=accelerator.device)).square().mean()
    optimizer.zero_grad()
    accelerator.backward(loss)
    optimizer.step()
    if step % 100 == 0:
        accelerator.save_state("checkpoint")
```

Cannot see: which plug-in `accelerate config` chose.  Under plain DDP a guarded `save_state`
works, until the day somebody switches to FSDP; so it is a warning where the program itself names
no plug-in.  A plug-in that the program refuses (`assert accelerator.distributed_type != ...`) is
not spoken of.

References:

* huggingface/accelerate#2000, huggingface/accelerate#1171, huggingface/diffusers#2606
* `torch.distributed.checkpoint` in the PyTorch documentation
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP407", level="error", fixes="unsafe")
def check(program: Program) -> Findings:
    for save in program.sharded_saves:
        yield save.finding(
            f"`{save.text}` needs all ranks, and only those where `{save.test_text}` get here: "
            f"{save.consequence}",
            related=save.guards,
            fix=save.releasing,
            level=save.level,
        )
