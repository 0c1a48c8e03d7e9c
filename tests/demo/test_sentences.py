"""The sentences follow from the figures: better, worse, significant or not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from scipy.stats import norm

import firstpage as fp
from firstpage.demo import sentences
from firstpage.demo.labeling import LabelingResult
from firstpage.demo.rankings import (
    BaselineComparison,
    compare_with_baseline,
    extremes,
    first_correct,
)

LABELS = cast(LabelingResult, SimpleNamespace(minutes_per_question=6.0))


def comparison(gain: float, queries: int, seed: int = 0) -> tuple[BaselineComparison, fp.Dataset]:
    """Compare a learned ranking, grades times 0.5 + gain plus noise, with a baseline of gain 0."""
    data = fp.Synthetic(queries=queries, docs=12, features=3, grades=4).dataset()
    noise = np.random.default_rng(seed).standard_normal((2, data.n_docs))
    plain = {"plain": 0.5 * data.y + noise[0], "poor": -data.y}
    learned = {"learned": (0.5 + gain) * data.y + noise[1], "poorer": -data.y}
    return compare_with_baseline(plain, learned, data), data


@pytest.mark.slow
def test_a_significantly_better_ranking() -> None:
    c, _ = comparison(2.0, 60)
    assert (c.baseline, c.best, c.significant) == ("plain", "learned", True)
    assert sentences.verdict(c).startswith("Yes: on these 60 questions the learned ranking learned")
    assert "is statistically significant" in sentences.verdict(c)
    assert sentences.advice(c, LABELS).startswith("Switch to learned")


def test_a_better_ranking_without_significance() -> None:
    c = next(c for c, _ in (comparison(0.05, 12, seed) for seed in range(20))
             if c.verdict.difference > 0 and not c.significant and (c.questions_needed or 0) > 12)  # fmt: skip
    assert sentences.verdict(c).startswith("Perhaps")
    assert "not statistically significant" in sentences.verdict(c)
    assert c.questions_needed is not None
    hours = (c.questions_needed - 12) * 6.0 / 60
    assert f"about {c.questions_needed} questions" in sentences.advice(c, LABELS)
    assert f"about {hours:.1f} hours" in sentences.advice(c, LABELS)


def test_no_better_ranking() -> None:
    c, _ = comparison(-0.5, 40)
    assert sentences.verdict(c).startswith("No:")
    assert sentences.advice(c, LABELS).startswith("Keep plain")


def test_questions_needed_follow_from_the_effect_size() -> None:
    c, data = comparison(0.3, 40)
    gap = np.subtract(*(fp.evaluate(s, data, measures="NDCG@5").values[0]
                        for s in _scores(data)))  # fmt: skip
    expected = (norm.ppf(1 - 0.025 / (len(c.comparison.systems) - 1)) + norm.ppf(0.8)) ** 2 / (
        gap.mean() / gap.std(ddof=1)
    ) ** 2
    assert c.questions_needed == pytest.approx(expected, abs=1.0)


def _scores(data: fp.Dataset) -> list[Any]:
    noise = np.random.default_rng(0).standard_normal((2, data.n_docs))
    return [0.8 * data.y + noise[1], 0.5 * data.y + noise[0]]


def test_correct_first_results_and_extreme_questions() -> None:
    c, data = comparison(2.0, 30)
    learned, plain = 2.5 * data.y, -data.y
    assert first_correct(learned, data) == sum(data[q].y.max() > 0 for q in range(30))
    assert first_correct(plain, data) == sum(data[q].y.min() > 0 for q in range(30))
    improved, worsened = extremes(c)
    gains = c.comparison.values("NDCG@5")[1] - c.comparison.values("NDCG@5")[0]
    assert gains[improved] == gains.max()
    assert gains[worsened] == gains.min()


def difference(system: str, difference: float, p: float) -> Any:
    return SimpleNamespace(system=system, against="plain", difference=difference, p_corrected=p)


def sentence(now: Any, accuracy: float = 0.9, standard: float = 0.8, p: float = 0.01) -> str:
    measured: Any = SimpleNamespace(
        judgments=10, accuracy=accuracy, standard_accuracy=standard, p=p, verdict=lambda _: now
    )
    before = cast(BaselineComparison, SimpleNamespace(verdict=difference("A", 0.1, 0.3)))
    return sentences.learned_measure(measured, before)


def test_the_learned_measure_may_change_the_verdict() -> None:
    same = "By the learned measure the verdict is the same: A may be better than plain."
    assert sentence(difference("A", 0.2, 0.2)).endswith(same)
    assert sentence(difference("A", 0.2, 0.01)).endswith(
        "By the learned measure A is better than plain; by NDCG@5, A may be better than plain."
    )
    assert "measure B may be better than plain; by" in sentence(difference("B", 0.2, 0.2))
    assert "measure no learned ranking is better than plain; by" in sentence(
        difference("B", -0.2, 0.01)
    )
    assert "90% of their preferences" in sentence(difference("A", 0.2, 0.2))
    assert "the difference is statistically significant (p = 0.01)" in sentence(
        difference("A", 0.2, 0.2)
    )
    assert "the difference is not statistically significant (p = 0.4)" in sentence(
        difference("A", 0.2, 0.2), p=0.4
    )
