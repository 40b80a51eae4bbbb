"""Real JPEG files, made on the spot: the data that image proofs and the reference loop read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image


def write_jpegs(
    folder: Path,
    count: int,
    size: tuple[int, int],
    *,
    seed: int = 0,
    hue: int = 0,
    spread: int = 0,
) -> list[Path]:
    """Write ``count`` JPEG files of (width, height) pixels; the same bytes for the same seed.

    They have the structure of photographs, large smooth areas, edges and grain, so that they
    compress and decode like ones.  ``hue`` in 0..255 is the colour that they have in common, give
    or take ``spread``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(seed)
    width, height = size
    paths = []
    for number in range(count):
        coarse = draw.integers(0, 256, (6, 8, 3), np.uint8)
        coarse[..., 0] = (hue + draw.integers(-spread, spread + 1)) % 256
        picture = np.asarray(
            Image.fromarray(coarse, "HSV").convert("RGB").resize(size, Image.Resampling.BICUBIC)
        ).astype(np.int16)
        left, top = draw.integers(0, width // 2), draw.integers(0, height // 2)
        picture[top : top + height // 3, left : left + width // 3] //= 2
        picture += draw.integers(-12, 13, (height, width, 1), np.int16)
        paths.append(folder / f"{number:05}.jpg")
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(paths[-1], quality=90)
    return paths


def write_classes(
    folder: Path, counts: Sequence[int], size: tuple[int, int] = (96, 72), *, seed: int = 0
) -> None:
    """Write ``<folder>/<class>/*.jpg``: ``counts`` images per class, which colour tells apart."""
    for number, count in enumerate(counts):
        hue = number * 256 // len(counts)
        into = folder / f"class{number}"
        # Neighbours overlap a little: a model that is right every time would show nothing.
        spread = 160 // len(counts)
        write_jpegs(into, count, size, seed=seed + number, hue=hue, spread=spread)
