"""What was encoded in memory is decoded from memory: compression as an augmentation."""

import random
from io import BytesIO

import cv2
import numpy as np
import torch
from PIL import Image
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.io import decode_jpeg, encode_jpeg


def squeeze(patch):
    _, packed = cv2.imencode(".jpg", patch, [cv2.IMWRITE_JPEG_QUALITY, random.randint(30, 95)])
    return cv2.imdecode(packed, 1)


def squeeze_by_bytes(patch):
    packed = cv2.imencode(".jpg", patch)[1].tobytes()
    return cv2.imdecode(np.frombuffer(packed, np.uint8), 1)


def squeeze_with_pillow(patch):
    buffer = BytesIO()
    Image.fromarray(patch).save(buffer, format="JPEG", quality=40)
    buffer.seek(0)
    return np.array(Image.open(buffer))


def unpack(content):
    """Of bytes from either place."""
    return cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR)  # DDP302


class Patches(Dataset):
    def __init__(self, paths):
        self.paths = paths
        self.patches = np.load("patches.npy", mmap_mode="r")

    def __len__(self):
        return len(self.patches)

    def __getitem__(self, index):
        clean = np.array(self.patches[index])
        spoilt = squeeze(squeeze_by_bytes(squeeze_with_pillow(clean)))
        spoilt = decode_jpeg(encode_jpeg(torch.from_numpy(spoilt), quality=50)).numpy()
        spoilt = unpack(cv2.imencode(".png", spoilt)[1])
        with open(self.paths[index], "rb") as file:
            other = unpack(file.read())
        return torch.from_numpy(spoilt).float(), torch.from_numpy(other).float()


if __name__ == "__main__":
    net = nn.Conv2d(3, 3, 3, padding=1).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for bad, good in DataLoader(Patches(["a.png"]), batch_size=8, shuffle=True, num_workers=4):
        bad, good = bad.cuda().permute(0, 3, 1, 2), good.cuda().permute(0, 3, 1, 2)
        loss = (net(bad) - good).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
