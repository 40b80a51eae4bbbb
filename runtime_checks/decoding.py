"""Ways to get a small image out of a JPEG file, and a watch on how many pixels they decode."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageFile

#: What a model gets: width, height.
SMALL = (160, 120)

Pixels = NDArray[np.uint8]
Reader = Callable[[Path], Pixels]


@dataclass
class Decoded:
    """Pixels that Pillow has decoded in this process; ``images`` counts the files."""

    pixels: int = 0
    images: int = 0


@contextmanager
def decoded_by_pillow() -> Iterator[Decoded]:
    """Count pixels at the size in which they leave the decoder; other libraries are not seen."""
    seen = Decoded()
    load = ImageFile.ImageFile.load

    def watched(image: ImageFile.ImageFile) -> Any:
        waiting = bool(image.tile)
        loaded = load(image)
        if waiting:
            seen.pixels += image.width * image.height
            seen.images += 1
        return loaded

    with patch.object(ImageFile.ImageFile, "load", watched):
        yield seen


def full(path: Path) -> Pixels:
    """Decode all pixels, then scale."""
    return np.asarray(Image.open(path).convert("RGB").resize(SMALL, Image.Resampling.BILINEAR))


def draft(path: Path) -> Pixels:
    """Let libjpeg decode at 1/2, 1/4 or 1/8 of the size, while that is large enough."""
    image = Image.open(path)
    image.draft("RGB", SMALL)
    return np.asarray(image.convert("RGB").resize(SMALL, Image.Resampling.BILINEAR))


def scaled(path: Path) -> Pixels:
    """The same with simplejpeg; its arrays are (height, width, 3)."""
    import simplejpeg  # type: ignore[import-untyped]

    array = simplejpeg.decode_jpeg(path.read_bytes(), min_width=SMALL[0], min_height=SMALL[1])
    return np.asarray(Image.fromarray(array).resize(SMALL, Image.Resampling.BILINEAR))


def shrink(paths: Sequence[Path], folder: Path) -> list[Path]:
    """Copies at the small size, made once."""
    folder.mkdir(parents=True, exist_ok=True)
    copies = []
    for path in paths:
        copies.append(folder / path.name)
        Image.fromarray(full(path)).save(copies[-1], quality=95)
    return copies


def rates(paths: Sequence[Path], copies: Sequence[Path], rounds: int = 3) -> dict[str, Any]:
    """Images per second of each way on this rank, and how far its pixels are from ``full``'s.

    The ways take turns, and each one's rate is the median of its rounds.  Differences are means
    over pixels, in 1/255.
    """
    ways: dict[str, tuple[Reader, Sequence[Path]]] = {
        "Pillow": (full, paths),
        "Pillow, draft": (draft, paths),
        "Pillow, pre-resized copies": (full, copies),
    }
    if importlib.util.find_spec("simplejpeg"):
        ways["simplejpeg, scaled"] = (scaled, paths)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, (read, files) in ways.items():
            began = time.perf_counter()
            for path in files:
                read(path)
            seconds[name].append(time.perf_counter() - began)
    exact = [full(path).astype(np.int16) for path in paths]
    return {
        name: {
            "images per second": round(len(paths) / median(seconds[name]), 1),
            "difference": round(
                float(
                    np.mean(
                        [
                            abs(read(path) - true).mean()
                            for path, true in zip(files, exact, strict=True)
                        ]
                    )
                ),
                2,
            ),
        }
        for name, (read, files) in ways.items()
    }
