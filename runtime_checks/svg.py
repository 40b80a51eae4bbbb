"""Draw the pictures of a record as inline SVG; colours come from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

WIDTH = 680
Picture = dict[str, Any]


def draw(picture: Picture) -> str:
    """A picture of any kind, as the record has it, as one ``<svg>`` element."""
    drawn, height = {"Lines": _lines, "Bars": _bars, "Pairing": _pairing}[picture["kind"]](picture)
    title = escape(picture["title"])
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{title}">'
        f"<title>{title}</title>{drawn}</svg>"
    )


@dataclass(frozen=True)
class Scale:
    """From values to pixels, linear or logarithmic."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    @classmethod
    def over(
        cls, values: Sequence[float], start: float, end: float, *, log: bool, zero: bool = False
    ) -> Scale:
        """A scale that has room for the values; ``zero``: it begins at 0 where it is linear."""
        if log:
            values = [value for value in values if value > 0] or [1.0]
            low = 10.0 ** math.floor(math.log10(min(values)))
            high = 10.0 ** math.ceil(math.log10(max(values)))
            return cls(low, high if high > low else low * 10, start, end, True)
        low, high = min(values, default=0.0), max(values, default=1.0)
        if zero:
            low = min(low, 0.0)
        if high == low:
            high = low + 1
        step = nice_step((high - low) / 5)
        return cls(math.floor(low / step) * step, math.ceil(high / step) * step, start, end)

    def __call__(self, value: float) -> float:
        if self.log:
            share = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """A handful of round values."""
        if self.log:
            first, last = round(math.log10(self.low)), round(math.log10(self.high))
            every = max(1, math.ceil((last - first) / 6))
            return [10.0**power for power in range(first, last + 1, every)]
        step = nice_step((self.high - self.low) / 5)
        count = round((self.high - self.low) / step)
        return [self.low + number * step for number in range(count + 1)]


def nice_step(about: float) -> float:
    """1, 2 or 5 times a power of ten, not below ``about``."""
    power = 10.0 ** math.floor(math.log10(about))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= about * 0.999)


def _number(value: float) -> str:
    if value != 0 and (abs(value) >= 1e5 or abs(value) < 1e-3):
        mantissa, _, power = f"{value:.2e}".partition("e")
        short = mantissa.rstrip("0").rstrip(".")
        return f"{short}e{int(power)}"
    return f"{value:,.10g}" if value == int(value) else f"{value:.3g}"


def _side(name: str) -> str:
    for side in ("bad", "good"):
        if name == side or name.startswith((f"{side} ", f"{side},", f"{side}:")):
            return side
    return "other"


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" class="{kind}">{escape(words)}</text>'


def _lines(picture: Picture) -> tuple[str, int]:
    height, left, right, top, bottom = 320, 74, 120, 40, 48
    series = picture["series"]
    across = Scale.over(picture["x"], left, WIDTH - right, log=picture["log_x"])
    values = [value for points in series.values() for value in points]
    up = Scale.over(values, height - bottom, top, log=picture["log_y"], zero=True)
    parts = []
    for tick in up.ticks():
        y = up(tick)
        parts.append(f'<path class="grid" d="M{left} {y}H{WIDTH - right}"/>')
        parts.append(_text(left - 8, y + 4, _number(tick), "tick", "end"))
    for tick in across.ticks():
        x = across(tick)
        if x <= WIDTH - right + 1:
            parts.append(_text(x, height - bottom + 18, _number(tick), "tick", "middle"))
    parts.append(
        _text((left + WIDTH - right) / 2, height - 8, picture["x_label"], "axis", "middle")
    )
    parts.append(_text(8, 18, picture["y_label"], "axis"))
    labels: list[tuple[float, str, str]] = []
    for name, points in series.items():
        side = _side(name)
        places = [(across(x), up(y)) for x, y in zip(picture["x"], points, strict=False)]
        path = "L".join(f"{x} {y}" for x, y in places)
        parts.append(f'<path class="line {side}" d="M{path}"/>')
        if len(places) <= 30:
            parts += [f'<circle class="dot {side}" cx="{x}" cy="{y}" r="3"/>' for x, y in places]
        if places:
            labels.append((places[-1][1], name, side))
    lowest = -math.inf
    for y, name, side in sorted(labels):
        lowest = max(y, lowest + 16)
        parts.append(_text(WIDTH - right + 10, lowest + 4, name, f"label {side}"))
    return "".join(parts), height


def _bars(picture: Picture) -> tuple[str, int]:
    bars = picture["bars"]
    row, top = 30, 34
    left, right = min(260, 24 + 7 * max(map(len, bars), default=0)), 90
    along = Scale.over(list(bars.values()), left, WIDTH - right, log=picture["log_y"], zero=True)
    parts = [_text(left, 18, picture["y_label"], "axis")]
    for number, (name, value) in enumerate(bars.items()):
        y = top + number * row
        length = max(0.0, along(value) - left) if value > 0 else 0
        side = _side(name)
        parts.append(_text(left - 10, y + 15, name, "label", "end"))
        parts.append(f'<rect class="bar {side}" x="{left}" y="{y}" width="{length}" height="20"/>')
        parts.append(_text(left + length + 8, y + 15, _number(value), "value"))
    height = top + row * len(bars) + 6
    parts.append(f'<path class="axis-line" d="M{left} {top - 6}V{height - 6}"/>')
    return "".join(parts), height


def _pairing(picture: Picture) -> tuple[str, int]:
    parts: list[str] = []
    y = 18
    for side in ("bad", "good"):
        drawn, used = _meetings(picture[side], side, y)
        parts.append(drawn)
        y += used
    return "".join(parts), y - 18


def _meetings(steps: Sequence[Sequence[int]], side: str, top: int) -> tuple[str, int]:
    """One row per rank, one column per all-reduce: who stands in a column meets there."""
    left, row, box = 70, 52, 26
    count = max(map(len, steps), default=0)
    pitch = min(56.0, (WIDTH - left - 20) / max(1, count))
    width = min(box + 8.0, pitch - 4)
    words = "bad: step numbers that meet in one all-reduce" if side == "bad" else "good"
    parts = [_text(8, top, words, f"label {side}")]
    for rank in range(len(steps)):
        parts.append(_text(8, top + 32 + rank * row, f"rank {rank}", "tick"))
    for k in range(count):
        x = left + k * pitch
        met = [ranks[k] if k < len(ranks) else None for ranks in steps]
        kind = "good" if len(set(met)) == 1 else "bad"
        centre = round(x + width / 2, 1)
        end = top + 14 + (len(steps) - 1) * row
        parts.append(f'<path class="line {kind}" d="M{centre} {top + 14 + box}V{end}"/>')
        for rank, step in enumerate(met):
            y = top + 14 + rank * row
            missing = " missing" if step is None else ""
            parts.append(
                f'<rect class="box {kind}{missing}" x="{x:.1f}" y="{y}" '
                f'width="{width:.1f}" height="{box}" rx="4"/>'
            )
            told = "-" if step is None else str(step)
            parts.append(_text(centre, y + 18, told, "value", "middle"))
    return "".join(parts), 14 + row * len(steps) + 20
