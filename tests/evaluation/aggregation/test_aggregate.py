"""aggregate(): weights, resulting runs and scores, reports, errors."""

from __future__ import annotations

import numpy as np
import pandas
import pytest

import firstpage as fp
from firstpage.core.errors import DataError, FirstpageError, MeasureError
from firstpage.data.formats.trec import to_run
from firstpage.evaluation.aggregation.fusion import Fusion
from firstpage.evaluation.aggregation.methods import METHODS
from firstpage.evaluation.aggregation.weights import normalize_weights
from tests.evaluation.aggregation.test_ballots import as_run, ranked
from tests.narrow import dense, present

# Runs and judgments cover different queries here; `test_coverage` tests the warnings about it.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.core.errors.FirstpageWarning")

RECIPE = fp.Synthetic(queries=20, docs=15, features=4, grades=3)
DATA = RECIPE.dataset()
TRUE = RECIPE.true_utility(dense(DATA.X))


def noisy(scale: float, seed: int) -> np.ndarray:
    return TRUE + scale * np.random.default_rng(seed).normal(size=len(TRUE))


SCORES = np.array([noisy(0.5, 1), noisy(1.0, 2), noisy(3.0, 3)])
RUNS = [to_run(DATA, s, f"r{i}") for i, s in enumerate(SCORES)]
QRELS = fp.Qrels(DATA.queries, DATA.offsets, RUNS[0].docids, DATA.y)


def test_borda_matches_hand_computation() -> None:
    runs = [{"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"b": 3, "a": 2, "c": 1}}, {"q": {"b": 1}}]
    result = fp.aggregation.aggregate(runs, "Borda")
    assert ranked(result.run) == {"q": ["b", "a", "c"]}
    assert result.run.to_dict() == {"q": {"b": 8.0, "a": 6.5, "c": 3.5}}  # 3, 2, 1 points each
    assert result.run.name == "Borda"
    assert result.cost == pytest.approx(1 / 3)  # a before b in one of three
    assert result.lower_bound == pytest.approx(1 / 3)
    assert result.report.optimal == 1


def test_scores_and_run_give_the_same_order() -> None:
    ballots = fp.aggregation.Ballots.from_scores(
        SCORES, DATA.offsets, SCORES[2], depth=6, queries=DATA.queries
    )
    result = fp.aggregation.aggregate(ballots, "Copeland")
    from_runs = fp.aggregation.aggregate(RUNS, "Copeland", base=2, depth=6)
    result_run = to_run(DATA, result.scores)
    assert ranked(result_run) == ranked(from_runs.run)
    for lo, hi in zip(DATA.offsets, DATA.offsets[1:], strict=False):
        assert sorted(result.scores[lo:hi].tolist()) == list(range(1, hi - lo + 1))
        tail = np.argsort(-SCORES[2][lo:hi], kind="stable")[6:]
        assert result.scores[lo:hi][tail].tolist() == list(range(hi - lo - 6, 0, -1))


def test_aggregated_run_round_trips_and_evaluates(tmp_path) -> None:
    result = fp.aggregation.aggregate(RUNS, name="joined")
    fp.write_run(result.run, tmp_path / "x.run")
    loaded = fp.read_run(tmp_path / "x.run")
    assert loaded.name == "joined"
    assert ranked(loaded) == ranked(result.run)
    tables = [fp.Run.from_dict(r) if isinstance(r, dict) else r for r in RUNS]
    paths = [tmp_path / f"{number}.run" for number in range(len(tables))]
    for table, path in zip(tables, paths, strict=True):
        fp.write_run(table, path)
    frames = [
        pandas.DataFrame(
            [(q, d, v) for q, docs in table.to_dict().items() for d, v in docs.items()],
            columns=["qid", "docno", "score"],
        )
        for table in tables
    ]
    for runs in (paths, frames):
        assert ranked(fp.aggregation.aggregate(runs).run) == ranked(result.run)
    assert fp.evaluate(result.run, QRELS)["NDCG@10"] == fp.evaluate(loaded, QRELS)["NDCG@10"]


def test_weights_are_the_means_of_the_measure() -> None:
    for measure in ("NDCG@10", "P@5"):
        means = np.array([fp.evaluate(r, QRELS, measures=measure)[measure] for r in RUNS])
        for weights in (None, "auto"):
            result = fp.aggregation.aggregate(RUNS, weights=weights, qrels=QRELS, measure=measure)
            assert result.weights == pytest.approx(means / means.sum())
            assert present(result.measured).queries == 20
            assert present(result.measured).means == pytest.approx(means)
    arrays = fp.aggregation.supervised_weights(list(SCORES), DATA, "P@5")
    assert arrays.weights == pytest.approx(means / means.sum())
    assert (fp.aggregation.aggregate(RUNS, weights=arrays).order == result.order).all()


def test_weights_are_measured_on_queries_with_judgments_and_runs() -> None:
    dicts = [run.to_dict() for run in RUNS]
    seven_queries = {q: docs for i, (q, docs) in enumerate(QRELS.to_dict().items()) if i < 7}
    judged = {**seven_queries, "elsewhere": {"d": 1.0}}
    result = fp.aggregation.aggregate(dicts, qrels=judged)
    means = np.array(
        [fp.evaluate(run, seven_queries, measures="NDCG@10")["NDCG@10"] for run in dicts]
    )
    assert present(result.measured).queries == 7
    assert result.weights == pytest.approx(means / means.sum())
    shortened = [{q: d for q, d in dicts[0].items() if q != "1"}, *dicts[1:]]
    with pytest.warns(fp.FirstpageWarning, match="lacks 1 of 20 queries|1 of 7 judged"):
        lacking = fp.aggregation.aggregate(
            shortened, qrels=judged
        )  # a run without a judged query gets 0 for it
    assert present(lacking.measured).means[0] < present(result.measured).means[0]
    assert present(lacking.measured).queries == 7


def test_validation_runs_replace_runs_over_other_queries() -> None:
    def over(queries: slice) -> list[dict]:
        return [dict(list(r.to_dict().items())[queries]) for r in RUNS]

    valid, test = over(slice(0, 12)), over(slice(12, None))
    judged = dict(list(QRELS.to_dict().items())[:12])
    with pytest.raises(DataError, match=r"share no query.*valid"):
        fp.aggregation.aggregate(test, qrels=judged)
    result = fp.aggregation.aggregate(test, qrels=judged, valid=valid)
    expected = fp.aggregation.supervised_weights([fp.Run.from_dict(r) for r in valid], judged)
    assert result.weights == pytest.approx(expected.weights)
    assert len(result.ballots) == 8
    with pytest.raises(DataError, match="2 validation rankings for 3"):
        fp.aggregation.aggregate(test, qrels=judged, valid=valid[:2])


def test_better_weights_make_better_rankings() -> None:
    plain = fp.aggregation.aggregate(RUNS, "Borda", weights=[1, 1, 1])
    weighted = fp.aggregation.aggregate(RUNS, "Borda", weights=[4, 1, 0])
    values = [fp.evaluate(result.run, QRELS)["NDCG@10"] for result in (plain, weighted)]
    assert values[1] > values[0]


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        (None, [0.25] * 4),
        ([0, 0, 0, 0], [0.25] * 4),
        ([1, 1, 2, 0], [0.25, 0.25, 0.5, 0]),
        ([1e308, 1e308, 1e308, 1e308], [0.25] * 4),
        ([1e-320, 0, 0, 0], [1, 0, 0, 0]),
    ],
)
@pytest.mark.filterwarnings("ignore:every ranker has the weight 0")
def test_weights_sum_to_one(weights, expected) -> None:
    assert normalize_weights(weights, 4) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1, 2], "2 weights for 3"),
        ([1, -1, 1], "weight 2 must be a finite number of at least 0"),
        ([1, 1, np.nan], "weight 3 must be a finite number"),
        ([np.inf, 1, 1], "weight 1 must be a finite number"),
        ([1, "much", 1], "weights must be numbers"),
        ("equal", "'auto' or one number"),
        ("auto", "needs judgments"),
    ],
)
def test_bad_weights_are_refused(weights, message: str) -> None:
    with pytest.raises(DataError, match=message):
        fp.aggregation.aggregate(RUNS, weights=weights)


def test_invalid_input_is_refused() -> None:
    with pytest.raises(DataError, match="not both"):
        fp.aggregation.aggregate(RUNS, weights=[1, 1, 1], qrels=QRELS)
    with pytest.raises(DataError, match="have no scores"):
        fp.aggregation.aggregate(fp.aggregation.Ballots.from_runs(RUNS), qrels=QRELS)
    for single in (RUNS[0], RUNS[0].to_dict(), "a.run", 3):
        with pytest.raises(DataError, match="a list of runs"):
            fp.aggregation.aggregate(single)
    with pytest.raises(MeasureError, match="better when lower"):
        fp.aggregation.aggregate(RUNS, qrels=QRELS, measure="WKT@5")
    with pytest.raises(DataError, match="no document ids"):
        fp.aggregation.aggregate(fp.aggregation.Ballots.from_scores(SCORES, DATA.offsets)).run  # noqa: B018


def test_scores_cannot_be_measured_by_judgments() -> None:
    with pytest.raises(DataError, match="runs with judgments"):
        fp.aggregation.supervised_weights(list(SCORES), QRELS)
    with pytest.raises(DataError, match="runs with judgments"):
        fp.aggregation.supervised_weights(RUNS, DATA.y)


def test_negative_mean_gives_weight_zero() -> None:
    upside_down = to_run(DATA, -TRUE, "down")
    measured = fp.aggregation.supervised_weights([RUNS[0], upside_down], QRELS, "Tau")
    assert measured.means[1] < 0
    assert measured.weights.tolist() == [1.0, 0.0]


def test_summary_lists_rankers_weights_and_costs() -> None:
    fused = fp.aggregation.aggregate(RUNS, "rrf(c=10)", qrels=QRELS, depth=10)
    assert str(fused).startswith("RRF(c=10): 20 queries, 200 candidates of 300 documents")
    assert "Kemeny" not in str(fused)
    assert "kemeny" not in fused.to_dict()
    result = fp.aggregation.aggregate(RUNS, "Copeland", qrels=QRELS, depth=10)
    text = str(result)
    assert "weights by NDCG@10 on 20 judged queries" in text
    assert f"r2  {result.weights[2]:.4f}  ({present(result.measured).means[2]:.4f})" in text
    assert f"Kemeny cost {result.cost:.6g}" in text
    summary = result.to_dict()
    assert summary["rankers"][2] == {
        "name": "r2",
        "weight": result.weights[2],
        "mean": present(result.measured).means[2],
    }
    assert summary["kemeny"]["cost"] == result.cost >= summary["kemeny"]["lower_bound"] > 0


@pytest.mark.parametrize(
    "method", [name for name, kind in METHODS.items() if not issubclass(kind, Fusion)]
)
def test_a_ranker_with_more_than_half_of_the_weight_is_noted(method: str) -> None:
    dominated = fp.aggregation.aggregate(RUNS, method, weights=[0.24, 0.51, 0.25])
    result, heaviest = ranked(dominated.run), ranked(RUNS[1])
    same = sum(result[q][:10] == heaviest[q][:10] for q in heaviest)
    assert same == len(heaviest) or method == "SupervisedKemeny"  # half of its list gives credit
    assert all(result[q][:7] == heaviest[q][:7] for q in heaviest)
    assert (
        "r1 has more than half of the weight: its first 10 documents are those of the result in "
        f"{same} of {len(heaviest)} queries; with RRF or Borda, the others count too"
    ) in str(dominated).splitlines()
    balanced = fp.aggregation.aggregate(RUNS, method, weights=[0.25, 0.5, 0.25])
    alone = fp.aggregation.aggregate(RUNS[:1], method)
    fused = fp.aggregation.aggregate(RUNS, "Borda", weights=[0.24, 0.51, 0.25])
    assert not any("more than half" in str(other) for other in (balanced, alone, fused))


def test_two_rankings_are_fused_by_default() -> None:
    result = fp.aggregation.aggregate(RUNS[:2])
    assert str(result.method) == "RRF"
    for runs in (RUNS, RUNS[:1]):
        assert str(fp.aggregation.aggregate(runs).method) == "SupervisedKemeny"


def test_tied_votes_are_counted_and_decided_by_reciprocal_ranks() -> None:
    """Two rankers say a b c d, b d c a: only b and d before c, and b before d, have a majority."""
    runs = [{"q": {d: -i for i, d in enumerate(ranking)}} for ranking in ("abcd", "bdca")]
    for pair in (runs, runs[::-1]):
        result = fp.aggregation.aggregate(pair, "ExactKemeny")
        assert ranked(result.run)["q"] == list("badc")  # 1/61 + 1/64 of a exceeds 1/62 + 1/64 of d
        assert result.report.tied_pairs.tolist() == [4]
        assert result.to_dict()["kemeny"]["tied_pairs"] == 4
        assert str(result).splitlines()[-3:] == [
            "Kemeny cost 2, at least 2 in any order (ratio 1.0000); 1 of 1 queries proven optimal, "
            "as other orders may be where votes are tied",
            "votes are tied on 4 of 6 pairs, in 1 of 1 queries; ties that ExactKemeny leaves keep "
            "the order of reciprocal rank fusion, then of document ids",
            "two rankings of equal weight have no majority where they differ: use RRF, or give a "
            "third ranking",
        ]
    based = fp.aggregation.aggregate(runs, "ExactKemeny", base={"q": {"a": 1.0}})
    assert ranked(based.run)["q"][0] == "a"
    assert "keep the order of the base run" in str(based)
    decided = fp.aggregation.aggregate([runs[0]] * 2, "ExactKemeny")
    assert "tied" not in str(decided)


def test_weights_decide_ties_and_candidates() -> None:
    """Two rankers of half of the weight, of which one has a first: the other puts it last."""
    runs = [{"q": {d: -i for i, d in enumerate(r)}} for r in ("abcd", "bcda", "bdca", "acdb")]
    for method in ("Kemeny", "ExactKemeny", "Copeland"):
        for weights, first in (([3, 1, 1, 3], "a"), ([1, 3, 3, 1], "b")):
            heavy = fp.aggregation.aggregate(runs, method, weights=weights)
            assert ranked(heavy.run)["q"][0] == first
    runs = [{"q": {d: -i for i, d in enumerate(ranking)}} for ranking in ("abc", "cde", "ced")]
    chosen = fp.aggregation.aggregate(runs, weights=[1, 0, 0], depth=2)
    assert ranked(chosen.run)["q"][:3] == list("abc")
    assert ranked(fp.aggregation.aggregate(runs, depth=2).run)["q"][0] == "c"


def test_ignored_missing_documents_change_the_order() -> None:
    lists = [{"q": ["a", "b"]}, {"q": ["c"]}, {"q": ["c"]}, {"q": ["b", "a"]}, {"q": ["b", "a"]}]
    runs = [as_run(table) for table in lists]
    last = fp.aggregation.aggregate(runs, "Borda")
    ignoring = fp.aggregation.aggregate(runs, "Borda", missing="ignore")
    assert ranked(last.run)["q"] == ["b", "a", "c"]  # three rankers put c last
    assert ranked(ignoring.run)["q"] == [
        "b",
        "c",
        "a",
    ]  # no ranker compared c with another document


@pytest.mark.filterwarnings("ignore:.*unjudged")
def test_malformed_rankings_raise_firstpage_errors() -> None:
    runs = [{"q": {"a": 1.0, "b": 0.5}}, {"q": {"a": 0.5, "b": 1.0}}]
    qrels = {"q": {"a": 1}}
    for call in (
        lambda: fp.aggregation.Ballots.from_lists([["a", "b"]]),  # type: ignore[list-item]
        lambda: fp.aggregation.Ballots.from_lists([{"q": 5}]),  # type: ignore[dict-item]
        lambda: fp.aggregation.Ballots.from_lists([{"q": "ab"}]),
        lambda: fp.aggregation.supervised_weights([], qrels),
        lambda: fp.aggregation.aggregate(runs, qrels=qrels, valid=5),  # type: ignore[arg-type]
    ):
        with pytest.raises(FirstpageError):
            call()
    assert fp.aggregation.aggregate(runs, qrels=qrels).weights[0] > 0.5
