"""What is said of an image that is decoded for a sample."""

from __future__ import annotations

import pytest

from tests.model.programs import program_of

TEXT = """
import random
import cv2
import torch
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

class Photos(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.cut = transforms.Compose([transforms.ToTensor(), transforms.RandomCrop(64)])
        self.shrink = transforms.Compose([transforms.Resize(64), transforms.RandomCrop(64)])

    def __len__(self):
        return len(self.paths)

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
for batch in DataLoader(Photos(["a.png"]), batch_size=8, shuffle=True, num_workers=4):
    loss = model(batch.cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("return torch.from_numpy(self.piece(image))", "crop"),
        ("return torch.from_numpy(cv2.resize(self.piece(image), (32, 32)))", "crop"),
        ("return self.cut(image)", "crop"),
        ("return torch.from_numpy(self.piece(self.by_chance(image)))", "crop"),
        ("return torch.from_numpy(self.piece(cv2.resize(image, (256, 256))))", "resize"),
        ("return torch.from_numpy(self.crop_to_size(image))", "resize"),
        ("return torch.from_numpy(self.by_chance(image))", "resize"),
        ("return self.shrink(image)", "resize"),
        ("return self.piece(self.shrink(image) if self.shrink else image)", "resize"),
        ("return torch.from_numpy(image)", ""),
    ],
)
def test_what_is_done_to_the_size_first(after: str, expected: str) -> None:
    (decode,) = program_of(TEXT.format(after=after)).samples.decodes
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
