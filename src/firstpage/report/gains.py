"""Gains of grades and discounts of places as pictures, beside those that everybody uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from firstpage.data.utility import KINDS, Utility
from firstpage.dcglearn.intervals import Intervals
from firstpage.report.draw import WIDTH, svg, ticks
from firstpage.report.page import figure
from firstpage.types import Floats

LEFT, RIGHT, TOP, HEIGHT, ARM = 46, WIDTH - 150, 10, 220, 6
NAMES = {"exp": "2^grade − 1", "linear": "the grade"}


def drawn(utility: Utility, intervals: Intervals | None = None) -> str:
    """Two figures: what grades are worth, and what places are."""
    sure = "" if intervals is None else f" Bars are {100 * intervals.level:g} % intervals."
    return figure(
        gains(utility, intervals), f"Gain of each grade, from the worst (0) to the best (1).{sure}"
    ) + figure(discounts(utility, intervals), f"Discount of each place; the first is 1.{sure}")


def gains(utility: Utility, intervals: Intervals | None = None) -> str:
    """Learned gains, and the usual two."""
    usual = {
        NAMES[kind]: Utility.standard(kind, utility.grades, utility.places).gains for kind in KINDS
    }
    ends = None if intervals is None else intervals.gains
    names = [str(grade) for grade in utility.grades]
    return _picture("Gains of grades", "gain by grade", names, utility.gains, ends, usual)


def discounts(utility: Utility, intervals: Intervals | None = None) -> str:
    """Learned discounts, and the usual one."""
    usual = {
        "1 / log2(1 + place)": Utility.standard("exp", utility.grades, utility.places).discounts
    }
    ends = None if intervals is None else intervals.discounts
    names = [str(place + 1) for place in range(utility.places)]
    return _picture(
        "Discounts of places", "discount by place", names, utility.discounts, ends, usual
    )


@dataclass(frozen=True)
class _Sheet:
    """Where a value of the so-manieth name is drawn."""

    count: int
    low: float
    high: float

    def x(self, at: int) -> float:
        return LEFT + (at + 0.5) * (RIGHT - LEFT) / self.count

    def y(self, value: float) -> float:
        return TOP + (self.high - value) / (self.high - self.low) * HEIGHT


def _picture(
    title: str, what: str, names: Sequence[str], values: Floats, ends: Floats | None,
    usual: dict[str, Floats],
) -> str:  # fmt: skip
    every = np.concatenate([values, *usual.values(), *([] if ends is None else [ends.ravel()])])
    low, high = min(0.0, float(every.min())), max(1.0, float(every.max()))
    room = 0.04 * (high - low)
    sheet = _Sheet(len(names), low - room, high + room)
    parts = [_up(round(tick, 9) + 0.0, sheet.y(tick)) for tick in ticks(sheet.low, sheet.high)]
    parts += [_name(name, sheet.x(at)) for at, name in enumerate(names)]
    for number, (_, line) in enumerate(usual.items(), 1):
        parts.append(_line(sheet, line, f"curve usual c{number}"))
    parts.append(_line(sheet, values, "curve c0"))
    for at, value in enumerate(values.tolist()):
        lie = None if ends is None else (float(ends[at, 0]), float(ends[at, 1]))
        parts.append(_point(sheet, at, value, names[at], lie))
    parts += _legend(["learned", *usual])
    bottom = TOP + HEIGHT + 34
    parts.append(f'<text class="tick" x="{LEFT}" y="{bottom}">{escape(what)}</text>')
    return svg(bottom + 6, "".join(parts), _said(title, names, values))


def _line(sheet: _Sheet, values: Floats, kind: str) -> str:
    path = " ".join(f"{sheet.x(at):.1f},{sheet.y(v):.1f}" for at, v in enumerate(values.tolist()))
    return f'<polyline class="{kind}" fill="none" points="{path}"/>'


def _point(sheet: _Sheet, at: int, value: float, name: str, lie: tuple[float, float] | None) -> str:
    """A dot, with a bar from the lower to the upper end where they are known."""
    x, told, bar = sheet.x(at), f"{name}: {value:.3f}", ""
    if lie is not None:
        low, high = (sheet.y(end) for end in lie)
        told += f" [{lie[0]:.3f}, {lie[1]:.3f}]"
        ways = (f"M{x - ARM:.1f} {y:.1f}h{2 * ARM}" for y in (low, high))
        bar = f'<path class="whisker" d="M{x:.1f} {low:.1f}V{high:.1f}{"".join(ways)}"/>'
    return (
        f'{bar}<circle class="c0" cx="{x:.1f}" cy="{sheet.y(value):.1f}" r="4">'
        f"<title>{escape(told)}</title></circle>"
    )


def _legend(names: Sequence[str]) -> list[str]:
    x, y = RIGHT + 8, TOP + 12
    return [
        f'<text class="c{number}" x="{x}" y="{y + 18 * number}">{escape(name)}</text>'
        for number, name in enumerate(names)
    ]


def _said(title: str, names: Sequence[str], values: Floats) -> str:
    """The numbers in words, for who does not see the picture."""
    told = ", ".join(f"{name}: {value:.2f}" for name, value in zip(names, values, strict=True))
    return f"{title}: {told}"


def _up(value: float, y: float) -> str:
    return (
        f'<line class="grid" x1="{LEFT}" x2="{RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    )


def _name(name: str, x: float) -> str:
    y = TOP + HEIGHT + 16
    return f'<text class="tick" x="{x:.1f}" y="{y}" text-anchor="middle">{escape(name)}</text>'
