"""Charts as SVG, without libraries or scripts.

Drawings are elements of a page, whose style has the colors; a `Chart` carries its own style.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from firstpage.core.errors import FirstpageError
from firstpage.core.types import Floats

WIDTH, ROW_HEIGHT, LABEL_WIDTH = 720, 26, 270
CAPTION_HEIGHT = 24
COLOR = re.compile(r"(--\w+):(#\w+)")
VARIABLE = re.compile(r"var\((--\w+)\)")
HEIGHT_OF_SVG = re.compile(r'<svg viewBox="0 0 \d+ ([\d.]+)"')
LIGHT = """color-scheme: light dark; --ink:#1b1f24; --soft:#667; --line:#d8dde3; --back:#fff;
  --mark:#8a97a6; --strong:#0b66c3; --win:#2a8f5c; --tie:#c3c9d1; --loss:#c8553d;"""
DARK = """--ink:#e6e9ed; --soft:#9aa4b0; --line:#333b45; --back:#14181d; --mark:#7d8896;
  --strong:#58a6ff; --win:#3fb27a; --tie:#4a525d; --loss:#e0735a;"""
SVG_STYLE = "\n" + Path(__file__).with_suffix(".css").read_text("utf-8")
Point = tuple[float, float]
Bounds = tuple[float, float]  # lower, upper


@dataclass(frozen=True, repr=False)
class Chart:
    """A chart that notebooks show and that can be saved; the result of `plot`.

    Attributes
    ----------
    svg : str
        The chart as an SVG document with its own style.

    Examples
    --------
    >>> import firstpage as fp
    >>> evaluation = fp.evaluate([2, 1, 2, 1], [1, 0, 0, 1], qid=[1, 1, 2, 2], measures="RR")
    >>> evaluation.plot().svg.startswith("<svg")
    True
    """

    svg: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the chart to an SVG or HTML file.

        Parameters
        ----------
        path : path
            The file, whose name ends in .svg or .html.

        Raises
        ------
        FirstpageError
            If the file has another suffix.
        """
        file = Path(path)
        if file.suffix not in (".svg", ".html"):
            raise FirstpageError(f"{file}: a chart is saved as .svg or .html.")
        text = self.svg
        if file.suffix == ".html":
            text = (
                f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{text}</body></html>'
            )
        file.write_text(text + "\n", encoding="utf-8")

    def _repr_svg_(self) -> str:
        """Return the chart for notebooks."""
        return self.svg

    def __repr__(self) -> str:
        return f"Chart({len(self.svg):,} characters of SVG; save it, or show it in a notebook)"


def stacked(drawings: Sequence[tuple[str, str]], title: str) -> Chart:
    """Return one chart of drawings below each other, given with their captions."""
    elements, top = [], 0.0
    for drawing, caption in drawings:
        match = HEIGHT_OF_SVG.match(drawing)
        assert match is not None, "a drawing comes from svg()"
        height = float(match[1])
        place = f'<svg x="0" y="{top + CAPTION_HEIGHT:g}" width="{WIDTH}" height="{height:g}"'
        elements.append(f'<text x="4" y="{top + 16:g}">{escape(caption)}</text>')
        elements.append(drawing.replace("<svg", place, 1))
        top += CAPTION_HEIGHT + height + 8
    colors = dict(COLOR.findall(LIGHT))  # programs that convert SVG know no CSS variables
    style = "svg { font: 12px system-ui, sans-serif; }" + VARIABLE.sub(
        lambda match: colors[match[1]], SVG_STYLE
    )
    back = f'<rect width="{WIDTH}" height="{top:g}" fill="{colors["--back"]}"/>'
    chart = svg(top, f"<style>{style}</style>{back}{''.join(elements)}", title)
    return Chart(chart.replace("<svg", f'<svg width="{WIDTH}" height="{top:g}"', 1))


def svg(height: float, body: str, title: str) -> str:
    """Return an SVG element with a title for screen readers."""
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title, True)}" '
        f'xmlns="http://www.w3.org/2000/svg"><title>{escape(title)}</title>{body}</svg>'
    )


def ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers from low to high."""
    span = max(high - low, 1e-12)
    step = 10 ** np.floor(np.log10(span / 4))
    for factor in (1, 2, 5, 10):
        if span / (step * factor) <= 6:
            step *= factor
            break
    # Multiples of the step, so that 0 is exact; adding 0.0 turns -0.0 into 0.0.
    multiples = np.arange(np.ceil(low / step - 1e-9), np.floor(high / step + 1e-6) + 1)
    return [float(multiple * step) + 0.0 for multiple in multiples]


class _Axis:
    """A horizontal scale from low to high between the labels and the right edge."""

    def __init__(self, low: float, high: float, bottom: float) -> None:
        pad = 0.04 * max(high - low, 1e-9)
        self.low, self.high, self.bottom = low - pad, high + pad, bottom

    def x(self, value: float) -> float:
        fraction = (value - self.low) / (self.high - self.low)
        return LABEL_WIDTH + fraction * (WIDTH - LABEL_WIDTH - 20)

    def draw(self) -> str:
        elements = []
        for tick in ticks(self.low, self.high):
            x = self.x(tick)
            elements.append(
                f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{self.bottom:g}"/>'
                f'<text class="tick" x="{x:.1f}" y="{self.bottom + 14:g}" text-anchor="middle">'
                f"{tick:.4g}</text>"
            )
        return "".join(elements)


def _label(text: str, y: float) -> str:
    """Return a row label, shortened in the middle where it is long."""
    shown = text if len(text) <= 42 else text[:20] + "…" + text[-20:]
    return f'<text x="{LABEL_WIDTH - 10}" y="{y + 4:.1f}" text-anchor="end">{escape(shown)}</text>'


def intervals(
    rows: Sequence[tuple[str, float, float, float]], title: str, zero: bool = False
) -> str:
    """Return a chart (SVG) of rows of name, value, lower and upper bound.

    With `zero`, 0 is marked and intervals that exclude it are emphasized.
    """
    low = min([r[2] for r in rows] + ([0.0] if zero else []))
    high = max([r[3] for r in rows] + ([0.0] if zero else []))
    bottom = ROW_HEIGHT * len(rows) + 6
    axis = _Axis(low, high, bottom)
    elements = [axis.draw()]
    if zero:
        x = axis.x(0.0)
        elements.append(f'<line class="zero" x1="{x:.1f}" x2="{x:.1f}" y1="4" y2="{bottom}"/>')
    for i, (name, value, lo, hi) in enumerate(rows):
        y = ROW_HEIGHT * (i + 0.5) + 4
        excludes_zero = zero and (lo > 0 or hi < 0)
        kind = "mark strong" if excludes_zero else "mark"
        elements.append(
            _label(name, y) + f'<line class="{kind}" x1="{axis.x(lo):.1f}" x2="{axis.x(hi):.1f}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<circle class="{kind}" cx="{axis.x(value):.1f}" cy="{y:.1f}" r="5">'
            f"<title>{escape(name)}: {value:.4f} [{lo:.4f}, {hi:.4f}]</title></circle>"
        )
    return svg(bottom + 22, "".join(elements), title)


def histogram(values: Floats, title: str, bins: int = 20) -> str:
    """Return a histogram of values."""
    counts, edges = np.histogram(values, bins)
    height = 120
    largest = max(int(counts.max()), 1)
    left, right = 40, WIDTH - 20
    width = (right - left) / bins
    elements = []
    for i, count in enumerate(counts.tolist()):
        bar_height = height * count / largest
        tooltip = f"{edges[i]:.3g} to {edges[i + 1]:.3g}: {count}"
        elements.append(
            f'<rect class="bar" x="{left + i * width + 1:.1f}" y="{height + 8 - bar_height:.1f}" '
            f'width="{width - 2:.1f}" height="{bar_height:.1f}"><title>{tooltip}</title></rect>'
        )
    elements += [
        f'<text class="tick" x="{left + i * width:.1f}" y="{height + 24}" '
        f'text-anchor="middle">{edges[i]:.3g}</text>'
        for i in range(0, bins + 1, 5)
    ]
    elements.append(
        f'<text class="tick" x="{left - 6}" y="16" text-anchor="end">{largest}</text>'
        f'<line class="zero" x1="{left}" x2="{right}" y1="{height + 8}" y2="{height + 8}"/>'
    )
    return svg(height + 30, "".join(elements), title)


def outcomes(rows: Sequence[tuple[str, int, int, int]], title: str) -> str:
    """Return a stacked bar per row of (name, wins, ties, losses)."""
    elements = []
    for i, (name, *counts) in enumerate(rows):
        y = ROW_HEIGHT * i + 6
        total = max(sum(counts), 1)
        x = float(LABEL_WIDTH)
        elements.append(_label(name, y + 8))
        for kind, count in zip(("win", "tie", "loss"), counts, strict=True):
            width = (WIDTH - LABEL_WIDTH - 20) * count / total
            if count:
                elements.append(
                    f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="16">'
                    f"<title>{kind}: {count}</title></rect>"
                )
                if width > 24:
                    elements.append(
                        f'<text class="in" x="{x + width / 2:.1f}" y="{y + 12}" '
                        f'text-anchor="middle">{count}</text>'
                    )
            x += width
    return svg(ROW_HEIGHT * len(rows) + 6, "".join(elements), title)


def bars(rows: Sequence[tuple[str, float]], title: str) -> str:
    """Return a horizontal bar per row of (name, value), from zero to the value."""
    values = [v for _, v in rows] or [0.0]
    bottom = ROW_HEIGHT * len(rows) + 6
    axis = _Axis(min([*values, 0.0]), max([*values, 0.0]), bottom)
    zero = axis.x(0.0)
    elements = [axis.draw()]
    for i, (name, value) in enumerate(rows):
        y = ROW_HEIGHT * i + 8
        x, end = sorted((zero, axis.x(value)))
        kind = "win" if value >= 0 else "loss"
        elements.append(
            _label(name, y + 8) + f'<rect class="{kind}" x="{x:.1f}" y="{y}" '
            f'width="{max(end - x, 0.5):.1f}" height="16">'
            f"<title>{escape(name)}: {value:.6g}</title></rect>"
        )
    elements.append(f'<line class="zero" x1="{zero:.1f}" x2="{zero:.1f}" y1="4" y2="{bottom}"/>')
    return svg(bottom + 22, "".join(elements), title)


def line(points: Sequence[Point], title: str) -> str:
    """Return a line through (x, y) points with the highest one marked."""
    xs, ys = zip(*points, strict=True)
    labels = f"{max(ys):.4f}", f"{min(ys):.4f}", f"{min(xs):g}", f"{max(xs):g}"
    return _graph(points, 160, title, labels, max(points, key=lambda p: p[1]))


def steps(thresholds: Floats, levels: Floats, title: str) -> str:
    """Return a step function; there is one level more than there are thresholds."""
    first, last = float(thresholds[0]), float(thresholds[-1])
    margin = 0.08 * (last - first) or 0.5 * abs(first) or 1.0
    ends = [first - margin, *thresholds.tolist(), last + margin]
    corners = [(x, float(y)) for i, y in enumerate(levels) for x in (ends[i], ends[i + 1])]
    labels = f"{levels.max():.3g}", f"{levels.min():.3g}", f"{first:.4g}", f"{last:.4g}"
    return _graph(corners, 90, title, labels)


def _graph(
    points: Sequence[Point],
    height: int,
    title: str,
    labels: Sequence[str],
    marked: Point | None = None,
) -> str:
    """Return one line that fills the chart, with labels for top, bottom, left and right."""
    left, right = 60, WIDTH - 20
    (x_low, x_high), (y_low, y_high) = ((min(v), max(v)) for v in zip(*points, strict=True))
    x_range, y_range = max(x_high - x_low, 1e-12), max(y_high - y_low, 1e-12)

    def to_pixels(x: float, y: float) -> Point:
        return left + (x - x_low) / x_range * (right - left), 8 + (y_high - y) / y_range * height

    elements = [_line("mark", [to_pixels(*point) for point in points])]
    if marked is not None:
        x, y = to_pixels(*marked)
        elements.append(
            f'<circle class="mark strong" cx="{x:.1f}" cy="{y:.1f}" r="4">'
            f"<title>{marked[0]:g}: {marked[1]:.4f}</title></circle>"
        )
    upper, lower, first, last = labels
    elements += [
        f'<text class="tick" x="{left - 6}" y="14" text-anchor="end">{upper}</text>',
        f'<text class="tick" x="{left - 6}" y="{height + 8}" text-anchor="end">{lower}</text>',
        f'<text class="tick" x="{left}" y="{height + 24}">{first}</text>',
        f'<text class="tick" x="{right}" y="{height + 24}" text-anchor="end">{last}</text>',
    ]
    return svg(height + 30, "".join(elements), title)


LEFT, TOP, HEIGHT, LINE_HEIGHT = 46, 10, 260, 14
MIN_MARGIN, CHARACTER_WIDTH = 150, 6.5  # of the names to the right of the chart


def curves(
    series: Mapping[str, Sequence[Point]],
    title: str,
    x_label: str,
    y_label: str,
    bands: Mapping[str, Sequence[Bounds]] | None = None,
    dashed: Collection[str] = (),
    log: bool = False,
    tick_labels: Mapping[float, str] | None = None,
    y_max: float = math.inf,
) -> str:
    """Return a line chart (SVG) of points by the name of their line; `title` is for screen readers.

    `bands` has lower and upper bounds per point, `tick_labels` labels in place of some values of x.
    Values above `y_max` are drawn at the upper edge.
    """
    bounds, labels = bands or {}, tick_labels or {}
    scale = math.log10 if log else float
    xs = [scale(x) for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    ys += [end for line in bounds.values() for interval in line for end in interval]
    (x_low, x_high), (y_low, y_high) = _span(xs), _span([min(y, y_max) for y in ys])
    right = WIDTH - max(MIN_MARGIN, 12 + CHARACTER_WIDTH * max(map(len, series)))

    def height(y: float) -> float:
        return TOP + (y_high - min(y, y_high)) / (y_high - y_low) * HEIGHT

    def to_pixels(x: float, y: float) -> Point:
        return LEFT + (scale(x) - x_low) / (x_high - x_low) * (right - LEFT), height(y)

    marks = _decades(x_low, x_high) if log else ticks(x_low, x_high)
    marks = [x for x in marks if not labels or x < min(labels) / (1.3 if log else 1)]
    elements = [_x_tick(f"{x:g}", to_pixels(x, y_low)[0]) for x in marks]
    elements += [_x_tick(label, to_pixels(x, y_low)[0]) for x, label in labels.items()]
    elements += [_y_tick(y, height(y), right) for y in ticks(y_low, y_high)]
    name_heights = {name: to_pixels(*points[-1])[1] for name, points in series.items()}
    for (name, points), y in zip(series.items(), _separate(name_heights).values(), strict=True):
        number = list(series).index(name) % 6
        kind = f"curve c{number}" + (" dashed" if name in dashed else "")
        elements += _curve(name, points, bounds.get(name, ()), number, kind, labels, to_pixels)
        elements.append(
            f'<text class="c{number}" x="{right + 8:g}" y="{y + 4:.1f}">{escape(name)}</text>'
        )
    y = TOP + HEIGHT + 34
    elements.append(
        f'<text class="tick" x="{LEFT}" y="{y}">{escape(f"{y_label} by {x_label}")}</text>'
    )
    return svg(y + 6, "".join(elements), title)


def _curve(
    name: str,
    points: Sequence[Point],
    bounds: Sequence[Bounds],
    number: int,
    kind: str,
    labels: Mapping[float, str],
    to_pixels: Callable[[float, float], Point],
) -> Iterator[str]:
    """Yield the band, the intervals, the line and the points of one line of a chart."""
    drawn = list(zip(points, bounds, strict=True)) if bounds else []
    if drawn:
        upper = [to_pixels(x, high) for (x, _), (_, high) in drawn]
        lower = [to_pixels(x, low) for (x, _), (low, _) in drawn]
        yield _band(number, [*upper, *reversed(lower)])
    for (x, _), (low, high) in drawn:
        yield _line(f"error c{number}", [to_pixels(x, low), to_pixels(x, high)])
    yield _line(kind, [to_pixels(*point) for point in points])
    intervals = [f" [{low:.3f}, {high:.3f}]" if high > low else "" for low, high in bounds]
    for (x, y), interval in zip(points, intervals or [""] * len(points), strict=True):
        yield _dot(f"{name}, {labels.get(x, f'{x:g}')}: {y:.3f}{interval}", number, to_pixels(x, y))


def _line(kind: str, points: Sequence[Point]) -> str:
    path = " ".join("{:.1f},{:.1f}".format(*point) for point in points)
    return f'<polyline class="{kind}" fill="none" points="{path}"/>'


def _band(number: int, points: Sequence[Point]) -> str:
    path = " ".join("{:.1f},{:.1f}".format(*point) for point in points)
    return f'<polygon class="band c{number}" points="{path}"/>'


def _span(values: Sequence[float]) -> tuple[float, float]:
    """Return the range of values with a small padding; never empty."""
    low, high = min(values), max(values)
    padding = 0.04 * (high - low) or 0.5
    return low - padding, high + padding


def _separate(heights: Mapping[str, float]) -> dict[str, float]:
    """Return the heights of the names, moved down where they would overlap, in the same order."""
    separated: dict[str, float] = {}
    last = -LINE_HEIGHT * 10.0
    for name in sorted(heights, key=lambda n: heights[n]):
        last = max(heights[name], last + LINE_HEIGHT)
        separated[name] = last
    return {name: separated[name] for name in heights}


def _decades(low: float, high: float) -> list[float]:
    """Return 1, 2, 5, 10, 20, .. between two powers of ten."""
    tens = range(math.floor(low), math.ceil(high) + 1)
    numbers = [digit * 10.0**ten for ten in tens for digit in (1, 2, 5)]
    return [x for x in numbers if low <= math.log10(x) <= high]


def _dot(tooltip: str, number: int, point: Point) -> str:
    return (
        f'<circle class="c{number}" cx="{point[0]:.1f}" cy="{point[1]:.1f}" r="3.5">'
        f"<title>{escape(tooltip)}</title></circle>"
    )


def _x_tick(label: str, x: float) -> str:
    bottom = TOP + HEIGHT
    return (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        f'<text class="tick" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">'
        f"{escape(label)}</text>"
    )


def _y_tick(value: float, y: float, right: float) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    )
