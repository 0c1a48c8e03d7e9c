"""Several curves in one picture, each named at its end."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

from firstpage.report.draw import WIDTH, svg, ticks

LEFT, TOP, HEIGHT, GAP = 46, 10, 260, 14
MARGIN, LETTER = 150, 6.5  # right of the picture, for the names: at least, and what a letter takes


def curves(
    series: Mapping[str, Sequence[tuple[float, float]]], title: str, across: str, up: str,
    errors: Mapping[str, Sequence[float]] | None = None, dashed: Collection[str] = (),
) -> str:  # fmt: skip
    """A line a name through its (x, y) points; `across` and `up` say what the axes are.

    `errors`: how far the truth may be off at each point of a line, either way; drawn as bars.
    """
    off = errors or {}
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for name, points in series.items() for y in _ends(points, off.get(name, ()))]
    (x_low, x_high), (y_low, y_high) = _span(xs), _span(ys)
    right = WIDTH - max(MARGIN, 12 + LETTER * max(map(len, series)))

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (x - x_low) / (x_high - x_low) * (right - LEFT),
            TOP + (y_high - y) / (y_high - y_low) * HEIGHT,
        )

    parts = [_across(x, place(x, y_low)[0]) for x in ticks(x_low, x_high)]
    parts += [_up(y, place(x_low, y)[1], right) for y in ticks(y_low, y_high)]
    ends = {name: place(*points[-1])[1] for name, points in series.items()}
    for (name, points), y in zip(series.items(), _apart(ends).values(), strict=True):
        number = list(series).index(name) % 6
        for (x, at), far in zip(points, off.get(name, ()), strict=False):
            parts.append(_line(f"error c{number}", [place(x, at - far), place(x, at + far)]))
        kind = f"curve c{number}" + (" dashed" if name in dashed else "")
        parts.append(_line(kind, [place(*point) for point in points]))
        parts += [_dot(name, number, point, place(*point)) for point in points]
        parts.append(
            f'<text class="c{number}" x="{right + 8:g}" y="{y + 4:.1f}">{escape(name)}</text>'
        )
    y = TOP + HEIGHT + 34
    parts.append(f'<text class="tick" x="{LEFT}" y="{y}">{escape(f"{up} over {across}")}</text>')
    return svg(y + 6, "".join(parts), title)


def _ends(points: Sequence[tuple[float, float]], errors: Sequence[float]) -> list[float]:
    """All heights that a line and its bars reach."""
    bars = [y + far * side for (_, y), far in zip(points, errors, strict=False) for side in (-1, 1)]
    return [y for _, y in points] + bars


def _line(kind: str, points: Sequence[tuple[float, float]]) -> str:
    path = " ".join("{:.1f},{:.1f}".format(*point) for point in points)
    return f'<polyline class="{kind}" fill="none" points="{path}"/>'


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


def _dot(name: str, number: int, point: tuple[float, float], at: tuple[float, float]) -> str:
    return (
        f'<circle class="c{number}" cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="3.5">'
        f"<title>{escape(name)}, {point[0]:g}: {point[1]:.3f}</title></circle>"
    )


def _across(value: float, x: float) -> str:
    bottom = TOP + HEIGHT
    return (
        f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>'
        f'<text class="tick" x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>'
    )


def _up(value: float, y: float, right: float) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    )
