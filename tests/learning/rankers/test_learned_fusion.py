"""Learned fusion: features, training without leakage, model files, and systems by name."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageError
from firstpage.core.registry import ParameterError
from firstpage.data.formats.trec import to_run
from firstpage.evaluation.aggregation.features import fusion_features
from firstpage.learning.rankers.learned_fusion import parse_fusion
from tests.narrow import dense

RECIPE = fp.Synthetic(queries=24, docs=12, features=4, grades=3)
DATA = RECIPE.dataset()
TRUE = RECIPE.true_utility(dense(DATA.X))


def partial_run(noise: float, seed: int, length: int) -> fp.Run:
    """Return a run that lists the best documents of each query alone."""
    scores = TRUE + noise * np.random.default_rng(seed).normal(size=len(TRUE))
    table = to_run(DATA, scores, f"s{seed}").to_dict()
    best = {
        q: dict(sorted(d.items(), key=lambda item: -item[1])[:length]) for q, d in table.items()
    }
    return fp.Run.from_dict(best, f"s{seed}")


RUNS = [partial_run(0.3, 1, 6), partial_run(3.0, 2, 9), partial_run(3.0, 3, 12)]
QRELS = fp.Qrels(DATA.queries, DATA.offsets, to_run(DATA, TRUE).docids, DATA.y)
JUDGED = QRELS.select_queries(np.arange(16))


@pytest.fixture(scope="module")
def fitted() -> fp.LearnedFusion:
    return fp.LearnedFusion(folds=4).fit(RUNS, JUDGED)


def test_features_say_what_each_ranker_says() -> None:
    lists = [{"q": {"a": 4.0, "b": 2.0, "c": 1.0}}, {"q": {"c": 7.0}}]
    runs = [fp.Run.from_dict(table, name) for table, name in zip(lists, "xy", strict=True)]
    ballots = fp.aggregation.Ballots.from_runs(runs, base=0)
    features, names = fusion_features(ballots)
    columns = dict(zip(names, features.T.tolist(), strict=True))
    assert columns["x: listed"] == [1, 1, 1]
    assert columns["y: listed"] == [0, 0, 1]
    assert columns["x: 1/(0+rank)"] == pytest.approx([1, 1 / 2, 1 / 3])
    assert columns["x: 1/(10+rank)"] == pytest.approx([1, 11 / 12, 11 / 13])
    assert columns["x: score"] == pytest.approx([1, 1 / 3, 0])
    assert columns["y: score"] == [0, 0, 0]  # one score alone has no range
    assert columns["lists"] == [0.5, 0.5, 1]
    assert columns["best rank"] == [1, 0.5, 1]
    assert np.isfinite(features).all()
    fewer, some_names = fusion_features(ballots, ("presence",))
    assert fewer.shape == (3, 2)
    assert list(some_names) == ["x: listed", "y: listed"]


def test_the_order_of_the_runs_does_not_matter(fitted) -> None:
    other = fp.LearnedFusion(folds=4).fit(RUNS[::-1], JUDGED)
    assert other.systems_ == fitted.systems_
    assert other.fuse(RUNS).to_dict() == fitted.fuse(RUNS[::-1]).to_dict()
    assert other.held_out_.mean == fitted.held_out_.mean


def test_the_better_system_is_learned(fitted) -> None:
    rest = np.arange(16, 24)  # queries without judgments
    learned, fused = (
        fp.evaluate(run.select_queries(rest), QRELS.select_queries(rest), measures="NDCG@5")
        for run in (fitted.fuse(RUNS), fp.aggregation.aggregate(RUNS, "RRF").run)
    )
    assert learned["NDCG@5"] > fused["NDCG@5"]
    assert fitted.held_out_.gain > 0
    assert len(fitted.held_out_.choices) == 4
    assert "each held out of the choice" in str(fitted)


def test_labels_of_a_query_do_not_reach_its_own_ranking() -> None:
    fusion = fp.LearnedFusion(folds=4)
    first = fusion.fit_fuse(RUNS, JUDGED).to_dict()
    for q in (0, 7):
        labels = JUDGED.values.copy()
        rows = slice(*JUDGED.offsets[q : q + 2])
        labels[rows] = labels[rows][::-1] + 1
        changed = fusion.fit_fuse(RUNS, replace(JUDGED, values=labels)).to_dict()
        query = JUDGED.queries[q]
        assert changed[query] == first[query]
        assert changed != first
    final = fusion.fit(RUNS, JUDGED).fuse(RUNS).to_dict()
    unjudged = QRELS.queries[20]
    assert final[unjudged] == first[unjudged]  # ranked by the model of all judged queries
    assert final[JUDGED.queries[0]] != first[JUDGED.queries[0]]


def test_the_choice_among_rankers_is_nested() -> None:
    fusion = fp.LearnedFusion(("ListNet(l2=1000000.0)", "Regression"), folds=3).fit(RUNS, JUDGED)
    assert isinstance(fusion.ranker_, (fp.ListNet, fp.Regression))
    assert len(fusion.held_out_.choices) == 3
    parsed = parse_fusion("learned(ranker=[ListNet(k=5), Regression], folds=3)")
    assert parsed.ranker == ("ListNet(k=5)", "Regression")
    assert parsed.folds == 3


def test_model_file_round_trips_in_any_order_of_runs(fitted, tmp_path) -> None:
    fitted.save(tmp_path / "fusion.json")
    loaded = fp.LearnedFusion.load(tmp_path / "fusion.json")
    assert loaded.systems_ == ("s1", "s2", "s3")
    assert loaded.fuse(RUNS[::-1]).to_dict() == fitted.fuse(RUNS).to_dict()
    assert isinstance(fp.load(tmp_path / "fusion.json"), fp.ListNet)  # a model like all others
    assert "learned fusion of 3 systems: ListNet()" in str(loaded)
    fp.Regression().fit(DATA).save(tmp_path / "other.json")
    with pytest.raises(DataError, match=r"other.json: is not a model of a fusion"):
        fp.LearnedFusion.load(tmp_path / "other.json")


def renamed(run: fp.Run, name: str) -> fp.Run:
    return replace(run, name=name)


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        (RUNS[:2], "the fusion of s1, s2, s3 has no run of s3; systems are matched by the names"),
        ([*RUNS, renamed(RUNS[0], "s4")], "does not know s4"),
        ([*RUNS[:2], renamed(RUNS[2], "x")], "has no run of s3 and does not know x"),
        ([*RUNS, RUNS[0]], "two runs have the name"),
        (RUNS[0], "a list of runs"),
    ],
)
def test_systems_that_do_not_match_are_named(fitted, runs, message: str) -> None:
    with pytest.raises(DataError, match=message) as error:
        fitted.fuse(runs)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "runs", "qrels", "message"),
    [
        ({}, RUNS, JUDGED.select_queries(np.arange(3)), "3 queries of the runs are judged"),
        ({}, RUNS, "x.qrels", "needs judgments"),
        ({}, [RUNS[0], RUNS[0]], JUDGED, "two runs have the name 's1'"),
        ({"features": ("clicks",)}, RUNS, JUDGED, "features must be some of presence, rank"),
        ({"measure": "WKT"}, RUNS, JUDGED, "WKT is better when lower"),
        ({"seed": None}, RUNS, JUDGED, "seed must be an integer of at least 0; got None"),
        ({"folds": 1}, RUNS, JUDGED, "folds must be an integer of at least 2"),
        ({"ranker": "ListNot"}, RUNS, JUDGED, "Did you mean 'ListNet'"),
        ({"ranker": 3}, RUNS, JUDGED, "ranker must be a ranker"),
    ],
)
def test_invalid_training_is_refused(options, runs, qrels, message: str) -> None:
    with pytest.raises(FirstpageError, match=message):
        fp.LearnedFusion(**options).fit(runs, qrels)


def test_runs_without_a_name_have_that_of_their_file(tmp_path: Path) -> None:
    paths = [tmp_path / "first.tsv", tmp_path / "second.tsv"]
    for path, run in zip(paths, RUNS, strict=False):
        lines = [
            f"{query}\t{document}\t{rank}\n"
            for query, documents in run.to_dict().items()
            for rank, document in enumerate(documents, 1)
        ]
        path.write_text("".join(lines))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fp.FirstpageWarning)
        fusion = fp.LearnedFusion(folds=4)
        fused = fusion.fit_fuse(paths, JUDGED)
        assert fusion.systems_ == ("first.tsv", "second.tsv")
        assert fusion.fuse(paths[::-1]).to_dict() == fusion.fuse(paths).to_dict()
    assert len(fused.queries) == len(RUNS[0].queries)
    tables = [run.to_dict() for run in RUNS[:2]]
    numbered = fp.LearnedFusion(folds=4)
    numbered.fit_fuse(tables, JUDGED)
    assert numbered.systems_ == ("system 1", "system 2")


def test_a_fusion_that_is_not_fitted_says_so(tmp_path: Path) -> None:
    for call in (lambda: fp.LearnedFusion().fuse(RUNS), lambda: fp.LearnedFusion().save(tmp_path)):
        with pytest.raises(fp.DataError, match="this fusion is not fitted; call fit"):
            call()


def test_a_parameter_is_given_once() -> None:
    with pytest.raises(ParameterError, match="measure is given twice"):
        parse_fusion("learned(measure=P@5)", measure="AP")
