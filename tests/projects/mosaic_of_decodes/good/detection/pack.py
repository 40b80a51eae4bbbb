"""Decode the images once: python -m detection.pack ROOT."""

import sys
from pathlib import Path

import cv2
import numpy as np

TILE = 320


def pack(root):
    files = sorted(root.glob("images/*.jpg"))
    tiles = np.lib.format.open_memmap(
        root / "tiles.npy", mode="w+", dtype=np.uint8, shape=(len(files), TILE, TILE, 3)
    )
    for number, path in enumerate(files):
        image = cv2.imread(str(path), cv2.IMREAD_COLOR)
        image = cv2.resize(image, (TILE, TILE), interpolation=cv2.INTER_AREA)
        tiles[number] = cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
    tiles.flush()


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
