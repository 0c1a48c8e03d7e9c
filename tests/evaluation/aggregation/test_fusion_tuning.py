"""A fusion chosen by nested cross-validation: an oracle by `fp.evaluate`, verdicts, errors."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import FirstpageError, FirstpageWarning
from firstpage.evaluation.aggregation.fusion_tuning import candidate_fusions
from firstpage.evaluation.aggregation.tuning import fold_of_query

StageFusion, tune_fusion = fp.aggregation.StageFusion, fp.aggregation.tune_fusion
Tables = tuple[list[dict[str, dict[str, float]]], dict[str, dict[str, int]]]


def collection(queries: int, noise: tuple[float, ...], seed: int = 1) -> Tables:
    """Return runs of 15 of 40 documents, whose scores are the relevance and such noise."""
    rng = np.random.default_rng(seed)
    relevance = rng.normal(size=(queries, 40))
    runs = []
    for number, deviation in enumerate(noise):
        scores = (relevance + rng.normal(0, deviation, relevance.shape)) * 3.0**number + 20
        runs.append(
            {
                f"q{q}": {f"d{d}": float(row[d]) for d in np.argsort(-row)[:15]}
                for q, row in enumerate(scores)
            }
        )
    qrels = {
        f"q{q}": {f"d{d}": int(max(0.0, row[d] + 0.5)) for d in range(40)}
        for q, row in enumerate(relevance)
    }
    return runs, qrels


def test_values_are_those_of_the_fused_runs_and_folds_choose_without_their_queries() -> None:
    tables, qrels = collection(23, (1.0, 1.5))
    del tables[1]["q3"], tables[0]["q5"]
    tables[0]["unjudged"] = {"d1": 1.0}
    runs = [fp.Run.from_dict(table) for table in tables]
    stages = ("bm25", "dense")
    tried = candidate_fusions(stages)[::9]
    with pytest.warns(FirstpageWarning, match="1 of the 23 judged queries are not") as log:
        tuned = tune_fusion(runs, qrels, "NDCG@5", folds=4, seed=2, stages=stages, fusions=tried)
    assert [str(w.message).partition(":")[0] for w in log] == list(stages)
    rows = list(tuned.queries)

    def measured(run: fp.Run) -> dict[str, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FirstpageWarning)
            result = fp.evaluate(run, qrels, measures="NDCG@5")
        return dict(zip(result.queries, result.per_query("NDCG@5").tolist(), strict=True))

    by_query = [measured(fusion.fuse_runs(runs)) for fusion in tried]
    table = np.array([[values[query] for query in rows] for values in by_query])
    fold = fold_of_query(23, 4, 2)
    for number in range(4):
        best = int(np.argmax(table[:, fold != number].mean(axis=1).round(12)))
        assert tuned.choices[number] == tried[best]
        assert tuned.values[fold == number] == pytest.approx(table[best, fold == number])
    assert tuned.best == tried[int(np.argmax(table.mean(axis=1).round(12)))]
    assert tuned.baseline == pytest.approx(table[0])
    held_out = measured(tuned.held_out_run(runs))
    assert tuned.fusion_values == pytest.approx([held_out[query] for query in rows])
    for values, run in zip(tuned.stage_values, runs, strict=True):
        assert values.tolist() == pytest.approx([measured(run)[query] for query in rows])


def test_a_good_mean_of_scores_beats_equal_weights_and_stages() -> None:
    tables, qrels = collection(150, (0.6, 1.6))
    tuned = tune_fusion(tables, qrels, stages=("good", "poor"))
    assert tuned.is_tuned
    assert tuned.fusion.weights[0] > tuned.fusion.weights[1]
    assert tuned.is_better_than("equal weights")
    assert tuned.is_better_than("poor")
    runs = list(map(fp.Run.from_dict, tables))
    systems = {
        "fusion": tuned.held_out_run(runs),
        "equal weights": StageFusion(stages=("good", "poor")).fuse_runs(runs),
        **dict(zip(("good", "poor"), runs, strict=True)),
    }
    comparison = fp.compare(systems, qrels, measures="NDCG@10", baseline="fusion")
    for each in comparison.differences:
        difference, low, high, p = tuned.differences[each.system]
        expected = (-each.difference, -each.high, -each.low, each.p_corrected)
        assert (difference, low, high, p) == pytest.approx(expected, abs=1e-9)
    assert any(each.p != each.p_corrected for each in comparison.differences)
    assert tuned.verdict.startswith("Tuning gains +")
    assert "\n" not in tuned.verdict
    difference = tuned.values.mean() - tuned.baseline.mean()
    assert tuned.differences["equal weights"][0] == pytest.approx(difference)
    assert f"{difference:+.4f}" in tuned.report()
    lines = tuned.curve()
    assert set(lines) == {"best", "rrf"}
    assert "weight of poor" in tuned.plot().svg
    weights = [weight for weight, _, _, _ in lines["rrf"]]
    assert weights[0] == 0
    assert weights[-1] == 1
    assert lines["rrf"][10][1] == pytest.approx(tuned.baseline.mean())  # weight 0.5
    assert all(low <= mean <= high for _, mean, low, high in lines["rrf"])
    good = tuned.stage_values[0].mean()
    assert lines["best"][0][1] == pytest.approx(good)  # the other stage has no weight
    frame = tuned._frame_columns()
    assert list(frame) == ["query", "tuned fusion", "equal weights", "good", "poor"]
    summary = tuned.to_dict()
    assert summary["means"]["good"] == pytest.approx(good)
    assert StageFusion.from_dict(summary["fusion"]) == tuned.fusion


def test_equal_weights_are_kept_where_tuning_brings_nothing() -> None:
    """A grid of bad fusions: the held-out gain is negative."""
    tables, qrels = collection(40, (1.0, 1.0))
    bad = [StageFusion(weights=(1, 0), stages=("a", "b")), StageFusion(weights=(0, 1), stages=("a", "b"))]  # fmt: skip
    tuned = tune_fusion(tables, qrels, stages=("a", "b"), fusions=bad)
    assert not tuned.is_tuned
    assert tuned.fusion == StageFusion(stages=("a", "b"))
    assert tuned.verdict.startswith("Tuning brings nothing")
    assert not tuned.is_better_than("equal weights")
    assert "equal weights" not in tuned.differences
    assert tuned.fusion_values is tuned.baseline


def test_a_fusion_worse_than_a_stage_says_so() -> None:
    tables, qrels = collection(60, (0.1, 9.0))
    fusions = [StageFusion(rank_constant=c, stages=("good", "noise")) for c in (60, 200)]
    tuned = tune_fusion(tables, qrels, stages=("good", "noise"), fusions=fusions)
    assert tuned.worse_than == ("good",)
    assert "rrf, k = 60" in tuned.plot().svg
    assert "significantly worse than good alone" in tuned.verdict
    assert tuned.verdict.endswith("use good alone.")
    assert not tuned.is_better_than("good")
    assert "significantly worse" in str(tuned)


@pytest.mark.parametrize(("stages", "count"), [(2, 117), (3, 208), (4, 221)])
def test_fusions_to_try_are_distinct_and_begin_with_equal_weights(stages, count) -> None:
    names = tuple("abcd"[:stages])
    fusions = candidate_fusions(names, floor=0, weighting="rank")
    assert fusions[0] == StageFusion(stages=names, floor=0, weighting="rank")
    assert len(set(fusions)) == len(fusions) == count
    means = {(f.normalization, f.mean) for f in fusions if f.method == "scores"}
    assert {("z-score", "arithmetic"), ("dbsf", "arithmetic"), ("l2", "harmonic")} <= means
    assert ("z-score", "geometric") not in means  # z-scores have no other mean in OpenSearch


def test_three_stages_are_tuned() -> None:
    tables, qrels = collection(30, (0.7, 1.0, 1.5))
    tuned = tune_fusion(tables, qrels, "AP")
    assert tuned.fusion.stages == ("stage 1", "stage 2", "stage 3")
    assert len(tuned.stage_values) == 3
    ends = [points[-1][1] for points in tuned.curve().values()]
    assert ends[0] == pytest.approx(ends[1], abs=0.2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"runs": 1}, "at least two runs"),
        ({"stages": ["a"]}, "stages must name each of the 2 runs once"),
        ({"stages": ["a", "a"]}, "stages must name each"),
        ({"stages": ["a", "tuned fusion"]}, "cannot be called"),
        ({"stages": ["a", "b"], "fusions": [StageFusion()]}, "of the stages a, b; got bm25, dense"),
        ({"fusions": []}, "fusions must be of the stages"),
        ({"measure": "WKT@5"}, "better when lower"),
        ({"measure": "GMAP"}, "not a mean over queries"),
        ({"folds": 1}, "folds must be an integer of at least 2"),
        ({"qrels": {"q1": {"elsewhere": 1}, "q2": {"x": 1}}}, "of every run is 0"),
        ({"qrels": {"other": {"d1": 1}}}, "share no query"),
    ],
)
def test_wrong_requests_are_refused_in_one_line(options: dict[str, Any], message: str) -> None:
    tables, qrels = collection(6, (1.0, 1.0))
    runs = tables[: options.pop("runs", 2)]
    with pytest.raises(FirstpageError, match=message) as error:
        tune_fusion(runs, options.pop("qrels", qrels), **options)
    assert "\n" not in str(error.value)


def test_an_unknown_system_is_refused() -> None:
    tables, qrels = collection(6, (1.0, 1.0))
    with pytest.raises(
        FirstpageError, match="no system 'splade'; there are equal weights and a, b"
    ):
        tune_fusion(tables, qrels, stages="ab").is_better_than("splade")
