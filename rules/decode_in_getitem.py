"""Each sample is decoded from an image or audio file again, in every epoch, on the CPU.

Decoding is often the dearest thing a worker does.  Measured on one core with PIL, decoding and
resizing to 160 pixels: 500 images a second for 640 x 480 JPEGs and 34 a second for 2048 x 1536.
A GPU that trains on 2,000 images a second wants four such cores for small photos and sixty for
large ones.  What the same dataset can do instead, measured in the same run:

| change | small photos | large photos |
|---|---|---|
| `image.draft("RGB", size)` before the first pixel is read | 1.5 x | 3.9 x |
| scaled decoding (simplejpeg, `cv2.IMREAD_REDUCED_COLOR_2`) | 1.7 to 1.9 x | 2.9 to 4.0 x |
| JPEGs that were resized once, before training | 11 x | 136 x |
| resized once and kept as `uint8` in a memory map | more than 270 x | more than 270 x |

These are for files that are much larger than 160 pixels: of photos that are hardly larger than
what is trained on, less is to be had, and `draft` and scaled decoding do nothing for them, nor for
PNGs at any size.  Where a sample takes fixed pieces of an image, such as the halves of a pair that
stands in one file, they can be cut and resized once as well.

Where pieces are cut out at random and at full size, as for image restoration, or pixels are
measurements (a depth, a flow, a map of labels), neither resizing nor scaled decoding is the same.
There it is decoded pixels in a memory map, of which a crop reads its part, or sub-images that were
cut once before training.

Nothing is said where little would be gained, or at a price that few would pay:

* images that get another size each time (multi-scale training), so that there is none to keep
* one or several frames of a video, unless they are resized; all its pixels are too many to keep
* recordings, unless they are resampled or compressed: a `.wav` is read, not decoded
* images in an LMDB or HDF5

This is a note: with enough workers the loader keeps up, and then there is nothing to mend.  Look
whether the GPU waits before you change anything.

Bad:

```python
from pathlib import Path

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import to_tensor


class Photos(Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.jpg"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index]).convert("RGB")  # DDP302
        return to_tensor(image.resize((160, 160)))


model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images in DataLoader(Photos("train"), batch_size=64, shuffle=True, num_workers=8):
    loss = model(images.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Good (resized once, read from a memory map):

```python
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self, path):
        self.images = np.load(path, mmap_mode="r")

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return torch.from_numpy(self.images[index].copy())


model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images in DataLoader(Photos("train_160.npy"), batch_size=64, shuffle=True, num_workers=8):
    loss = model(images.cuda().float().div(255)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Good (decoded at the size that is needed):

```python
from pathlib import Path

import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms.functional import to_tensor


class Photos(Dataset):
    def __init__(self, folder):
        self.paths = sorted(Path(folder).glob("*.jpg"))

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        image = Image.open(self.paths[index])
        image.draft("RGB", (160, 160))
        return to_tensor(image.convert("RGB").resize((160, 160)))


model = nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for images in DataLoader(Photos("train"), batch_size=64, shuffle=True, num_workers=8):
    loss = model(images.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
```

Cannot see: how large the files are, how many cores there are, and whether the GPU ever waits; what
a transform does that cannot be followed.

References:

* `PIL.Image.Image.draft` in the Pillow documentation
* arXiv 2605.08731 and 2501.13131, which compare decoders alone and inside a DataLoader
"""

from __future__ import annotations

from ddp_lint.model import Program
from ddp_lint.rule import Findings, rule

LARGER = "if the files are larger than what you train on"
REMEDIES = {
    "decode": "decode once before training",
    "resample": "resample once before training, if the files have another rate",
    "decode and resample": "decode and resample once before training",
    "keep pixels": "decode once before training, and keep the pixels in a memory map",
    "keep less": "decode once before training, and keep smaller files, or pixels in a memory map",
    "resize": f"resize once before training, {LARGER}",
    "resize or scale": f"{LARGER}, resize once before training; JPEGs of more than twice that "
    "size can also be decoded at a fraction of theirs (`draft`, scaled decoders)",
    "cut": "cut the pieces once before training, into files of their own",
    "cut and resize": f"cut and resize once before training, {LARGER}",
    "crop": "do not resize, for a crop at full size follows, but decode once before training into "
    "a memory map or into sub-images",
    "crop and resize": "decode once before training into a memory map or into sub-images",
}


@rule("DDP302", level="note")
def check(program: Program) -> Findings:
    for decode in program.samples.repeated_decodes:
        if decode.help:
            what = "a recording" if decode.is_sound else "an image"
            yield decode.finding(
                f"`{decode.text}` decodes {what} for every sample of `{decode.owner}`, in every "
                f"epoch: {REMEDIES[decode.help]}",
                related=decode.related,
            )
