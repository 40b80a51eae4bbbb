"""A DataLoader takes a sampler or `shuffle=True`, not both: this raises at once.

The order comes from the sampler, so PyTorch refuses the pair: `ValueError: sampler option is
mutually exclusive with shuffle`.  It is a loud failure, but it often sits in the branch that
only runs on the cluster, where it costs a queue slot instead of a second.  `DistributedSampler`
shuffles on its own, with `set_epoch`.

Bad:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

dataset = TensorDataset(torch.randn(512, 32))
sampler = WeightedRandomSampler(torch.ones(512), num_samples=512)
loader = DataLoader(dataset, batch_size=32, shuffle=True, sampler=sampler)  # DDP306
```

Good:

```python
import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

dataset = TensorDataset(torch.randn(512, 32))
sampler = WeightedRandomSampler(torch.ones(512), num_samples=512)
loader = DataLoader(dataset, batch_size=32, sampler=sampler)
```

Good (whichever there is):

```python
import torch
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dataset = TensorDataset(torch.randn(512, 32))
distributed = torch.distributed.is_initialized()
sampler = DistributedSampler(dataset) if distributed else None
loader = DataLoader(dataset, batch_size=32, shuffle=sampler is None, sampler=sampler)
```

References:

* `torch.utils.data.DataLoader`, its parameters `shuffle` and `sampler`
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP306", level="error", fixes="safe")
def check(program: Program) -> Findings:
    for pair in program.loaders_of_two_orders:
        yield pair.finding(
            f"`shuffle=True` and `{pair.sampler_text}` exclude one another: this raises "
            "ValueError; the order comes from the sampler",
            fix=pair.fix,
        )
