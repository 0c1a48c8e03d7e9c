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
    systems = {name: _run(data, scores) for name, scores in _scores(data, gain, seed).items()}
    return compare_with_baseline("plain", systems, _qrels(data)), data


def _scores(data: fp.Dataset, gain: float, seed: int = 0) -> dict[str, Any]:
    noise = np.random.default_rng(seed).standard_normal((2, data.n_docs))
    learned = (0.5 + gain) * data.y + noise[1]
    return {"plain": 0.5 * data.y + noise[0], "learned": learned, "poorer": -data.y}


def _documents(data: fp.Dataset) -> list[str]:
    return [f"d{row}" for row in range(data.n_docs)]


def _run(data: fp.Dataset, scores: Any) -> fp.Run:
    return fp.Run.from_arrays(data.qid, _documents(data), scores)


def _qrels(data: fp.Dataset) -> fp.Qrels:
    return fp.Qrels.from_arrays(data.qid, _documents(data), data.y)


def test_a_significantly_better_ranking() -> None:
    c, _ = comparison(2.0, 60)
    assert (c.baseline, c.best, c.significant) == ("plain", "learned", True)
    assert sentences.verdict(c).startswith("Yes: on these 60 questions the learned ranking learned")
    assert "is statistically significant" in sentences.verdict(c)
    assert sentences.advice(c, LABELS).startswith("Switch to learned")


def test_a_better_ranking_without_significance() -> None:
    c = next(
        c
        for c, _ in (comparison(0.05, 12, seed) for seed in range(20))
        if c.verdict.difference > 0 and not c.significant and (c.questions_needed or 0) > 12
    )
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
    scores = _scores(data, 0.3)
    gap = np.subtract(
        *(
            fp.evaluate(scores[name], data, measures="NDCG@5").values[0]
            for name in ("learned", "plain")
        )
    )
    expected = (norm.ppf(1 - 0.025 / (len(c.comparison.systems) - 1)) + norm.ppf(0.8)) ** 2 / (
        gap.mean() / gap.std(ddof=1)
    ) ** 2
    assert c.questions_needed == pytest.approx(expected, abs=1.0)


def test_correct_first_results_and_extreme_questions() -> None:
    c, data = comparison(2.0, 30)
    answers = _qrels(data).to_dict()
    assert first_correct(_run(data, data.y), answers) == sum(data[q].y.max() > 0 for q in range(30))
    assert first_correct(_run(data, -data.y), answers) == sum(
        data[q].y.min() > 0 for q in range(30)
    )
    improved, worsened = extremes(c)
    plain, learned, _ = c.comparison.values("NDCG@5")
    gains = dict(zip(c.comparison.queries, learned - plain, strict=True))
    assert gains[improved] == max(gains.values())
    assert gains[worsened] == min(gains.values())


def difference(system: str, difference: float, p: float) -> Any:
    return SimpleNamespace(system=system, against="plain", difference=difference, p_corrected=p)


def sentence(now: Any) -> str:
    measured: Any = SimpleNamespace(
        judgments=10, held_out="on 8 held-out preferences it is better.", verdict=lambda _: now
    )
    before = SimpleNamespace(verdict=difference("A", 0.1, 0.3), baseline="plain", best="A")
    return sentences.learned_measure(measured, cast(BaselineComparison, before))


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
    assert "on 8 held-out preferences it is better. By" in sentence(difference("A", 0.2, 0.2))


@pytest.mark.parametrize(
    ("gain", "p", "relation"),
    [
        (0.02, 0.3, "not shown to differ from"),
        (0.02, 0.01, "better than"),
        (-0.02, 0.01, "worse than"),
    ],
)
def test_the_aggregated_ranking(gain: float, p: float, relation: str) -> None:
    gained = SimpleNamespace(
        **vars(difference("aggregate", gain, p)),
        **{"measure": "NDCG@5", "low": -0.1, "high": 0.1, "p": p},
        **{"wins": 1, "ties": 2, "losses": 3},
    )
    text = sentences.combination(cast(Any, SimpleNamespace(combination_gain=gained)))
    assert f"ranking is {relation} the best single one (plain): {gain:+.3f} in NDCG@5" in text
