"""A file handle opened in a dataset's `__init__` is shared by all workers that are forked from it.

The workers inherit one handle and with it one position in the file, one lock and one cache. HDF5
is not made for that: two workers that read at the same time get each other's bytes or an error
from the middle of the library, now and then.  An LMDB environment may not be used after a fork,
says its documentation. A zip file seeks and reads in two steps, and another worker can come
between.  With the `spawn` start method (macOS, Windows, and anywhere it is asked for) the handle
cannot be pickled, and the loader stops with `TypeError`.

Open it when the first sample is asked for, in the worker that asks.  What `__init__` needs (a
length, the keys) can be read there and the handle closed again.

Bad:

```python
import h5py
import torch
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __init__(self, path):
        self.file = h5py.File(path, "r")  # DDP308

    def __len__(self):
        return len(self.file["volumes"])

    def __getitem__(self, index):
        return torch.from_numpy(self.file["volumes"][index])


loader = DataLoader(Volumes("train.h5"), batch_size=8, shuffle=True, num_workers=4)
```

Good:

```python
import h5py
import torch
from torch.utils.data import DataLoader, Dataset


class Volumes(Dataset):
    def __init__(self, path):
        self.path = path
        self.file = None
        with h5py.File(path, "r") as file:
            self.length = len(file["volumes"])

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if self.file is None:
            self.file = h5py.File(self.path, "r")
        return torch.from_numpy(self.file["volumes"][index])


loader = DataLoader(Volumes("train.h5"), batch_size=8, shuffle=True, num_workers=4)
```

References:

* pytorch/pytorch#11887, pytorch/pytorch#11929, h5py and several workers
* the LMDB binding's documentation on `fork`
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule


@rule("DDP308", level="warning")
def check(program: Program) -> Findings:
    for handle in program.shared_handles:
        yield handle.finding(
            f"`self.{handle.name}` is opened once and shared by all workers that are forked: open "
            "it in `__getitem__`, when a worker first needs it",
            related=handle.related,
        )
