"""Small drawings as inline SVG: no library, no script, colors from the page's style."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from html import escape

import numpy as np

from firstpage.types import Floats

WIDTH, ROW, LABEL = 720, 26, 270
Point = tuple[float, float]
Ends = tuple[float, float]  # lower, upper


def svg(height: float, body: str, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title, True)}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>{body}</svg>'
    )


def ticks(low: float, high: float) -> list[float]:
    """About five round numbers from low to high."""
    span = max(high - low, 1e-12)
    step = 10 ** np.floor(np.log10(span / 4))
    for factor in (1, 2, 5, 10):
        if span / (step * factor) <= 6:
            step *= factor
            break
    first = np.ceil(low / step - 1e-9) * step
    return [float(t) + 0.0 for t in np.arange(first, high + step * 1e-6, step)]  # never -0


class _Axis:
    """A horizontal scale from low to high between the labels and the right edge."""

    def __init__(self, low: float, high: float, bottom: float) -> None:
        pad = 0.04 * max(high - low, 1e-9)
        self.low, self.high, self.bottom = low - pad, high + pad, bottom

    def x(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return LABEL + share * (WIDTH - LABEL - 20)

    def draw(self) -> str:
        parts = []
        for tick in ticks(self.low, self.high):
            x = self.x(tick)
            parts.append(
                f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{self.bottom:g}"/>'
                f'<text class="tick" x="{x:.1f}" y="{self.bottom + 14:g}" text-anchor="middle">'
                f"{tick:.4g}</text>"
            )
        return "".join(parts)


def _label(text: str, y: float) -> str:
    shown = text if len(text) <= 42 else text[:20] + "…" + text[-20:]
    return f'<text x="{LABEL - 10}" y="{y + 4:.1f}" text-anchor="end">{escape(shown)}</text>'


def intervals(
    rows: Sequence[tuple[str, float, float, float]], title: str, zero: bool = False
) -> str:
    """One line a row: a dot at the value, a bar from low to high; `zero` marks no difference."""
    low = min([r[2] for r in rows] + ([0.0] if zero else []))
    high = max([r[3] for r in rows] + ([0.0] if zero else []))
    bottom = ROW * len(rows) + 6
    axis = _Axis(low, high, bottom)
    parts = [axis.draw()]
    if zero:
        x = axis.x(0.0)
        parts.append(f'<line class="zero" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{bottom}"/>')
    for i, (name, value, lo, hi) in enumerate(rows):
        y = ROW * (i + 0.5) + 4
        strong = zero and (lo > 0 or hi < 0)
        kind = "mark strong" if strong else "mark"
        parts.append(
            _label(name, y) + f'<line class="{kind}" x1="{axis.x(lo):.1f}" x2="{axis.x(hi):.1f}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<circle class="{kind}" cx="{axis.x(value):.1f}" cy="{y:.1f}" r="5">'
            f"<title>{escape(name)}: {value:.4f} [{lo:.4f}, {hi:.4f}]</title></circle>"
        )
    return svg(bottom + 22, "".join(parts), title)


def histogram(values: Floats, title: str, bins: int = 20) -> str:
    """How many queries have which value."""
    counts, edges = np.histogram(values, bins)
    height = 120
    most = max(int(counts.max()), 1)
    left, right = 40, WIDTH - 20
    wide = (right - left) / bins
    parts = []
    for i, count in enumerate(counts.tolist()):
        tall = height * count / most
        tip = f"{edges[i]:.3g} to {edges[i + 1]:.3g}: {count}"
        parts.append(
            f'<rect class="bar" x="{left + i * wide + 1:.1f}" y="{height + 8 - tall:.1f}" '
            f'width="{wide - 2:.1f}" height="{tall:.1f}"><title>{tip}</title></rect>'
        )
    parts += [
        f'<text class="tick" x="{left + i * wide:.1f}" y="{height + 24}" '
        f'text-anchor="middle">{edges[i]:.3g}</text>'
        for i in range(0, bins + 1, 5)
    ]
    parts.append(
        f'<text class="tick" x="{left - 6}" y="16" text-anchor="end">{most}</text>'
        f'<line class="zero" x1="{left}" x2="{right}" y1="{height + 8}" y2="{height + 8}"/>'
    )
    return svg(height + 30, "".join(parts), title)


def outcomes(rows: Sequence[tuple[str, int, int, int]], title: str) -> str:
    """Wins, ties and losses as one divided bar a row."""
    parts = []
    for i, (name, *counts) in enumerate(rows):
        y = ROW * i + 6
        total = max(sum(counts), 1)
        x = float(LABEL)
        parts.append(_label(name, y + 8))
        for kind, count in zip(("win", "tie", "loss"), counts, strict=True):
            wide = (WIDTH - LABEL - 20) * count / total
            if count:
                parts.append(
                    f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{wide:.1f}" height="16">'
                    f"<title>{kind}: {count}</title></rect>"
                )
                if wide > 24:
                    parts.append(
                        f'<text class="in" x="{x + wide / 2:.1f}" y="{y + 12}" '
                        f'text-anchor="middle">{count}</text>'
                    )
            x += wide
    return svg(ROW * len(rows) + 6, "".join(parts), title)


def bars(rows: Sequence[tuple[str, float]], title: str) -> str:
    """One horizontal bar a row, from zero to its value."""
    values = [v for _, v in rows] or [0.0]
    bottom = ROW * len(rows) + 6
    axis = _Axis(min([*values, 0.0]), max([*values, 0.0]), bottom)
    zero = axis.x(0.0)
    parts = [axis.draw()]
    for i, (name, value) in enumerate(rows):
        y = ROW * i + 8
        x, end = sorted((zero, axis.x(value)))
        kind = "win" if value >= 0 else "loss"
        parts.append(
            _label(name, y + 8) + f'<rect class="{kind}" x="{x:.1f}" y="{y}" '
            f'width="{max(end - x, 0.5):.1f}" height="16">'
            f"<title>{escape(name)}: {value:.6g}</title></rect>"
        )
    parts.append(f'<line class="zero" x1="{zero:.1f}" x2="{zero:.1f}" y1="4" y2="{bottom}"/>')
    return svg(bottom + 22, "".join(parts), title)


def line(points: Sequence[Point], title: str) -> str:
    """A curve through (x, y) points, its best marked."""
    xs, ys = zip(*points, strict=True)
    words = f"{max(ys):.4f}", f"{min(ys):.4f}", f"{min(xs):g}", f"{max(xs):g}"
    return _graph(points, 160, title, words, max(points, key=lambda p: p[1]))


def steps(thresholds: Floats, levels: Floats, title: str) -> str:
    """A step function: levels between thresholds, one more than there are thresholds."""
    first, last = float(thresholds[0]), float(thresholds[-1])
    margin = 0.08 * (last - first) or 0.5 * abs(first) or 1.0
    ends = [first - margin, *thresholds.tolist(), last + margin]
    corners = [(x, float(y)) for i, y in enumerate(levels) for x in (ends[i], ends[i + 1])]
    words = f"{levels.max():.3g}", f"{levels.min():.3g}", f"{first:.4g}", f"{last:.4g}"
    return _graph(corners, 90, title, words)


def _graph(
    points: Sequence[Point], height: int, title: str, words: Sequence[str],
    marked: Point | None = None,
) -> str:  # fmt: skip
    """One line that fills the picture; `words` stand at its upper, lower, left and right ends."""
    left, right = 60, WIDTH - 20
    (x_low, x_high), (y_low, y_high) = ((min(v), max(v)) for v in zip(*points, strict=True))
    wide, tall = max(x_high - x_low, 1e-12), max(y_high - y_low, 1e-12)

    def place(x: float, y: float) -> Point:
        return left + (x - x_low) / wide * (right - left), 8 + (y_high - y) / tall * height

    parts = [_line("mark", [place(*point) for point in points])]
    if marked is not None:
        x, y = place(*marked)
        parts.append(
            f'<circle class="mark strong" cx="{x:.1f}" cy="{y:.1f}" r="4">'
            f"<title>{marked[0]:g}: {marked[1]:.4f}</title></circle>"
        )
    upper, lower, first, last = words
    parts += [
        f'<text class="tick" x="{left - 6}" y="14" text-anchor="end">{upper}</text>',
        f'<text class="tick" x="{left - 6}" y="{height + 8}" text-anchor="end">{lower}</text>',
        f'<text class="tick" x="{left}" y="{height + 24}">{first}</text>',
        f'<text class="tick" x="{right}" y="{height + 24}" text-anchor="end">{last}</text>',
    ]
    return svg(height + 30, "".join(parts), title)


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
        tips = [
            f" [{low:.3f}, {high:.3f}]" if high > low else "" for low, high in off.get(name, ())
        ]
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
