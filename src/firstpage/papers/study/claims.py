"""Verdicts on claims, from the values of several runs or of many queries.

A claim holds if a one-sided t test is significant at the level .05; it does not hold if the test
of the opposite is; otherwise the verdict is inconclusive.  Runs that are identical need no test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.evaluation.measures import t_tails
from firstpage.papers.study.study import Cells, Claim, ClaimVerdict

ALPHA = 0.05  # significance level
ROUNDING_EPS = 1e-12


def greater(
    text: str, higher: Floats, lower: Floats, margin: float = 0.0, detail: str = "", **source: Any
) -> Claim:
    """Return the claim that `higher` exceeds `lower` by more than `margin` (paired test)."""
    higher, lower = _common_runs(higher, lower)
    verdict, significance = _test(higher - lower - margin)
    evidence = f"{_format(higher.mean())} against {_format(lower.mean())}{detail}{significance}"
    return Claim(text, verdict, evidence, **source)


def greater_at(
    cells: Cells, higher: Mapping[str, Any], lower: Mapping[str, Any], **cases: Iterable[Any]
) -> list[Claim]:
    """Return a claim per value of a label: that the cells `higher` exceed the cells `lower`."""
    labels = [{label: value} for label, values in cases.items() for value in values]
    return [
        greater(
            str(*case.values()), cells.samples(**case, **higher), cells.samples(**case, **lower)
        )
        for case in labels
    ]


def at_least(text: str, values: Floats, threshold: float, detail: str = "", **source: Any) -> Claim:
    """Return the claim that the mean is at least `threshold`."""
    verdict, significance = _test(values - threshold)
    evidence = f"{_mean_with_error(values)}{detail}, threshold {threshold:g}{significance}"
    return Claim(text, verdict, evidence, **source)


def below(text: str, values: Floats, threshold: float, detail: str = "", **source: Any) -> Claim:
    """Return the claim that the mean is less than `threshold`."""
    verdict, significance = _test(threshold - values)
    evidence = f"{_mean_with_error(values)}{detail}, threshold {threshold:g}{significance}"
    return Claim(text, verdict, evidence, **source)


def within(
    text: str, values: Floats, low: float, high: float, detail: str = "", **source: Any
) -> Claim:
    """Return the claim that the mean is in a range; there is no significance test."""
    verdict: ClaimVerdict = "holds" if low <= values.mean() <= high else "does not hold"
    evidence = f"{_mean_with_error(values)}{detail}, required range {low:g} to {high:g}"
    return Claim(text, verdict, evidence, **source)


def no_greater(
    text: str, later: Floats, earlier: Floats, tolerance: float, detail: str = "", **source: Any
) -> Claim:
    """Return the claim that `later` does not exceed `earlier` by `tolerance` or more."""
    later, earlier = _common_runs(later, earlier)
    verdict, significance = _test(tolerance - (later - earlier))
    evidence = (
        f"{_format(later.mean())} against {_format(earlier.mean())}{detail}, required less than "
        f"{tolerance:g} more{significance}"
    )
    return Claim(text, verdict, evidence, **source)


def equivalent(
    text: str, first: Floats, second: Floats, margin: float, detail: str = "", **source: Any
) -> Claim:
    """Return the claim that two means differ by less than `margin` (two one-sided tests)."""
    first, second = _common_runs(first, second)
    verdict, significance = _test(margin - (first - second), margin + (first - second))
    difference = float((first - second).mean())
    evidence = (
        f"{_format(first.mean())} against {_format(second.mean())}{detail}, difference "
        f"{difference:+.4f}, required less than {margin:g}{significance}"
    )
    return Claim(text, verdict, evidence, **source)


def reaches(text: str, value: float, threshold: float, tolerance: float, **source: Any) -> Claim:
    """Return the claim that a value is at most `tolerance` below a threshold; no test."""
    verdict: ClaimVerdict = "holds" if value >= threshold - tolerance else "does not hold"
    evidence = (
        f"{_format(value)}, threshold {_format(threshold)} less {tolerance:g} "
        f"({value - threshold:+.4f})"
    )
    return Claim(text, verdict, evidence, **source)


def all_hold(text: str, claims: Sequence[Claim], **source: Any) -> Claim:
    """Return the claim that all claims hold; it does not hold if one of them does not."""
    verdicts = [claim.verdict for claim in claims]
    verdict: ClaimVerdict = "holds"
    if "does not hold" in verdicts:
        verdict = "does not hold"
    elif "inconclusive" in verdicts:
        verdict = "inconclusive"
    evidence = [
        f"{claim.text}: {claim.evidence}"
        + (", against the claim" if claim.verdict == "does not hold" else "")
        for claim in claims
    ]
    return Claim(text, verdict, "; ".join(evidence), **source)


def _common_runs(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return the runs that both have; the first ones are paired."""
    n = min(len(first), len(second))
    return first[:n], second[:n]


def _test(*differences: Floats) -> tuple[ClaimVerdict, str]:
    """Return whether all means are above 0, and the significance as the end of a sentence."""
    p_value = max(_p_value(each) for each in differences)
    constant = all(len(each) > 1 and _standard_error(each) <= ROUNDING_EPS for each in differences)
    text = "; all differences are equal" if constant else _significance(p_value)
    return _verdict(p_value), text


def _p_value(differences: Floats) -> float:
    """Return the p-value of a one-sided t test of a mean above 0; NaN for a single value."""
    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return float("nan")
    error = _standard_error(differences)
    if error <= ROUNDING_EPS:
        return 0.5 if abs(mean) <= ROUNDING_EPS else float(mean < 0)
    return t_tails(mean / error, n - 1)[1]


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1)) / math.sqrt(len(values))


def _verdict(p_value: float) -> ClaimVerdict:
    if p_value <= ALPHA:
        return "holds"
    return "does not hold" if p_value >= 1 - ALPHA else "inconclusive"


def _significance(p_value: float) -> str:
    if np.isnan(p_value):
        return "; no test with a single run"
    p_value = min(p_value, 1 - p_value)
    p_text = "p < .001" if p_value < 0.001 else f"p = {p_value:.3f}".replace("0.", ".")
    return f"; {p_text}" + ("" if p_value <= ALPHA else ", not significant")


def _mean_with_error(values: Floats) -> str:
    if len(values) < 2:
        return _format(values.mean())
    return f"{_format(values.mean())} ± {_format(_standard_error(values))}"


def _format(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"
