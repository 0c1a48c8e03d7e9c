"""Agreement of judgments from clicks with those of people."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import cohen_kappa_score

import firstpage as fp
from firstpage.clicks.judgments.agreement import agreement


def table(grades: np.ndarray) -> dict:
    return {f"q{q}": {f"d{d}": float(g) for d, g in enumerate(row)} for q, row in enumerate(grades)}


rng = np.random.default_rng(7)
HUMAN = rng.integers(0, 4, (30, 8))
CLICKS = np.clip(HUMAN + rng.integers(-1, 2, HUMAN.shape), 0, 3)
RATES = CLICKS + rng.random(CLICKS.shape) / 2


def measured(human=HUMAN, clicks=CLICKS, rates=RATES):
    qrels, run = fp.Qrels.from_dict(table(clicks)), fp.Run.from_dict(table(rates))
    return agreement(qrels, run, table(human), 0)


def test_statistics_are_the_usual_ones() -> None:
    result = measured()
    kappa = cohen_kappa_score(HUMAN.ravel(), CLICKS.ravel(), weights="quadratic")
    assert result.kappa[0] == pytest.approx(kappa)
    tau = np.mean([kendalltau(h, r).statistic for h, r in zip(HUMAN, RATES, strict=True)])
    assert result.tau[0] == pytest.approx(tau)
    ndcg = fp.evaluate(fp.Run.from_dict(table(RATES)), table(HUMAN), measures="NDCG@10")["NDCG@10"]
    assert result.ndcg[0] == pytest.approx(ndcg)
    for value, low, high in (result.kappa, result.tau, result.ndcg):
        assert low < value < high
    assert (result.documents, result.queries, result.ordered_queries) == (240, 30, 30)


def test_scales_of_other_lengths_and_queries_of_one_grade() -> None:
    human = np.vstack([2 * CLICKS, np.full((3, 8), 1)])
    clicks, rates = (np.vstack([v, v[:3]]) for v in (CLICKS, RATES))
    human[-1, 0] = 1
    result = measured(human, clicks, rates)
    assert (result.queries, result.ordered_queries) == (33, 30)
    assert measured(2 * CLICKS).kappa[0] == pytest.approx(1)
    assert measured(3 - CLICKS).kappa[0] < -0.5


def test_random_clicks_do_not_agree() -> None:
    result = measured(rates=rng.random(HUMAN.shape), clicks=rng.integers(0, 4, HUMAN.shape))
    assert result.kappa[1] < 0 < result.kappa[2]
    assert result.tau[1] < 0 < result.tau[2]
    assert result.ndcg[0] == pytest.approx(result.random_ndcg, abs=0.05)


def test_nothing_in_common_is_an_error() -> None:
    with pytest.raises(fp.FirstpageError, match="such as 'd0' of query 'q0'"):
        agreement(
            fp.Qrels.from_dict(table(CLICKS)), fp.Run.from_dict(table(RATES)), {"z": {"d0": 1}}, 0
        )
