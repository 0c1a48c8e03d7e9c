"""TopRank: candidates of one ranker, votes of others."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.learning.models.scorings import VoterCascade
from tests.narrow import instance

DATA = fp.Synthetic(queries=60, docs="uniform(5, 40)", features=6, grades=3, seed=2).dataset()
TRAIN, VALID, TEST = DATA[:30], DATA[30:45], DATA[45:]


def test_toprank_equals_the_cascade_of_the_paper() -> None:
    """Its components fitted alone, their measures as weights, and the aggregated runs."""
    ranker = fp.TopRank(depth=10, credit="paper").fit(TRAIN, valid=VALID)
    first = fp.TopSlack().fit(TRAIN)
    voters = [fp.Regression().fit(TRAIN), fp.RankSVM().fit(TRAIN), fp.ListNet().fit(TRAIN)]
    means = [fp.evaluate(v.predict(VALID), VALID, measures="NDCG@10")["NDCG@10"] for v in voters]
    weights = np.array(means) / sum(means)
    assert [weight for _, weight in ranker.training_["voters"]] == pytest.approx(weights.tolist())
    ballots = Ballots.from_scores(
        np.stack([v.predict(TEST) for v in voters]), TEST.offsets, first.predict(TEST), depth=10
    )
    expected = fp.aggregation.aggregate(
        ballots, "skr(credit=paper)", weights=weights.tolist()
    ).scores
    assert ranker.predict(TEST).tolist() == expected.tolist()
    for lo, hi in zip(TEST.offsets[:-1], TEST.offsets[1:], strict=True):
        below = np.argsort(-first.predict(TEST)[lo:hi], kind="stable")[10:]
        scores = ranker.predict(TEST)[lo:hi]
        assert scores[below].tolist() == list(range(len(below), 0, -1))  # as TopSlack has them


def test_fitted_components_are_used_unchanged() -> None:
    first, voter = fp.ListMLE(k=5).fit(TRAIN), fp.RankNet(normalize="standard").fit(TRAIN)
    before = voter.predict(TEST)
    ranker = fp.TopRank(first=first, voters=[voter], weights="equal").fit(TRAIN[:3])
    assert voter.predict(TEST).tolist() == before.tolist()
    order = ranker.rank(TEST)
    for lo, hi in zip(TEST.offsets[:-1], TEST.offsets[1:], strict=True):
        half = -(-(hi - lo) // 2)  # one voter decides alone, as far as it has credit
        assert order[lo : lo + half].tolist() == voter.rank(TEST)[lo : lo + half].tolist()
    frozen = fp.TopRank(first=FrozenEstimator(first), voters=[FrozenEstimator(voter)])
    assert clone(frozen).fit(TRAIN[:3]).rank(TEST).tolist() == order.tolist()


def test_documents_below_the_depth_keep_their_order() -> None:
    first = fp.RankSVM().fit(TRAIN)
    ranker = fp.TopRank(first=first, voters=["ListNet"], depth=1).fit(TRAIN)
    assert ranker.rank(TEST).tolist() == first.rank(TEST).tolist()


def test_toprank_and_its_voters_are_parsed_from_text(tmp_path) -> None:
    ranker = fp.ranker("TopRank(depth=20, voters=RankNet + ListMLE(k=5), first=RankSVM)")
    ranker.fit(TRAIN)
    assert [voter.name for voter in instance(VoterCascade, ranker.model_).voters] == [
        "RankNet()",
        "ListMLE(k=5)",
    ]
    ranker.save(tmp_path / "m.json")
    result = fp.explain(tmp_path / "m.json")
    assert result.kind == "weight of the vote"
    assert result.values.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"voters": []}, "list of rankers"),
        ({"voters": ["RankSVN"]}, "Did you mean 'RankSVM'"),
        ({"voters": [3]}, "ranker or its name"),
        ({"first": "TopRank"}, "no ranker 'TopRank'"),
        ({"weights": "best"}, "'auto', 'equal'"),
        ({"weights": [1.0]}, "1 weights for 3 rankers"),
        ({"weights": [1.0, -1.0, 0.0]}, "weight 2"),
        ({"depth": 0}, "depth of TopRank"),
        ({"credit": "all"}, "credit"),
        ({"k_agg": 0}, "k_agg of TopRank"),
        ({"k_agg": 2.5}, "k_agg of TopRank"),
        ({"same_depth": "yes"}, "same_depth must be true or false"),
    ],
)
def test_invalid_parameters_of_toprank_are_rejected(wrong, message) -> None:
    with pytest.raises(DataError, match=message):
        fp.TopRank(**wrong).fit(TRAIN)


def test_components_with_other_features_are_rejected() -> None:
    other = fp.ListNet().fit(TRAIN.X[:, :3], TRAIN.y, qid=TRAIN.qid)
    with pytest.raises(DataError, match="3 features"):
        fp.TopRank(voters=[other]).fit(TRAIN)


def test_explicit_parameters_of_components_are_kept() -> None:
    ranker = fp.TopRank(
        k=7, measure="AP", voters="ListMLE(seed=5, ties=random, k=3) + RankSVM(C=1e+2)"
    )
    first, second = (ranker._ranker(voter) for voter in ranker._voters())
    assert (first.seed, first.ties, first.k, first.measure) == (5, "random", 3, "AP")
    assert (second.C, second.k) == (100.0, 7)


def test_incompatible_components_are_rejected() -> None:
    fitted = fp.ListNet().fit(TRAIN)
    with pytest.raises(DataError, match="unscaled features"):
        fp.TopRank(voters=[fitted], normalize="minmax").fit(TRAIN)
    with pytest.raises(DataError, match="another ranker"):
        fp.TopRank(voters=[fp.TopRank()]).fit(TRAIN)
    with pytest.raises(DataError, match="another ranker"):
        fp.TopRank(voters=[FrozenEstimator(fp.TopRank().fit(TRAIN))]).fit(TRAIN)
    frame = pd.DataFrame(TRAIN.X, columns=list("abcdef"))
    named = fp.ListNet().fit(frame, TRAIN.y, qid=TRAIN.qid)
    with pytest.raises(DataError, match="another order"):
        fp.TopRank(voters=[named]).fit(frame[list("fedcba")], TRAIN.y, qid=TRAIN.qid)


def test_measures_that_are_better_when_lower_cannot_weight_voters() -> None:
    with pytest.raises(DataError, match="better when lower"):
        fp.TopRank(measure="TopK01@1").fit(TRAIN, valid=VALID)
    bad = fp.Regression().fit(TRAIN.X, -TRAIN.y, qid=TRAIN.qid)
    result = fp.TopRank(voters=[bad, "RankSVM"], measure="Tau").fit(TRAIN, valid=VALID)
    assert instance(VoterCascade, result.model_).weights.tolist() == [0.0, 1.0]


def test_progress_can_stop_and_an_interrupt_leaves_no_model(monkeypatch) -> None:
    result = fp.TopRank().fit(TRAIN, valid=VALID, progress=lambda step: step.iteration == 2)
    assert len(instance(VoterCascade, result.model_).voters) == 1
    assert not result.converged_

    def interrupted(self, *args, **kwargs):
        self.model_, self.interrupted_ = None, True
        return self

    monkeypatch.setattr(fp.ListNet, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fp.TopRank().fit(TRAIN)


def test_frozen_components_are_stored_by_name(tmp_path) -> None:
    ranker = fp.TopRank(voters=[FrozenEstimator(fp.RankNet(k=5).fit(TRAIN)), "RankNet", "RankNet"])
    ranker.fit(TRAIN).save(tmp_path / "m.json")
    again = fp.load(tmp_path / "m.json")
    assert again.voters == ["RankNet(k=5)", "RankNet", "RankNet"]
    assert len(again.training_["voters"]) == 3
    assert clone(again).fit(TRAIN).predict(TEST).tolist() == ranker.predict(TEST).tolist()


@pytest.mark.parametrize("k_agg", [None, 2, 50])
def test_the_printed_toprank_has_one_depth_for_all_queries(tmp_path, k_agg: int | None) -> None:
    """A plain reference of Algorithm 2, with t the length of the shortest training list."""
    first, voters = fp.Regression().fit(TRAIN), [fp.ListNet().fit(TRAIN), fp.RankNet().fit(TRAIN)]
    weights = [0.7, 0.3]
    ranker = fp.TopRank(
        first=first, voters=voters, weights=weights, credit="paper", same_depth=True, k_agg=k_agg
    ).fit(TRAIN)
    t = int(TRAIN.lengths.min())
    assert instance(VoterCascade, ranker.model_).depth == t
    assert t < TEST.lengths.max()
    base, votes = first.predict(TEST), [voter.predict(TEST) for voter in voters]
    expected = np.empty(TEST.n_docs)
    for lo, hi in zip(TEST.offsets[:-1], TEST.offsets[1:], strict=True):
        order = lo + np.argsort(-base[lo:hi], kind="stable")
        candidates = order[:t].tolist()
        k = -(-len(candidates) // 2) if k_agg is None else min(k_agg, len(candidates))
        credit = {(a, b): 0.0 for a in candidates for b in candidates}
        for weight, scores in zip(weights, votes, strict=True):
            ranked = sorted(candidates, key=scores.__getitem__, reverse=True)[:k]
            for i, a in enumerate(ranked):
                for b in ranked[i + 1 :]:
                    credit[a, b] += weight
        final = [*_quick_sort(candidates, credit), *order[t:].tolist()]
        expected[final] = np.arange(hi - lo, 0, -1)
    assert ranker.predict(TEST).tolist() == expected.tolist()
    one = slice(TEST.offsets[3], TEST.offsets[4])  # the depth does not depend on other queries
    assert ranker.predict(TEST[3:4]).tolist() == expected[one].tolist()
    ranker.save(tmp_path / "m.json")
    assert fp.load(tmp_path / "m.json").predict(TEST).tolist() == expected.tolist()


def _quick_sort(items: list[int], credit: dict[tuple[int, int], float]) -> list[int]:
    if not items:
        return []
    pivot, *others = items
    left = [x for x in others if credit[x, pivot] - credit[pivot, x] > 1e-12]
    right = [x for x in others if x not in left]
    return [*_quick_sort(left, credit), pivot, *_quick_sort(right, credit)]


def test_an_interrupted_fit_continues_with_its_fitted_components(tmp_path, monkeypatch) -> None:
    def ranker() -> fp.TopRank:
        return fp.TopRank(first="Regression", voters=["RankNet", "ListNet"], k_agg=4)

    expected = ranker().fit(TRAIN, valid=VALID)
    path, fit, fitted = tmp_path / "fit.ckpt", fp.ListNet.fit, list[str]()

    def interrupted(self, *args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(fp.ListNet, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ranker().fit(TRAIN, valid=VALID, checkpoint=path)
    assert path.exists()
    monkeypatch.setattr(fp.ListNet, "fit", fit)
    for cls in (fp.Regression, fp.RankNet):
        monkeypatch.setattr(cls, "fit", lambda self, *a, **k: fitted.append(str(self)))
    with pytest.warns(fp.FirstpageWarning, match="after 2 iterations"):
        resumed = ranker().fit(TRAIN, valid=VALID, checkpoint=path)
    assert fitted == []
    assert not path.exists()
    assert resumed.predict(TEST).tolist() == expected.predict(TEST).tolist()
    assert resumed.training_["voters"] == expected.training_["voters"]
