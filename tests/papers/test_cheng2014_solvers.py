"""The algorithms of Cheng et al. (2014) as printed, compared with those that Firstpage uses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.learning.losses.structural import StructuralHinge
from firstpage.papers.cheng2014.golden_section import greatest_product
from firstpage.papers.cheng2014.n_slack import NSlack
from tests.learning.losses.test_structural import by_depth, gains, lists, rankings, values

DATA = fp.Synthetic(queries=12, docs=6, features=4, grades=3, noise=0.5, seed=0).dataset()


@pytest.mark.filterwarnings("ignore::firstpage.core.errors.FirstpageWarning")  # max_iter, w = 0
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(
    "ranker",
    [
        fp.RankSVM(),
        fp.RankSVM(average=True),
        fp.SVMMAP(),
        fp.FocusedSVM(k=3),
        fp.TopMargin(reference="mean"),
        fp.TopSlack(reference="mean", delta="NDCG@3"),
        fp.TopSlack(reference="mean", delta="Precision@2"),
    ],
    ids=str,
)
def test_n_slack_reaches_the_optimum_of_one_slack(ranker: fp.Ranker, C: float) -> None:
    one_slack = clone(ranker).set_params(C=C, solver="cutting plane(tol=1e-5)").fit(DATA)
    lower_bound = one_slack.objective_ * (1 - one_slack.gap_)
    n_slack = clone(ranker).set_params(C=C, solver=NSlack()).fit(DATA)
    assert n_slack.objective_ == pytest.approx(one_slack.objective_, rel=1.1e-3)
    for solver in (NSlack(), NSlack(tol=0.1), NSlack(max_iter=2)):
        rough = clone(ranker).set_params(C=C, solver=solver).fit(DATA)
        assert rough.objective_ >= lower_bound * (1 - 1e-6)
        assert rough.objective_ * (1 - rough.gap_) <= one_slack.objective_ * (1 + 1e-6)


def test_n_slack_needs_a_penalty_and_data_in_memory(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cutting planes need a penalty"):
        fp.RankNet(l2=0.0, solver=NSlack()).fit(DATA)
    fp.write_shards(DATA, tmp_path, rows=30)
    with pytest.raises(DataError, match="visits single queries"):
        fp.RankSVM(solver=NSlack()).fit(fp.read_shards(tmp_path))


@pytest.mark.parametrize("kind", ["NDCG", "Precision"])
def test_the_golden_section_visits_violated_rankings_and_misses_few(kind: str) -> None:
    missed = with_loss = 0
    for depth, cases in by_depth(lists(3)).items():
        for y, s in cases:
            discounts, relative_gains = gains(y, kind, depth)
            product = greatest_product(s, relative_gains, discounts)
            delta, score, true_score = rankings(y, s, kind, depth)
            if not (y > 0).any() or not len(delta):
                assert product == 0.0
                continue
            exact = max(0.0, float((delta * (1 + score - true_score)).max()))
            assert product <= exact + 1e-9
            assert (product > 0) == (exact > 1e-12)
            with_loss += exact > 0
            missed += product < exact * (1 - 2e-6) - 1e-9
    assert with_loss > 900
    assert (missed > 0) == (kind == "NDCG")
    assert missed <= 0.05 * with_loss


def test_chords_are_never_worse_than_the_golden_section() -> None:
    cases = list(lists(4, longest=30, labels=lambda rng, n: rng.integers(0, 4, n)))[:100]
    chords = values(StructuralHinge("NDCG", "slack"), cases)
    for (y, s), value in zip(cases, chords, strict=True):
        discounts = 1 / np.log2(np.arange(2.0, len(y) + 2))
        product = greatest_product(s, 2.0**y - 1, discounts)
        assert value >= product - 1e-9 * max(1.0, product)
