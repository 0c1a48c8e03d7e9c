"""Several curves in one picture, each named at its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from firstpage.report.draw import WIDTH, svg, ticks

LEFT, RIGHT, TOP, HEIGHT, GAP = 46, WIDTH - 150, 10, 260, 14


def curves(
    series: Mapping[str, Sequence[tuple[float, float]]], title: str, across: str, up: str
) -> str:
    """A line a name through its (x, y) points; `across` and `up` say what the axes are."""
    xs = [x for points in series.values() for x, _ in points]
    ys = [y for points in series.values() for _, y in points]
    (x_low, x_high), (y_low, y_high) = _span(xs), _span(ys)

    def place(x: float, y: float) -> tuple[float, float]:
        return (
            LEFT + (x - x_low) / (x_high - x_low) * (RIGHT - LEFT),
            TOP + (y_high - y) / (y_high - y_low) * HEIGHT,
        )

    parts = [_across(x, place(x, y_low)[0]) for x in ticks(x_low, x_high)]
    parts += [_up(y, place(x_low, y)[1]) for y in ticks(y_low, y_high)]
    ends = {name: place(*points[-1])[1] for name, points in series.items()}
    for (name, points), y in zip(series.items(), _apart(ends).values(), strict=True):
        number = list(series).index(name) % 6
        path = " ".join("{:.1f},{:.1f}".format(*place(*point)) for point in points)
        parts.append(f'<polyline class="curve c{number}" fill="none" points="{path}"/>')
        parts += [_dot(name, number, point, place(*point)) for point in points]
        parts.append(
            f'<text class="c{number}" x="{RIGHT + 8}" y="{y + 4:.1f}">{escape(name)}</text>'
        )
    y = TOP + HEIGHT + 34
    parts.append(f'<text class="tick" x="{LEFT}" y="{y}">{escape(f"{up} over {across}")}</text>')
    return svg(y + 6, "".join(parts), title)


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


def _up(value: float, y: float) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    )
