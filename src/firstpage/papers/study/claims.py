"""Verdicts on what papers say, from values of several runs, or of many queries.

A statement holds if chance alone would rarely (one time in twenty) make it look so; it does not
hold if its opposite does; between the two, these numbers cannot tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from firstpage.papers.study.study import Claim, Verdict
from firstpage.types import Floats

RARE = 0.05


def greater(
    text: str, more: Floats, less: Floats, by: float = 0.0, what: str = "", **whose: Any
) -> Claim:
    """That `more` exceeds `less` by more than `by`, run by run."""
    more, less = _same_runs(more, less)
    chance = _chance(more - less - by)
    why = f"{_short(more.mean())} against {_short(less.mean())}{what}{_told(chance)}"
    return Claim(text, _verdict(chance), why, **whose)


def at_least(text: str, values: Floats, bar: float, what: str = "", **whose: Any) -> Claim:
    """That the mean is `bar` or more."""
    chance = _chance(values - bar)
    why = f"{_spread(values)}{what}, the bar is {bar:g}{_told(chance)}"
    return Claim(text, _verdict(chance), why, **whose)


def below(text: str, values: Floats, bar: float, what: str = "", **whose: Any) -> Claim:
    """That the mean is less than `bar`."""
    chance = _chance(bar - values)
    why = f"{_spread(values)}{what}, the bar is {bar:g}{_told(chance)}"
    return Claim(text, _verdict(chance), why, **whose)


def within(
    text: str, values: Floats, low: float, high: float, what: str = "", **whose: Any
) -> Claim:
    """That the mean lies in a range; a word such as "about" has no finer test."""
    verdict: Verdict = "holds" if low <= values.mean() <= high else "does not hold"
    return Claim(text, verdict, f"{_spread(values)}{what}, asked for {low:g} to {high:g}", **whose)


def no_greater(
    text: str, later: Floats, sooner: Floats, slack: float, what: str = "", **whose: Any
) -> Claim:
    """That `later` does not exceed `sooner` by `slack` or more."""
    later, sooner = _same_runs(later, sooner)
    chance = _chance(slack - (later - sooner))
    why = (
        f"{_short(later.mean())} against {_short(sooner.mean())}{what}, less than {slack:g} more"
        f"{_told(chance)}"
    )
    return Claim(text, _verdict(chance), why, **whose)


def alike(
    text: str, one: Floats, other: Floats, margin: float, what: str = "", **whose: Any
) -> Claim:
    """That the two differ by less than `margin`, either way: what "comparable" can be held to."""
    one, other = _same_runs(one, other)
    chances = [_chance(margin - (one - other)), _chance(margin + (one - other))]
    chance = max(chances)
    apart = float((one - other).mean())
    why = (
        f"{_short(one.mean())} against {_short(other.mean())}{what}, {apart:+.4f} apart, less "
        f"than {margin:g} asked for{_told(chance)}"
    )
    return Claim(text, _verdict(chance), why, **whose)


def reaches(text: str, value: float, bar: float, slack: float, **whose: Any) -> Claim:
    """That a number is not below another one by more than `slack`; no test, as bars are set."""
    verdict: Verdict = "holds" if value >= bar - slack else "does not hold"
    why = f"{_short(value)}, the bar is {_short(bar)} less {slack:g} ({value - bar:+.4f})"
    return Claim(text, verdict, why, **whose)


def every(text: str, parts: Sequence[Claim], **whose: Any) -> Claim:
    """That all parts hold; it does not if one does not."""
    verdicts = [part.verdict for part in parts]
    worst: Verdict = "holds"
    if "does not hold" in verdicts:
        worst = "does not hold"
    elif "cannot be tested" in verdicts:
        worst = "cannot be tested"
    told = [
        f"{part.text}: {part.why}" + (", against" if part.verdict == "does not hold" else "")
        for part in parts
    ]
    return Claim(text, worst, "; ".join(told), **whose)


def _same_runs(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """The runs that both have; the first ones are the same."""
    n = min(len(one), len(other))
    return one[:n], other[:n]


def _chance(apart: Floats) -> float:
    """How rarely a mean as high as this would come up if the true one were zero (t test)."""
    n, mean = len(apart), float(apart.mean())
    if n < 2:
        return float("nan")
    if float(apart.std(ddof=1)) / np.sqrt(n) <= 1e-12:
        return 0.5 if abs(mean) <= 1e-12 else float(mean < 0)
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(apart, 0.0, alternative="greater").pvalue)


def _verdict(chance: float) -> Verdict:
    if chance <= RARE:
        return "holds"
    return "does not hold" if chance >= 1 - RARE else "cannot be tested"


def _told(chance: float) -> str:
    if np.isnan(chance):
        return "; one run cannot tell"
    less = min(chance, 1 - chance)
    shown = "p < .001" if less < 0.001 else f"p = {less:.3f}".replace("0.", ".")
    return f"; {shown}" + ("" if less <= RARE else ", too little to tell")


def _spread(values: Floats) -> str:
    if len(values) < 2:
        return _short(values.mean())
    return f"{_short(values.mean())} ± {_short(values.std(ddof=1) / np.sqrt(len(values)))}"


def _short(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"
