"""What is said of an image that is decoded for a sample."""

from __future__ import annotations

import pytest

from tests import markers
from tests.model.programs import program_of

TEXT = """
import random
from glob import glob
import cv2
import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

class Photos(Dataset):
    def __init__(self, paths, steps):
        self.paths = paths
        self.cut = transforms.Compose([transforms.ToTensor(), transforms.RandomCrop(64)])
        self.shrink = transforms.Compose([transforms.Resize(64), transforms.RandomCrop(64)])

        self.centre = transforms.Compose([transforms.CenterCrop(99), transforms.Resize(64)])
        self.steps = transforms.RandomChoice([transforms.Resize(64), transforms.Resize(80)])
        blur = transforms.RandomApply([transforms.Grayscale()], p=0.5)
        self.spoilt = transforms.Compose([transforms.RandomResizedCrop(64), blur])
        self.given = transforms.Compose(steps)

    def __len__(self):
        return len(self.paths)

    def half(self, image):
        height, width = image.shape[:2]
        return image[0:height, 0 : width // 2]

    def size(self, side):
        return side // 2, side // 2

    def piece(self, image):
        top, left = random.randrange(9), random.randrange(9)
        return image[top : top + 64, left : left + 64, ...]

    def crop_to_size(self, image):
        return self.piece(cv2.resize(image, (256, 256)))

    def by_chance(self, image):
        if random.random() < 0.5:
            image = cv2.resize(image, None, fx=1.2, fy=1.2)
        return image

    def __getitem__(self, index):
        image = cv2.imread(self.paths[index])
        {after}

model = torch.nn.Conv2d(3, 8, 3).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
photos = Photos(glob("*.jpg"), [transforms.Resize(64)])
for batch in DataLoader(photos, batch_size=8, shuffle=True, num_workers=4):
    loss = model(batch.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("return torch.from_numpy(self.piece(image))", "crop"),
        ("return torch.from_numpy(cv2.resize(self.piece(image), (32, 32)))", "crop and resize"),
        ("return self.cut(image)", "crop"),
        ("return torch.from_numpy(self.piece(self.by_chance(image)))", "crop"),
        ("return torch.from_numpy(self.piece(cv2.resize(image, (256, 256))))", "resize"),
        ("return torch.from_numpy(self.crop_to_size(image))", "resize"),
        ("return torch.from_numpy(self.by_chance(image))", "several sizes"),
        ("return self.shrink(image)", "resize"),
        ("return self.piece(self.shrink(image) if self.shrink else image)", "resize"),
        ("return torch.from_numpy(image)", ""),
        ("return self.shrink(Image.fromarray(image[:4, :4, ::-1]))", "resize"),
        ("return self.shrink(self.half(image)), self.shrink(self.half(image))", "cut and resize"),
        ("return self.half(image), self.piece(image)", "crop"),
        ("return self.half(image)", "cut"),
        ("return self.centre(image)", "cut and resize"),
        ("return self.given(self.half(image))", "cut and resize"),
        ("return cv2.resize(image, self.size(random.choice([64, 80])))", "several sizes"),
        ("return cv2.resize(image, self.size(image.shape[0]))", "resize"),
        ("return self.piece(cv2.resize(image, None, fx=random.uniform(1, 2)))", "several sizes"),
        ("return self.steps(image)", "several sizes"),
        ("return self.spoilt(image)", "resize"),
        ("return self.cut(image), cv2.resize(image, (32, 32))", "crop and resize"),
        ("other = cv2.resize(cv2.imread('a.png'), (9, 9)); return image, other", ""),
    ],
)
def test_what_is_done_to_the_size_first(after: str, expected: str) -> None:
    decode = program_of(TEXT.format(after=after)).samples.decodes[0]
    assert decode.change == expected


def test_the_class_is_named_whose_samples_they_are() -> None:
    body = """
import sys
import cv2
import torch
from torch.utils.data import DataLoader, Dataset

class Base(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        return torch.from_numpy(self.picture(index))

class Birds(Base):
    def picture(self, index):
        return cv2.imread(f"birds/{index}.jpg")

class Trees(Base):
    def picture(self, index):
        return cv2.imread(f"trees/{index}.jpg")

data = Birds() if sys.argv[1] == "birds" else Trees()
model = torch.nn.Conv2d(3, 8, 3).cuda()
for batch in DataLoader(data, batch_size=8, shuffle=True, num_workers=4):
    model(batch.cuda()).square().mean().backward()
"""
    decodes = program_of(body).samples.decodes
    assert {(one.owner, one.text.partition("/")[0]) for one in decodes} == {
        ("Birds", "cv2.imread(f'birds"),
        ("Trees", "cv2.imread(f'trees"),
    }


def test_measurements_are_no_pictures() -> None:
    text = TEXT.replace("self.paths[index])\n", "self.paths[index], cv2.IMREAD_ANYDEPTH)\n")
    (depth,) = program_of(text.format(after="return self.shrink(image)")).samples.decodes
    (picture,) = program_of(TEXT.format(after="return self.shrink(image)")).samples.decodes
    assert depth.is_measured
    assert not picture.is_measured


@pytest.mark.parametrize(
    "after",
    [
        "return self.shrink(image), torch.as_tensor(image, dtype=torch.int64)",
        "ids = np.asarray(image).astype(np.int32); return ids",
        "return torch.from_numpy(image).long()",
        "return image == np.arange(9)[:, None, None]",
        "return image // 1000",
    ],
)
def test_whole_numbers_are_measurements(after: str) -> None:
    decode = program_of(TEXT.format(after=after)).samples.decodes[0]
    assert decode.is_measured
    assert decode.help == "keep pixels"


@pytest.mark.parametrize(
    ("after", "helps"),
    [
        ("return self.shrink(image)", "resize or scale"),
        ("return cv2.resize(image, (800, 600))", "resize"),
        ("return self.shrink(image), cv2.resize(image, (800, 600))", "resize"),
        ("return cv2.resize(image, (self.side, self.side))", "resize"),
        ("return self.half(image)", "cut"),
        ("return cv2.resize(self.half(image), (64, 64))", "cut and resize"),
        ("return self.cut(image)", "crop"),
        ("return cv2.resize(self.piece(image), (64, 64))", "crop and resize"),
        ("return torch.from_numpy(image)", "keep pixels"),
        ("return self.transform(image)", "keep less"),
        ("return self.steps(image)", ""),
    ],
)
def test_what_helps(after: str, helps: str) -> None:
    text = TEXT.format(after=after)
    (decode,) = program_of(text).samples.decodes
    assert decode.help == helps
    found = markers.findings(markers.project_of_text(text))
    said = [finding.message for finding in found if finding.code == "DDP302"]
    assert len(said) == bool(helps)
    # How much faster depends on files that nobody has seen.
    assert all("times" not in message for message in said)
    assert all(("draft" in message) == (helps == "resize or scale") for message in said)
    assert all(("do not resize" in message) == (helps == "crop") for message in said)


@pytest.mark.parametrize("ending", [".png", ".jpg"])
def test_no_decoder_scales_a_png(ending: str) -> None:
    text = TEXT.replace("*.jpg", f"*{ending}").format(after="return self.shrink(image)")
    (decode,) = program_of(text).samples.decodes
    assert decode.endings == {ending}
    assert decode.help == ("resize" if ending == ".png" else "resize or scale")


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ('["a.png", "b.jpg"]', {".png", ".jpg"}),
        ('[f"{n}.bmp" for n in range(9)]', {".bmp"}),
        ('[n for n in glob("*") if n.endswith(".tif")]', {".tif"}),
        ('sorted(Path("x").rglob("*.PNG"))', {".png"}),
        ('["%d.jpg" % n for n in range(9)]', {".jpg"}),
        ('[n.replace("jpg", ".png") for n in glob("*.jpg")]', {".png"}),
        ('glob("*.jpg") + ["a.png"]', {".jpg", ".png"}),
        ('glob("*")', {""}),
        ("open('list.txt').read().split()", {""}),
    ],
)
def test_how_the_names_of_files_end(paths: str, expected: set[str]) -> None:
    text = TEXT.replace("{after}", "return image").replace('glob("*.jpg")', paths)
    (decode,) = program_of(f"from pathlib import Path{text}").samples.decodes
    assert decode.endings == expected
