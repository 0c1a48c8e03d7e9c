"""A learned measure to look at: gains, discounts, and how sure they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from firstpage.data.preferences.utility import NAMED_GAINS, Utility
from firstpage.dcglearn.intervals import Intervals
from firstpage.report.draw import curves
from firstpage.report.page import figure, page, paragraph
from firstpage.table import Table
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
        discounts(utility, intervals),
        f"Discount of each place; the first is 1.{sure}{beyond}{_undetermined(utility)}",
    )


def _undetermined(utility: Utility) -> str:
    """Name the places at which no pair differs, for a caption."""
    places = utility.about.get("undetermined_places")
    return f" Not determined, as no pair differs there: {_listed(places)}." if places else ""


def _listed(places: Sequence[int]) -> str:
    return f"place{'s' * (len(places) > 1)} {', '.join(map(str, places))}"


def gains(utility: Utility, intervals: Intervals | None = None) -> str:
    """Learned gains, and the usual two."""
    usual = {
        NAMES[kind]: Utility.from_dcg(kind, utility.grades, utility.n_positions).gains
        for kind in NAMED_GAINS
    }
    ends = None if intervals is None else intervals.gains
    return _picture(
        "Gains of grades", ("grade", "gain"), utility.grades, utility.gains, ends, usual
    )


def discounts(utility: Utility, intervals: Intervals | None = None) -> str:
    """Learned discounts, and the usual one."""
    usual = {
        "1 / log2(1 + place)": Utility.from_dcg(
            "exp", utility.grades, utility.n_positions
        ).discounts
    }
    ends = None if intervals is None else intervals.discounts
    places = range(1, utility.n_positions + 1)
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
    told = ", ".join(f"{x}: {_number(y, 2)}" for x, y in zip(at, values, strict=True))
    return curves(series, f"{title}: {told}", *what, bars, tuple(usual), top=TOP)


BAR = 24  # characters of a bar in text


def utility_text(utility: Utility) -> str:
    """For a terminal: a line a grade and a place, with bars and intervals."""
    parts = [*_facts(utility), ""]
    for name, names, values in _parts(utility):
        parts.append(name)
        lines = _lines(names, values, _ends(utility, name))
        parts += lines if name == "Gains" else _determined(utility, lines)
    for name, part in utility.segments.items():
        gains = ", ".join(_number(g, 2) for g in part.gains)
        parts.append(f"segment {name}: {part.about.get('pairs', '?')} pairs, gains {gains}")
    return "\n".join(parts)


def _determined(utility: Utility, lines: list[str]) -> list[str]:
    """The lines of places; one at which no pair differs says so instead of a number."""
    unknown = utility.about.get("undetermined_places", [])
    found = [line for k, line in enumerate(lines, 1) if k not in unknown]
    if unknown:
        found.append(f"  not determined, as no pair differs there: {_listed(unknown)}")
    if any(f"> {TOP:g}" in line for line in lines):
        found.append(
            f"  Discounts are relative to place 1, which is hardly known here: what is above "
            f"{TOP:g} is not told in full."
        )
    return found


def utility_page(utility: Utility, title: str) -> str:
    """The same as a page with pictures."""
    pictures = drawn(utility, Intervals.held(utility))
    facts = [paragraph(fact[0].upper() + fact[1:]) for fact in _facts(utility)]
    sections = [("Gains and discounts", [pictures]), ("Facts", facts)]
    if utility.about.get("validated"):
        sections.append(("The choice of C", [_path(utility.about["validated"])]))
    sections.append(("Worth of a grade at a place", [_weights(utility).html()]))
    lead = "What a document of each grade is worth at each place, learned from preferences."
    return page(f"Measure {title}", lead, sections)


def _parts(utility: Utility) -> list[tuple[str, list[str], Floats]]:
    last = utility.about.get("discounts", "").startswith("relative")
    places = "Discounts (relative to the last place)" if last else "Discounts"
    return [
        ("Gains", [f"grade {g}" for g in utility.grades], utility.gains),
        (places, [f"place {k + 1}" for k in range(utility.n_positions)], utility.discounts),
    ]


def _ends(utility: Utility, name: str) -> Floats:
    """Lower and upper ends; where none are known, the value itself."""
    key = "gains" if name == "Gains" else "discounts"
    values, held = getattr(utility, key), Intervals.held(utility)
    found: Floats = np.column_stack([values, values]) if held is None else getattr(held, key)
    return found


def _lines(names: Sequence[str], values: Floats, ends: Floats) -> list[str]:
    top = max(float(np.abs(values).max()), 1e-12)
    wide = max(len(name) for name in names)
    found = []
    for name, value, (low, high) in zip(names, values, ends, strict=True):
        bar = "█" * round(BAR * max(float(value), 0.0) / top)
        sure = f"  [{_number(low, 3)}, {_number(high, 3)}]" if high > low else ""
        found.append(f"  {name:<{wide}}  {_number(value, 4):>7}{sure}  {bar}".rstrip())
    return found


def _number(value: float, digits: int) -> str:
    """A gain or discount without a negative zero; beyond TOP it is only said to be beyond."""
    if abs(value) > TOP:
        return f"{'>' if value > 0 else '<'} {np.sign(value) * TOP:g}"
    return _plain(value, digits)


def _plain(value: float, digits: int) -> str:
    """A rounded number, without the sign of a zero."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}"


def _facts(utility: Utility) -> list[str]:
    """What the file says of its making, a line each."""
    about = utility.about
    found = []
    if "pairs" in about and "accuracy" in about:
        found.append(
            f"pairs: {about['pairs']}, of them ties: {about['ties']}; C = {about['C']:g}; agrees "
            f"with {about['accuracy']:.1%} of the preferences, as gains times discounts with "
            f"{about['accuracy_of_gains']:.1%}"
        )
    if held := about.get("validated"):
        at = int(np.argmax(np.round(held["accuracy"], 12)))
        gains = held.get("accuracy_of_gains", held["accuracy"])[at]
        found.append(
            f"on pairs held out: {held['accuracy'][at]:.1%}, as gains times discounts {gains:.1%} "
            f"(at the best of {len(held['C'])} values of C)"
        )
    if "rank_one_share" in about:
        test = about.get("position_test")
        p = f"; that gains do not depend on the place: p = {test['p']:.2f}" if test else ""
        found.append(f"rank-one share {about['rank_one_share']:.4f}{p}")
    if str(about.get("discounts", "")).startswith("relative"):
        found.append(
            "every pair orders the same grades, so discounts are known less the last one only"
        )
    if "against_dcg" in about:
        found.append(about["against_dcg"]["text"])
    if "advice" in about:
        found.append(about["advice"]["text"])
    return found


def _path(held: dict[str, Any]) -> str:
    points = [(float(np.log10(c)), a) for c, a in zip(held["C"], held["accuracy"], strict=True)]
    series = {"weights": points}
    if "accuracy_of_gains" in held:
        series["gains"] = [
            (x, a) for (x, _), a in zip(points, held["accuracy_of_gains"], strict=True)
        ]
    drawing = curves(series, "Accuracy over C", "log10 C", "accuracy")
    return figure(drawing, "Accuracy on pairs held out, for each C tried.")


def _weights(utility: Utility) -> Table:
    head = ["place", *(f"grade {g}" for g in utility.grades)]
    rows = [[str(k), *(_plain(v, 4) for v in row)] for k, row in enumerate(utility.weights, 1)]
    return Table(head, rows, note="Weights as learned; a difference of 1 is a margin.")
