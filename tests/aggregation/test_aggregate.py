"""aggregate(): weights, runs and scores out, reports, refusals."""

from __future__ import annotations

import numpy as np
import pytest

import firstpage as fp
from firstpage.aggregation.weights import normalize_weights
from firstpage.data.formats.trec import to_run
from firstpage.errors import DataError, FirstpageError, MeasureError
from tests.aggregation.test_ballots import as_run, ranked

# Runs and judgments that lack something of each other; `test_coverage` is about what is said then.
pytestmark = pytest.mark.filterwarnings("ignore:.*judged:firstpage.errors.FirstpageWarning")

RECIPE = fp.Synthetic(queries=20, docs=15, features=4, grades=3)
DATA = RECIPE.dataset()
TRUE = RECIPE.true_utility(DATA.X)


def noisy(scale: float, seed: int) -> np.ndarray:
    return TRUE + scale * np.random.default_rng(seed).normal(size=len(TRUE))


SCORES = np.array([noisy(0.5, 1), noisy(1.0, 2), noisy(3.0, 3)])
RUNS = [to_run(DATA, s, f"r{i}") for i, s in enumerate(SCORES)]
QRELS = fp.Qrels(DATA.queries, DATA.offsets, RUNS[0].docids, DATA.y)


def test_by_hand() -> None:
    runs = [{"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"b": 3, "a": 2, "c": 1}}, {"q": {"b": 1}}]
    found = fp.aggregate(runs, "Borda")
    assert ranked(found.run) == {"q": ["b", "a", "c"]}
    assert found.run.to_dict() == {"q": {"b": 3.0, "a": 2.0, "c": 1.0}}
    assert found.run.name == "Borda"
    assert found.cost == pytest.approx(1 / 3)  # a before b in one of three
    assert found.lower_bound == pytest.approx(1 / 3)
    assert found.report.optimal == 1


def test_scores_put_the_documents_in_the_order_of_the_run() -> None:
    ballots = fp.Ballots.from_scores(SCORES, DATA.offsets, SCORES[2], depth=6, queries=DATA.queries)
    found = fp.aggregate(ballots, "Copeland")
    byrun = fp.aggregate(RUNS, "Copeland", base=2, depth=6)
    same = to_run(DATA, found.scores)
    assert ranked(same) == ranked(byrun.run)
    for lo, hi in zip(DATA.offsets, DATA.offsets[1:], strict=False):
        assert sorted(found.scores[lo:hi].tolist()) == list(range(1, hi - lo + 1))
        tail = np.argsort(-SCORES[2][lo:hi], kind="stable")[6:]
        assert found.scores[lo:hi][tail].tolist() == list(range(hi - lo - 6, 0, -1))


def test_a_run_can_be_written_read_and_measured(tmp_path) -> None:
    found = fp.aggregate(RUNS, name="joined")
    fp.write_run(found.run, tmp_path / "x.run")
    again = fp.read_run(tmp_path / "x.run")
    assert again.name == "joined"
    assert ranked(again) == ranked(found.run)
    assert fp.evaluate(found.run, QRELS)["NDCG@10"] == fp.evaluate(again, QRELS)["NDCG@10"]


def test_weights_are_the_means_of_the_measure() -> None:
    for measure in ("NDCG@10", "P@5"):
        means = np.array([fp.evaluate(r, QRELS, measures=measure)[measure] for r in RUNS])
        for weights in (None, "auto"):
            found = fp.aggregate(RUNS, weights=weights, qrels=QRELS, measure=measure)
            assert found.weights == pytest.approx(means / means.sum())
            assert found.measured.queries == 20
            assert found.measured.means == pytest.approx(means)
    arrays = fp.supervised_weights(list(SCORES), DATA, "P@5")
    assert arrays.weights == pytest.approx(means / means.sum())
    assert (fp.aggregate(RUNS, weights=arrays).order == found.order).all()


def test_weights_are_measured_where_judgments_and_runs_meet() -> None:
    dicts = [run.to_dict() for run in RUNS]
    some = {q: docs for i, (q, docs) in enumerate(QRELS.to_dict().items()) if i < 7}
    judged = {**some, "elsewhere": {"d": 1.0}}
    found = fp.aggregate(dicts, qrels=judged)
    means = np.array([fp.evaluate(run, some, measures="NDCG@10")["NDCG@10"] for run in dicts])
    assert found.measured.queries == 7
    assert found.weights == pytest.approx(means / means.sum())
    short = [{q: d for q, d in dicts[0].items() if q != "1"}, *dicts[1:]]
    with pytest.warns(fp.FirstpageWarning, match="lacks 1 of 20 queries|1 of 7 judged"):
        less = fp.aggregate(short, qrels=judged)  # a run without a judged query gets 0 for it
    assert less.measured.means[0] < found.measured.means[0]
    assert less.measured.queries == 7


def test_validation_runs_stand_in_for_runs_over_other_queries() -> None:
    def over(queries: slice) -> list[dict]:
        return [dict(list(r.to_dict().items())[queries]) for r in RUNS]

    valid, test = over(slice(0, 12)), over(slice(12, None))
    judged = dict(list(QRELS.to_dict().items())[:12])
    with pytest.raises(DataError, match=r"share no query.*valid"):
        fp.aggregate(test, qrels=judged)
    found = fp.aggregate(test, qrels=judged, valid=valid)
    want = fp.supervised_weights([fp.Run.from_dict(r) for r in valid], judged)
    assert found.weights == pytest.approx(want.weights)
    assert len(found.ballots) == 8
    with pytest.raises(DataError, match="2 validation rankings for 3"):
        fp.aggregate(test, qrels=judged, valid=valid[:2])


def test_better_weights_make_better_rankings() -> None:
    plain = fp.aggregate(RUNS, "Borda", weights=[1, 1, 1])
    weighed = fp.aggregate(RUNS, "Borda", weights=[4, 1, 0])
    values = [fp.evaluate(found.run, QRELS)["NDCG@10"] for found in (plain, weighed)]
    assert values[1] > values[0]


@pytest.mark.parametrize(
    ("given", "want"),
    [
        (None, [0.25] * 4),
        ([0, 0, 0, 0], [0.25] * 4),
        ([1, 1, 2, 0], [0.25, 0.25, 0.5, 0]),
        ([1e308, 1e308, 1e308, 1e308], [0.25] * 4),
        ([1e-320, 0, 0, 0], [1, 0, 0, 0]),
    ],
)
@pytest.mark.filterwarnings("ignore:every ranker has the weight 0")
def test_weights_sum_to_one(given, want) -> None:
    assert normalize_weights(given, 4) == pytest.approx(want)


@pytest.mark.parametrize(
    ("weights", "said"),
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
def test_bad_weights_are_refused(weights, said: str) -> None:
    with pytest.raises(DataError, match=said):
        fp.aggregate(RUNS, weights=weights)


def test_unfit_input_is_refused() -> None:
    with pytest.raises(DataError, match="not both"):
        fp.aggregate(RUNS, weights=[1, 1, 1], qrels=QRELS)
    with pytest.raises(DataError, match="have no scores"):
        fp.aggregate(fp.Ballots.from_runs(RUNS), qrels=QRELS)
    for alone in (RUNS[0], RUNS[0].to_dict(), "a.run", 3):
        with pytest.raises(DataError, match="a list of runs"):
            fp.aggregate(alone)
    with pytest.raises(MeasureError, match="better when lower"):
        fp.aggregate(RUNS, qrels=QRELS, measure="WKT@5")
    with pytest.raises(DataError, match="no document ids"):
        fp.aggregate(fp.Ballots.from_scores(SCORES, DATA.offsets)).run  # noqa: B018


def test_scores_cannot_be_measured_by_judgments() -> None:
    with pytest.raises(DataError, match="runs with judgments"):
        fp.supervised_weights(list(SCORES), QRELS)
    with pytest.raises(DataError, match="runs with judgments"):
        fp.supervised_weights(RUNS, DATA.y)


def test_what_is_worse_than_nothing_weighs_nothing() -> None:
    upside_down = to_run(DATA, -TRUE, "down")
    found = fp.supervised_weights([RUNS[0], upside_down], QRELS, "Tau")
    assert found.means[1] < 0
    assert found.weights.tolist() == [1.0, 0.0]


def test_the_summary_says_what_went_in() -> None:
    found = fp.aggregate(RUNS, "rrf(c=10)", qrels=QRELS, depth=10)
    text = str(found)
    assert text.startswith("RRF(c=10): 20 queries, 200 candidates of 300 documents")
    assert "weights by NDCG@10 on 20 judged queries" in text
    assert f"r2  {found.weights[2]:.4f}  ({found.measured.means[2]:.4f})" in text
    assert f"Kemeny cost {found.cost:.6g}" in text
    told = found.to_dict()
    assert told["rankers"][2] == {
        "name": "r2",
        "weight": found.weights[2],
        "mean": found.measured.means[2],
    }
    assert told["kemeny"]["cost"] == found.cost >= told["kemeny"]["lower_bound"] > 0


def test_silence_on_missing_documents_changes_who_wins() -> None:
    lists = [{"q": ["a", "b"]}, {"q": ["c"]}, {"q": ["c"]}, {"q": ["b", "a"]}, {"q": ["b", "a"]}]
    runs = [as_run(table) for table in lists]
    last = fp.aggregate(runs, "Borda")
    silent = fp.aggregate(runs, "Borda", missing="silent")
    assert ranked(last.run)["q"] == ["b", "a", "c"]  # three rankers put c last
    assert ranked(silent.run)["q"] == ["b", "c", "a"]  # nobody compared c with anything


@pytest.mark.filterwarnings("ignore:.*unjudged")
def test_wrong_rankings_are_one_line() -> None:
    runs = [{"q": {"a": 1.0, "b": 0.5}}, {"q": {"a": 0.5, "b": 1.0}}]
    qrels = {"q": {"a": 1}}
    for wrong in (
        lambda: fp.Ballots.from_lists([["a", "b"]]),
        lambda: fp.Ballots.from_lists([{"q": 5}]),
        lambda: fp.Ballots.from_lists([{"q": "ab"}]),
        lambda: fp.supervised_weights([], qrels),
        lambda: fp.aggregate(runs, qrels=qrels, valid=5),
    ):
        with pytest.raises(FirstpageError):
            wrong()
    assert fp.aggregate(runs, qrels=qrels).weights[0] > 0.5
