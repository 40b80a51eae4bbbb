"""The loader of a GPU training loop has no workers, so the GPU waits while each batch is made.

`num_workers` is 0 unless it is set: reading, decoding and collating then happen in the training
process, between two steps, while the GPU idles.  Start with 4 workers for each GPU and go up
while the time between two batches falls; more than `os.cpu_count() / number of GPUs` only makes
them fight. `persistent_workers=True` saves starting them anew in each epoch.

Leave it at 0, and say so (`num_workers=0`), where the samples lie in memory already, in a
debugger, on a machine with two cores, or where the dataset has threads of its own.  Because all
of that is common the rule is off unless it is selected.

Bad:

```python
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import ToTensor

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(ImageFolder("train", ToTensor()), batch_size=64, shuffle=True)  # DDP309
for images, targets in loader:
    loss = nn.functional.cross_entropy(model(images.cuda()), targets.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Good:

```python
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.transforms import ToTensor

model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten()).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(ImageFolder("train", ToTensor()), batch_size=64, shuffle=True, num_workers=4)
for images, targets in loader:
    loss = nn.functional.cross_entropy(model(images.cuda()), targets.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Cannot see: whether the step is so long that the loader keeps up anyway.

References:

* "Performance Tuning Guide", the PyTorch recipe, on asynchronous data loading
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP309", level="note", on=False)
def check(program: Program) -> Findings:
    for starved in program.starved_loaders:
        yield starved.finding(
            f"`{starved.loader.name}` has no workers, so the GPU waits while each batch is made: "
            "try `num_workers=4`, or write `num_workers=0` if the samples lie in memory",
            related=starved.related,
        )
