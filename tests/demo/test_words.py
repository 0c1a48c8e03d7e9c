"""Sentences follow from the figures: better, worse, sure or not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import norm

import firstpage as fp
from firstpage.demo import words
from firstpage.demo.labeling import Labels
from firstpage.demo.rankings import Compared, compared, extremes, first_right

LABELS = cast(Labels, SimpleNamespace(minutes_each=6.0))


def found(better: float, queries: int, seed: int = 0) -> tuple[Compared, fp.Dataset]:
    """A learned ranking that is the truth and noise, against one that is noise and some truth."""
    data = fp.Synthetic(queries=queries, docs=12, features=3, grades=4).dataset()
    noise = np.random.default_rng(seed).standard_normal((2, data.n_docs))
    plain = {"plain": 0.5 * data.y + noise[0], "poor": -data.y}
    learned = {"learned": (0.5 + better) * data.y + noise[1], "poorer": -data.y}
    return compared(plain, learned, data), data


@pytest.mark.slow
def test_a_sure_winner() -> None:
    c, _ = found(2.0, 60)
    assert (c.baseline, c.best, c.sure) == ("plain", "learned", True)
    assert words.verdict(c).startswith("Yes: on these 60 questions the learned ranking learned")
    assert "unlikely cause" in words.verdict(c)
    assert words.advice(c, LABELS).startswith("Switch to learned")


def test_a_winner_that_may_be_chance() -> None:
    c = next(c for c, _ in (found(0.05, 12, seed) for seed in range(20))
             if c.verdict.difference > 0 and not c.sure and (c.needed or 0) > 12)  # fmt: skip
    assert words.verdict(c).startswith("Perhaps")
    assert "may be chance" in words.verdict(c)
    assert c.needed is not None
    hours = (c.needed - 12) * 6.0 / 60
    assert f"about {c.needed} questions" in words.advice(c, LABELS)
    assert f"about {hours:.1f} hours" in words.advice(c, LABELS)


def test_no_winner() -> None:
    c, _ = found(-0.5, 40)
    assert words.verdict(c).startswith("No:")
    assert words.advice(c, LABELS).startswith("Keep plain")


def test_questions_needed_are_those_of_the_effect() -> None:
    c, data = found(0.3, 40)
    gap = np.subtract(*(fp.evaluate(s, data, measures="NDCG@5").values[0]
                        for s in _scores(data)))  # fmt: skip
    want = (norm.ppf(1 - 0.025 / (len(c.found.systems) - 1)) + norm.ppf(0.8)) ** 2 / (
        gap.mean() / gap.std(ddof=1)
    ) ** 2
    assert c.needed == pytest.approx(want, abs=1.0)


def _scores(data: fp.Dataset) -> list[Any]:
    noise = np.random.default_rng(0).standard_normal((2, data.n_docs))
    return [0.8 * data.y + noise[1], 0.5 * data.y + noise[0]]


def test_first_results_and_extremes() -> None:
    c, data = found(2.0, 30)
    learned, plain = 2.5 * data.y, -data.y
    assert first_right(learned, data) == sum(data[q].y.max() > 0 for q in range(30))
    assert first_right(plain, data) == sum(data[q].y.min() > 0 for q in range(30))
    most, least = extremes(c)
    gaps = c.found.values("NDCG@5")[1] - c.found.values("NDCG@5")[0]
    assert gaps[most] == gaps.max()
    assert gaps[least] == gaps.min()


def gap(system: str, difference: float, p: float) -> Any:
    return SimpleNamespace(system=system, against="plain", difference=difference, p_corrected=p)


def told(now: Any, learned: float = 0.9, usual: float = 0.8, p: float = 0.01) -> str:
    measured: Any = SimpleNamespace(
        judgments=10, learned=learned, usual=usual, p=p, verdict=lambda _: now
    )
    before = cast(Compared, SimpleNamespace(verdict=gap("A", 0.1, 0.3)))
    return words.measure(measured, before)


def test_a_measure_may_change_the_verdict() -> None:
    same = "By the learned measure the verdict is the same: A may be better than plain."
    assert told(gap("A", 0.2, 0.2)).endswith(same)
    assert told(gap("A", 0.2, 0.01)).endswith(
        "By the learned measure A is better than plain; by NDCG@5, A may be better than plain."
    )
    assert "measure B may be better than plain; by" in told(gap("B", 0.2, 0.2))
    assert "measure no learned ranking is better than plain; by" in told(gap("B", -0.2, 0.01))
    assert "90% of their preferences" in told(gap("A", 0.2, 0.2))
    assert "chance is an unlikely cause (p = 0.01)" in told(gap("A", 0.2, 0.2))
    assert "it may be chance (p = 0.4)" in told(gap("A", 0.2, 0.2), p=0.4)
