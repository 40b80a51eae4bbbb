"""A value is read back from the device on every training step.

Kernels are queued: the host runs ahead and the device never waits for Python. `.item()`,
`.cpu()`, `float()`, printing or formatting a tensor break that up. The host stops until the
device has finished everything before that value, and the device then idles until the host has
queued new work.

In the proof a loss that is logged every tenth step is read once per step, and 0.1 times per
step when it is kept on the device. What a read costs depends on how far ahead the host was:
torchtune measured 40 to 50 ms a step, another project 4 % where 85 % had been feared. Count on
little when the device is saturated anyway, and on much when steps are short.

The read is often in a meter or a logger that the loop calls; the finding stands there and
names the calls that lead to it. A number that is needed on the host, as the size of a tensor, is
best taken from the batch before that is moved. What the step itself computes with needs no
number: a tensor on the device is as good a factor or divisor, and `torch.where` or `clamp` decide
there what an `if` would. What ends the loop, goes to an environment that answers or through an
algorithm that runs on the host (an assignment, a search) cannot be put off, and is not reported.
A GradScaler reads one value a step by itself, some optimizers read their step counters: those
are not reported, and not avoided by changing this line.

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
for step, (images, labels) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()  # DDP101
    if step % 100 == 0:
        print(step, total / (step + 1))
```

Good (the sum stays on the device):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = torch.zeros((), device=device)
for step, (images, labels) in enumerate(loader):
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.detach()
    if step % 100 == 0:
        print(step, total.item() / (step + 1))
```

Bad (in a meter):

```python
import torch
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")
data = TensorDataset(torch.randn(4096, 32), torch.randint(10, (4096,)))
loader = DataLoader(data, batch_size=64, shuffle=True, num_workers=4)
model = torch.nn.Linear(32, 10).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Meter:
    total = 0.0

    def update(self, value):
        self.total += value.item()  # DDP101


meter = Meter()
for images, labels in loader:
    loss = torch.nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    meter.update(loss)
print(meter.total)
```

Cannot see: whether the host would have had to wait here anyway, for instance because the
loader is slower than the device.

References:

* pytorch/torchtune#522, pytorch/torchtitan#206, pytorch/pytorch#44103
* `torch.cuda.set_sync_debug_mode` in the PyTorch documentation shows such reads at run time
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule

#: What helps, by what the step needs the value for.
_REMEDIES = {
    "update": "whether the weights are updated hangs on it: decide that on the device "
    "(`torch.where` for each gradient)",
    "choice": "it decides how the step is computed: decide on the device (`torch.where`, `clamp`)",
    "copy": "the step computes with the copy: compute on the device",
    "bound": "the step computes with it: leave the tensor (`.detach()`) in its place, "
    "with `clamp` for `min` and `max`",
    "term": "the step computes with it: leave the tensor (`.detach()`) in its place",
    "count": "it only counts: count in a Python number",
    "unsure": "",
    "look": "keep the tensor (`.detach()`) and read it every N steps",
}


#: Where the number itself must be on the host.
_EARLIER = (
    ": take it from the batch before that is moved to the device, or keep a copy on the host"
)


@rule("DDP101", level="warning", fixes="unsafe")
def check(program: Program) -> Findings:
    for read in program.host_reads:
        if read.counts:
            remedy = _REMEDIES["count"]
        elif read.sizes or read.need == "size":
            taker = f"`{read.sizes}`" if read.sizes else "a slice"
            remedy = f"{taker} needs it there{_EARLIER if read.is_of_batch else ''}"
        else:
            remedy = _REMEDIES[read.need]
        yield read.finding(
            f"`{read.value_text}` is read by {read.how} on every step, and the host waits for the "
            f"device each time{'; ' if remedy else ''}{remedy}",
            related=read.chain,
            fix=program.deferrals.of(read),
        )
