"""Several images are decoded, or heavy filters run on the CPU, for every single sample.

A mosaic opens four files to give one sample, multi-crop augments one image six or eight times
over, and blurs and elastic warps touch every pixel many times.  All of it happens in the
loader's workers and multiplies what a sample costs.  Decoding and resizing one 640 x 480 JPEG
took 2 ms on one core and one of 2048 x 1536 took 29 ms, so a mosaic starts at 8 or 116 ms before
it has pasted anything.

What helps, in the order of gain: read images that were resized once (to 160 pixels, their JPEGs
were read 11 times faster than those of 640 x 480 and 136 times faster than those of 2048 x 1536);
let the workers hand over `uint8` and augment the whole batch on the GPU, where a blur over 64
images is one kernel; keep the last few decoded images in the dataset and build mosaics from
those.  Frames that follow each other in a video are one sample and no mosaic: nothing is said of
them. Moving transforms is not free everywhere: one project saw 2.8 x on an H100
and lost 5 % on an L4 with eight workers.  Measure it.

Bad (a mosaic):

```python
import random
from pathlib import Path

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import to_tensor


class Mosaics(Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.jpg"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        tiles = [Image.open(path) for path in random.sample(self.paths, 4)]  # DDP303
        return torch.stack([to_tensor(tile.resize((80, 80))) for tile in tiles])


model = nn.Conv3d(4, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for tiles in DataLoader(Mosaics("train"), batch_size=64, shuffle=True, num_workers=8):
    loss = model(tiles.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Bad (a blur for each sample):

```python
import numpy as np
import torch
from scipy.ndimage import gaussian_filter
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slices(Dataset):
    def __init__(self, path):
        self.slices = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.slices)

    def __getitem__(self, index):
        return torch.from_numpy(gaussian_filter(self.slices[index], sigma=4))  # DDP303


model = nn.Linear(512, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for slices in DataLoader(Slices("train.npy"), batch_size=64, shuffle=True, num_workers=8):
    loss = model(slices.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Good (the batch is augmented on the GPU):

```python
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.v2 import GaussianBlur


class Slices(Dataset):
    def __init__(self, path):
        self.slices = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.slices)

    def __getitem__(self, index):
        return torch.from_numpy(self.slices[index].copy())


blur = GaussianBlur(kernel_size=9)
model = nn.Linear(512, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for slices in DataLoader(Slices("train.npy"), batch_size=64, shuffle=True, num_workers=8):
    loss = model(blur(slices.cuda())).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Cannot see: what a `transform` does that is handed in from outside the project, how large the
images are, and whether the workers keep up all the same.

References:

* huggingface/lerobot#4627, transforms moved out of the workers
* pytorch/vision#45, pytorch/vision#7497
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule

REMEDY = "keep the worker light and augment the batch on the GPU"


@rule("DDP303", level="warning")
def check(program: Program) -> Findings:
    for decode in program.samples.decodes:
        if decode.for_other_samples and not decode.is_kept and not decode.is_scaled:
            yield decode.finding(
                f"`{decode.owner}` decodes several files for one sample at `{decode.text}`: "
                "decode once before training and mix whole batches on the GPU",
                related=decode.related,
            )
    for many in program.samples.many_transforms:
        yield many.finding(
            f"`{many.owner}` runs every transform of `{many.how}` over the whole image for each "
            f"sample: {REMEDY}",
            related=many.related,
        )
    for filter_ in program.samples.filters:
        yield filter_.finding(
            f"`{filter_.how}` filters every pixel on the CPU for each sample of "
            f"`{filter_.owner}`: {REMEDY}",
            related=filter_.related,
        )
