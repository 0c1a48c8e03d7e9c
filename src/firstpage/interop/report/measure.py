"""Reports on a learned measure: gains, discounts and their intervals, as text and HTML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from firstpage.core import Floats, Table, curves
from firstpage.data.preferences import NAMED_GAINS, Utility
from firstpage.evaluation.dcglearn import Intervals
from firstpage.evaluation.measures import p_phrase
from firstpage.interop.report.html_page import figure, page, paragraph

MAX_SHOWN = 3.0  # larger discounts occur where the first one, which is 1, is poorly determined
GAIN_NAMES = {"exp": "2^grade − 1", "linear": "the grade"}


def utility_figures(utility: Utility, intervals: Intervals | None = None) -> str:
    """Return figures of the gains and of the discounts of a measure."""
    band = "" if intervals is None else f" The band is the {100 * intervals.level:g} % interval."
    shown = utility.discounts if intervals is None else intervals.discounts
    at_edge = f" Values above {MAX_SHOWN:g} are drawn at the upper edge."
    beyond = at_edge if (shown > MAX_SHOWN).any() else ""
    return figure(
        gains(utility, intervals), f"Gain of each grade, from the worst (0) to the best (1).{band}"
    ) + figure(
        discounts(utility, intervals),
        f"Discount of each position; the first is 1.{band}{beyond}{_undetermined(utility)}",
    )


def _undetermined(utility: Utility) -> str:
    """Return a sentence naming the positions at which no pair differs."""
    positions = utility.about.get("undetermined_positions")
    if not positions:
        return ""
    return f" Not determined, because no pair differs there: {_listed(positions)}."


def _listed(positions: Sequence[int]) -> str:
    return f"position{'s' * (len(positions) > 1)} {', '.join(map(str, positions))}"


def gains(utility: Utility, intervals: Intervals | None = None) -> str:
    """Return a drawing of the learned gains beside the two standard ones."""
    standard = {
        GAIN_NAMES[kind]: Utility.from_dcg(kind, utility.grades, utility.n_positions).gains
        for kind in NAMED_GAINS
    }
    bounds = None if intervals is None else intervals.gains
    labels = ("grade", "gain")
    return _drawing("Gains of grades", labels, utility.grades, utility.gains, bounds, standard)


def discounts(utility: Utility, intervals: Intervals | None = None) -> str:
    """Return a drawing of the learned discounts beside the standard one."""
    dcg = Utility.from_dcg("exp", utility.grades, utility.n_positions)
    standard = {"1 / log2(1 + position)": dcg.discounts}
    bounds = None if intervals is None else intervals.discounts
    positions = range(1, utility.n_positions + 1)
    labels = ("position", "discount")
    return _drawing(
        "Discounts of positions", labels, positions, utility.discounts, bounds, standard
    )


def _drawing(
    title: str,
    labels: tuple[str, str],
    xs: Sequence[int],
    values: Floats,
    bounds: Floats | None,
    standard: dict[str, Floats],
) -> str:
    """Return learned values with their intervals, and the standard ones dashed.

    The title contains the numbers, for screen readers.
    """
    lines = {"learned": values, **standard}
    series = {
        name: [(float(x), float(y)) for x, y in zip(xs, line, strict=True)]
        for name, line in lines.items()
    }
    bands = {} if bounds is None else {"learned": [(float(a), float(b)) for a, b in bounds]}
    numbers = ", ".join(f"{x}: {_number(y, 2)}" for x, y in zip(xs, values, strict=True))
    return curves(series, f"{title}: {numbers}", *labels, bands, tuple(standard), y_max=MAX_SHOWN)


BAR_WIDTH = 24  # characters of the longest bar in text


def utility_text(utility: Utility) -> str:
    """Return a report on a measure as plain text."""
    lines = [*_facts(utility), ""]
    for heading, names, values in _quantities(utility):
        lines.append(heading)
        rows = _value_lines(names, values, _bounds(utility, heading))
        lines += rows if heading == "Gains" else _discount_lines(utility, rows)
    for name, segment in utility.segments.items():
        segment_gains = ", ".join(_number(g, 2) for g in segment.gains)
        pairs = segment.about.get("pairs", "?")
        lines.append(f"segment {name}: {pairs} pairs, gains {segment_gains}")
    return "\n".join(lines)


def _discount_lines(utility: Utility, rows: list[str]) -> list[str]:
    """Return the lines of determined positions, and notes on the others."""
    undetermined = utility.about.get("undetermined_positions", [])
    lines = [row for k, row in enumerate(rows, 1) if k not in undetermined]
    if undetermined:
        lines.append(f"  not determined, because no pair differs there: {_listed(undetermined)}")
    if any(f"> {MAX_SHOWN:g}" in row for row in rows):
        lines.append(
            f"  Discounts are relative to position 1, whose weight is poorly determined here: "
            f"values above {MAX_SHOWN:g} are shown as > {MAX_SHOWN:g}."
        )
    return lines


def utility_page(utility: Utility, title: str) -> str:
    """Return a report on a measure as an HTML page."""
    figures = utility_figures(utility, Intervals.from_utility(utility))
    facts = [paragraph(fact[0].upper() + fact[1:]) for fact in _facts(utility)]
    sections = [("Gains and discounts", [figures]), ("Facts", facts)]
    if utility.about.get("validation_curve"):
        sections.append(("Choice of C", [_validation_figure(utility.about["validation_curve"])]))
    sections.append(("Weights of positions and grades", [_weights_table(utility).html()]))
    lead = "Value of a document of each grade at each position, learned from preferences."
    return page(f"Measure {title}", lead, sections)


def _quantities(utility: Utility) -> list[tuple[str, list[str], Floats]]:
    """Return heading, names and values of the gains and of the discounts."""
    relative = utility.about.get("relative_discounts", False)
    heading = "Discounts (relative to the last position)" if relative else "Discounts"
    positions = [f"position {k + 1}" for k in range(utility.n_positions)]
    return [
        ("Gains", [f"grade {g}" for g in utility.grades], utility.gains),
        (heading, positions, utility.discounts),
    ]


def _bounds(utility: Utility, heading: str) -> Floats:
    """Return lower and upper bounds; without intervals, the values themselves."""
    field = "gains" if heading == "Gains" else "discounts"
    values, intervals = getattr(utility, field), Intervals.from_utility(utility)
    if intervals is None:
        return np.column_stack([values, values])
    bounds: Floats = getattr(intervals, field)
    return bounds


def _value_lines(names: Sequence[str], values: Floats, bounds: Floats) -> list[str]:
    largest = max(float(np.abs(values).max()), 1e-12)
    width = max(len(name) for name in names)
    lines = []
    for name, value, (low, high) in zip(names, values, bounds, strict=True):
        bar = "█" * round(BAR_WIDTH * max(float(value), 0.0) / largest)
        interval = f"  [{_number(low, 3)}, {_number(high, 3)}]" if high > low else ""
        lines.append(f"  {name:<{width}}  {_number(value, 4):>7}{interval}  {bar}".rstrip())
    return lines


def _number(value: float, digits: int) -> str:
    """Return a rounded gain or discount; beyond MAX_SHOWN only that it is beyond."""
    if abs(value) > MAX_SHOWN:
        return f"{'>' if value > 0 else '<'} {np.sign(value) * MAX_SHOWN:g}"
    return _rounded(value, digits)


def _rounded(value: float, digits: int) -> str:
    """Return a rounded number; a negative zero loses its sign."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}"


def _facts(utility: Utility) -> list[str]:
    """Return the metadata of the fit, a line each."""
    about = utility.about
    facts = []
    if "pairs" in about and "accuracy" in about:
        facts.append(
            f"{about['pairs']} pairs, {about['ties']} of them ties; C = {about['C']:g}; agrees "
            f"with {about['accuracy']:.1%} of the preferences (gains times discounts: "
            f"{about['accuracy_of_gains']:.1%})"
        )
    if validated := about.get("validation_curve"):
        best = int(np.argmax(np.round(validated["accuracy"], 12)))
        of_gains = validated.get("accuracy_of_gains", validated["accuracy"])[best]
        facts.append(
            f"on held-out pairs: {validated['accuracy'][best]:.1%} (gains times discounts: "
            f"{of_gains:.1%}), at the best of {len(validated['C'])} values of C"
        )
    if "rank_one_fraction" in about:
        test = about.get("position_test")
        fact = f"rank-one fraction {about['rank_one_fraction']:.4f}"
        if test:
            fact += f"; test that gains do not depend on the position: {p_phrase(test['p'])}"
        facts.append(fact)
    if about.get("relative_discounts"):
        facts.append(
            "both lists of every pair have the same grades, so discounts are determined only "
            "relative to the last one"
        )
    if "dcg_comparison" in about:
        facts.append(about["dcg_comparison"]["text"])
    if "advice" in about:
        facts.append(about["advice"]["text"])
    return facts


def _validation_figure(validated: dict[str, Any]) -> str:
    points = [
        (float(np.log10(c)), a) for c, a in zip(validated["C"], validated["accuracy"], strict=True)
    ]
    series = {"weights": points}
    if "accuracy_of_gains" in validated:
        series["gains"] = [
            (x, a) for (x, _), a in zip(points, validated["accuracy_of_gains"], strict=True)
        ]
    drawing = curves(series, "Accuracy by C", "log10 C", "accuracy")
    return figure(drawing, "Accuracy on held-out pairs for each value of C.")


def _weights_table(utility: Utility) -> Table:
    head = ["position", *(f"grade {g}" for g in utility.grades)]
    rows = [[str(k), *(_rounded(v, 4) for v in row)] for k, row in enumerate(utility.weights, 1)]
    return Table(head, rows, note="Learned weights; the margin of a preference is 1.")
