"""Several curves in one picture, each named at its end."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from html import escape

from firstpage.report.draw import WIDTH, svg, ticks

Point = tuple[float, float]
Ends = tuple[float, float]  # lower, upper

LEFT, TOP, HEIGHT, GAP = 46, 10, 260, 14
MARGIN, LETTER = 150, 6.5  # right of the picture, for the names: at least, and what a letter takes


def curves(
    series: Mapping[str, Sequence[Point]], title: str, across: str, up: str,
    bars: Mapping[str, Sequence[Ends]] | None = None, dashed: Collection[str] = (),
    log: bool = False, named: Mapping[float, str] | None = None, top: float = math.inf,
) -> str:  # fmt: skip
    """Return a picture with a line per name through its (x, y) points.

    `across` and `up` say what the axes are.  `bars`: for each point of a line, from where to where
    the truth may be, drawn as a band.  `log`: equal ratios (of positive x) are equally far apart.
    `named`: words in place of some x.  `top`: what is above it is drawn at the upper edge.
    """
    off, words = bars or {}, named or {}
    scale = math.log10 if log else float
    xs = [scale(x) for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    ys += [end for line in off.values() for bar in line for end in bar]
    (x_low, x_high), (y_low, y_high) = _span(xs), _span([min(y, top) for y in ys])
    right = WIDTH - max(MARGIN, 12 + LETTER * max(map(len, series)))

    def height(y: float) -> float:
        return TOP + (y_high - min(y, y_high)) / (y_high - y_low) * HEIGHT

    def place(x: float, y: float) -> Point:
        return LEFT + (scale(x) - x_low) / (x_high - x_low) * (right - LEFT), height(y)

    marks = _decades(x_low, x_high) if log else ticks(x_low, x_high)
    marks = [x for x in marks if not words or x < min(words) / (1.3 if log else 1)]
    parts = [_across(f"{x:g}", place(x, y_low)[0]) for x in marks]
    parts += [_across(word, place(x, y_low)[0]) for x, word in words.items()]
    parts += [_up(y, height(y), right) for y in ticks(y_low, y_high)]
    ends = {name: place(*points[-1])[1] for name, points in series.items()}
    for (name, points), y in zip(series.items(), _apart(ends).values(), strict=True):
        number = list(series).index(name) % 6
        if name in off:
            upper = [place(x, high) for (x, _), (_, high) in zip(points, off[name], strict=True)]
            lower = [place(x, low) for (x, _), (low, _) in zip(points, off[name], strict=True)]
            parts.append(_band(number, [*upper, *reversed(lower)]))
        for (x, _), (low, high) in zip(points, off.get(name, ()), strict=name in off):
            parts.append(_line(f"error c{number}", [place(x, low), place(x, high)]))
        kind = f"curve c{number}" + (" dashed" if name in dashed else "")
        parts.append(_line(kind, [place(*point) for point in points]))
        tips = [f" [{low:.3f}, {high:.3f}]" for low, high in off.get(name, ())]
        for point, tip in zip(points, tips or [""] * len(points), strict=True):
            at = words.get(point[0], f"{point[0]:g}")
            parts.append(_dot(f"{name}, {at}: {point[1]:.3f}{tip}", number, place(*point)))
        parts.append(
            f'<text class="c{number}" x="{right + 8:g}" y="{y + 4:.1f}">{escape(name)}</text>'
        )
    y = TOP + HEIGHT + 34
    parts.append(f'<text class="tick" x="{LEFT}" y="{y}">{escape(f"{up} over {across}")}</text>')
    return svg(y + 6, "".join(parts), title)


def _line(kind: str, points: Sequence[Point]) -> str:
    path = " ".join("{:.1f},{:.1f}".format(*point) for point in points)
    return f'<polyline class="{kind}" fill="none" points="{path}"/>'


def _band(number: int, points: Sequence[Point]) -> str:
    path = " ".join("{:.1f},{:.1f}".format(*point) for point in points)
    return f'<polygon class="band c{number}" points="{path}"/>'


def _span(values: Sequence[float]) -> tuple[float, float]:
    """From the least to the greatest, with a little room; never empty."""
    low, high = min(values), max(values)
    room = 0.04 * (high - low) or 0.5
    return low - room, high + room


def _apart(ends: Mapping[str, float]) -> dict[str, float]:
    """Heights of the names, moved down where they would cover each other; in the names' order."""
    found: dict[str, float] = {}
    last = -GAP * 10.0
    for name in sorted(ends, key=lambda n: ends[n]):
        last = max(ends[name], last + GAP)
        found[name] = last
    return {name: found[name] for name in ends}


def _decades(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, 20, .. between powers of ten."""
    tens = range(math.floor(low), math.ceil(high) + 1)
    every = [digit * 10.0**ten for ten in tens for digit in (1, 2, 5)]
    return [x for x in every if low <= math.log10(x) <= high]


def _dot(tip: str, number: int, at: Point) -> str:
    return (
        f'<circle class="c{number}" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3.5">'
        f"<title>{escape(tip)}</title></circle>"
    )


def _across(value: str, x: float) -> str:
    bottom = TOP + HEIGHT
    return (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        f'<text class="tick" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">'
        f"{escape(value)}</text>"
    )


def _up(value: float, y: float, right: float) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    )
