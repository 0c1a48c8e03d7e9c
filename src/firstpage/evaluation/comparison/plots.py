"""Charts of evaluations and comparisons; pages and `plot` draw the same ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from firstpage.core import charts

if TYPE_CHECKING:
    from firstpage.evaluation.comparison.comparison import Comparison
    from firstpage.evaluation.measures.evaluation import Evaluation

Drawing = tuple[str, str]  # an SVG element and its caption


def means_of_measures(evaluation: Evaluation) -> list[Drawing]:
    """Return a chart of the means of one system, if they have intervals."""
    if not evaluation.intervals:
        return []
    rows = [(text, evaluation[text], *evaluation.intervals[text]) for text in evaluation.texts]
    return [(charts.intervals(rows, "means"), "Means with 95 % bootstrap intervals.")]


def means_of_systems(evaluations: Sequence[Evaluation], text: str) -> list[Drawing]:
    """Return a chart of the means of several systems, if all have intervals."""
    if not all(text in e.intervals for e in evaluations):
        return []
    rows = [(e.name, e[text], *e.intervals[text]) for e in evaluations]
    return [(charts.intervals(rows, text), f"{text}: means with 95 % intervals.")]


def distributions(
    evaluations: Sequence[Evaluation], texts: Sequence[str], named: bool
) -> list[Drawing]:
    """Return a histogram over the queries per system and measure."""
    return [
        (
            charts.histogram(e.per_query(text), text),
            f"{text}{f' of {e.name}' if named else ''}: number of queries by value.",
        )
        for e in evaluations
        for text in texts
    ]


def differences_of_systems(comparison: Comparison, text: str) -> list[Drawing]:
    """Return charts of the differences in a measure, and of the queries won and lost."""
    rows = [d for d in comparison.differences if d.measure == text]
    gaps = [(f"{d.system} − {d.against}", d.difference, d.low, d.high) for d in rows]
    wins = [(f"{d.system} − {d.against}", d.wins, d.ties, d.losses) for d in rows]
    return [
        (
            charts.intervals(gaps, f"differences in {text}", zero=True),
            "Differences with 95 % intervals; blue where the interval excludes 0.",
        ),
        (charts.outcomes(wins, "wins, ties, losses"), "Queries won, tied and lost."),
    ]
