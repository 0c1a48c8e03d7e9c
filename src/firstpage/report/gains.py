"""Gains of grades and discounts of places as pictures, beside those that everybody uses."""

from __future__ import annotations

from collections.abc import Sequence

from firstpage.data.utility import KINDS, Utility
from firstpage.dcglearn.intervals import Intervals
from firstpage.report.curves import curves
from firstpage.report.page import figure
from firstpage.types import Floats

TOP = 3.0  # discounts above it are cut off: the first place, which is 1, is hardly known
NAMES = {"exp": "2^grade − 1", "linear": "the grade"}


def drawn(utility: Utility, intervals: Intervals | None = None) -> str:
    """Two figures: what grades are worth, and what places are."""
    sure = "" if intervals is None else f" The band is the {100 * intervals.level:g} % interval."
    ends = utility.discounts if intervals is None else intervals.discounts
    beyond = f" What is above {TOP:g} is drawn at the edge." if (ends > TOP).any() else ""
    return figure(
        gains(utility, intervals), f"Gain of each grade, from the worst (0) to the best (1).{sure}"
    ) + figure(
        discounts(utility, intervals), f"Discount of each place; the first is 1.{sure}{beyond}"
    )


def gains(utility: Utility, intervals: Intervals | None = None) -> str:
    """Learned gains, and the usual two."""
    usual = {
        NAMES[kind]: Utility.standard(kind, utility.grades, utility.places).gains for kind in KINDS
    }
    ends = None if intervals is None else intervals.gains
    return _picture(
        "Gains of grades", ("grade", "gain"), utility.grades, utility.gains, ends, usual
    )


def discounts(utility: Utility, intervals: Intervals | None = None) -> str:
    """Learned discounts, and the usual one."""
    usual = {
        "1 / log2(1 + place)": Utility.standard("exp", utility.grades, utility.places).discounts
    }
    ends = None if intervals is None else intervals.discounts
    places = range(1, utility.places + 1)
    what = ("place", "discount")
    return _picture("Discounts of places", what, places, utility.discounts, ends, usual)


def _picture(
    title: str, what: tuple[str, str], at: Sequence[int], values: Floats, ends: Floats | None,
    usual: dict[str, Floats],
) -> str:  # fmt: skip
    """Learned values with their intervals, the usual ones dashed; the numbers are said as well,
    for who does not see the picture."""
    lines = {"learned": values, **usual}
    series = {
        name: [(float(x), float(y)) for x, y in zip(at, line, strict=True)]
        for name, line in lines.items()
    }
    bars = {} if ends is None else {"learned": [(float(a), float(b)) for a, b in ends]}
    told = ", ".join(f"{x}: {y:.2f}" for x, y in zip(at, values, strict=True))
    return curves(series, f"{title}: {told}", *what, bars, tuple(usual), top=TOP)
