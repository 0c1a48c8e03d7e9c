"""Simulations: random queries by known counts, recorded votes by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.simulation.simulate import (
    SimulatedQueries,
    _complete_labels,
    run_strategy,
    simulate,
)
from firstpage.labeling.simulation.votes import Votes, read_votes
from firstpage.labeling.strategies.registry import strategy
from firstpage.labeling.strategies.strategy import Answer, Compare, Grade, TopKTask
from tests.narrow import present

VOTES = """topic,arg1,arg2,vote,worker
t,a,b,a1,w1
t,a,b,a1,w2
t,b,a,equal,w3
t,c,a,a2,w1
t,b,c,a1,w1

u,x,y,a2,w1
"""


@pytest.fixture
def votes(tmp_path: Path) -> list[Votes]:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES)
    return read_votes(path)


def test_the_heap_asks_the_expected_number_of_questions() -> None:
    [result] = simulate("heap", runs=1000)
    record = result.to_dict()
    assert record["mean_questions"] == pytest.approx(150.8, abs=1.5)
    assert record["sd_questions"] == pytest.approx(14.1, abs=0.8)
    assert record["recall"] == 1
    assert record["kNDCG@10"] == pytest.approx(1)


@pytest.mark.parametrize(
    ("queries", "mean"), [(SimulatedQueries(ties=0.6), 136.3), (SimulatedQueries(grades=5), 120.5)]
)
def test_ties_reduce_the_number_of_questions(queries: SimulatedQueries, mean: float) -> None:
    """With 60 % of documents mutually tied, and with five equally likely grades."""
    [result] = simulate("heap", queries=queries, runs=500)
    assert result.question_counts.mean() == pytest.approx(mean, abs=2.5)
    assert result.recall.mean() == 1, "documents as good as the k-th count"


@pytest.mark.parametrize("name", ["heap", "tournament", "insertion", "adaptive", "five-grade"])
def test_labels_of_ties_do_not_favor_the_prior_order(name: str) -> None:
    """Documents are relevant or not, and shown in an order that tells a little about it."""
    queries = SimulatedQueries(n=20, grades=2, prior_tau=0.3)
    [result] = simulate(name, 5, queries=queries, runs=30)
    record = result.to_dict()
    assert record["prior_ndcg"] == pytest.approx(record["prior_ndcg_complete"], abs=0.01)
    assert 0.7 < record["prior_ndcg_complete"] < 0.8


def test_ndcg_of_the_prior_order_by_hand() -> None:
    """Everything is equal: nothing is measured.  With errors, labels and truth differ."""
    equal = SimulatedQueries(n=6, grades=1, prior_tau=0.5)
    [result] = simulate("heap", 3, queries=equal, runs=3)
    assert np.isnan(present(result.prior_ndcg)).all()
    assert result.to_dict()["prior_ndcg"] is None
    wrong = SimulatedQueries(n=6, noise=1.0, prior_tau=1.0)
    [result] = simulate("heap", 3, queries=wrong, runs=3)
    by_labels, complete = present(result.prior_ndcg)
    assert (complete == 1).all()
    assert (by_labels < 0.1).all()
    [result] = simulate("heap", 3, runs=2)
    assert result.prior_ndcg is None


@pytest.mark.parametrize(
    ("merit", "labels"),
    [
        ([3, 2, 1, 0], [2, 1, 0, 0]),
        ([1, 1, 1, 0], [2, 2, 2, 0]),
        ([2, 1, 1, 1], [2, 0, 0, 0]),
        ([1, 1, 1, 1], [0, 0, 0, 0]),
        ([1, 1], [2, 2]),
        ([2, 2, 1, 1], [2, 2, 0, 0]),
    ],
)
def test_complete_labels_by_hand(merit: list[float], labels: list[int]) -> None:
    assert _complete_labels(np.array(merit, np.float64), 2).tolist() == labels


def test_noise_reduces_recall() -> None:
    [clean] = simulate("heap", runs=100)
    [noisy] = simulate("heap", queries=SimulatedQueries(noise=0.1), runs=300)
    assert clean.recall.mean() == 1
    assert 0.6 < noisy.recall.mean() < 0.9
    [grades] = simulate("five-grade", queries=SimulatedQueries(noise=0.1), runs=100)
    assert grades.question_counts.tolist() == [50.0] * 100
    assert 0.5 < grades.recall.mean() <= 1


def test_a_prior_has_the_requested_tau_and_saves_questions() -> None:
    from scipy.stats import kendalltau

    queries = SimulatedQueries(n=200, prior_tau=0.6)
    taus = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        merit = queries.merit(rng)
        taus.append(kendalltau(merit, present(queries.prior(merit, rng))).statistic)
    assert np.mean(taus) == pytest.approx(0.6, abs=0.03)
    [without], [good] = (
        simulate("insertion", queries=SimulatedQueries(prior_tau=tau), runs=100)
        for tau in (None, 0.9)
    )
    assert good.question_counts.mean() < without.question_counts.mean() - 15


def test_results_at_a_budget_are_estimates() -> None:
    few, more, complete = simulate("insertion", runs=60, budgets=[30, 80, None])
    assert few.question_counts.tolist() == [30.0] * 60
    assert complete.question_counts.mean() > 100
    assert few.recall.mean() < more.recall.mean() < complete.recall.mean() == 1
    assert few.recall.mean() > 0.25, "better than a random ten of fifty"


def test_runs_are_independent() -> None:
    [short], [long] = (simulate("heap", runs=runs, seed=3) for runs in (5, 20))
    assert short.question_counts.tolist() == long.question_counts[:5].tolist()
    [other] = simulate("heap", runs=5, seed=4)
    assert short.question_counts.tolist() != other.question_counts.tolist()


def test_progress_is_called_after_each_run() -> None:
    calls: list[tuple[int, int]] = []
    simulate("heap", runs=3, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]


def test_votes_by_hand(votes: list[Votes]) -> None:
    t, u = votes
    assert t.documents == ("a", "b", "c")
    assert t.outcomes == {(0, 1): (1, 1, 0), (0, 2): (1,), (1, 2): (1,)}
    assert t.merit.tolist() == [2, 1, 0]
    assert u.merit.tolist() == [0, 1]
    rng = np.random.default_rng(0)
    outcomes = [t.responder(rng)(Compare(1, 0)).outcome for _ in range(300)]
    assert set(outcomes) == {-1, 0}
    assert np.mean(np.array(outcomes) == 0) == pytest.approx(1 / 3, abs=0.1)
    coin_outcomes = [t.responder(rng, "coin")(Compare(1, 0)).outcome for _ in range(300)]
    assert np.mean(coin_outcomes) == pytest.approx(-2 / 3, abs=0.15)
    assert t.responder(rng)(Compare(0, 2)) == Answer(1)
    with pytest.raises(DataError, match="cannot answer questions for grades"):
        t.responder(rng)(Grade(0))


def test_simulation_on_votes(votes: list[Votes]) -> None:
    [result] = simulate("heap", k=1, votes=votes, runs=4)
    record = result.to_dict()
    assert record["runs"] == 8
    assert set(record["recall_by_query"]) == {"t", "u"}
    assert record["recall_by_query"]["u"] == 1


def test_run_strategy_returns_a_result_per_budget() -> None:
    results = run_strategy(strategy("select-best"), TopKTask(5, 2), lambda q: Answer(1), [2, 4, 99])
    assert [result.questions for result in results] == [2, 4, 7]


def test_real_votes(real_data: Path) -> None:
    """The tournament asks about 66 questions, with recall .62 and kNDCG .59."""
    votes = read_votes(real_data / "ukpconvarg1" / "votes.csv")
    assert len(votes) == 16
    assert sum(len(v) for topic in votes for v in topic.outcomes.values()) == 41750
    [result] = simulate("tournament", votes=votes, runs=8)
    record = result.to_dict()
    assert record["mean_questions"] == pytest.approx(66, abs=4)
    assert record["recall"] == pytest.approx(0.62, abs=0.04)
    assert record["kNDCG@10"] == pytest.approx(0.59, abs=0.06)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topic,arg1,vote\n", ":1: there is no column arg2 or right"),
        ("topic,arg1,arg2,vote\nt,a,b,better\n", ":2: the vote 'better'"),
        ("topic,arg1,arg2,vote\nt,a,a,a1\n", ":2: a document against itself"),
        ("topic,arg1,arg2,vote\nt,a\n", ":2: the row has 2 fields"),
        ("topic,arg1,arg2,vote\n", "there are no votes"),
        ("", "there are no votes"),
    ],
)
def test_invalid_vote_files_raise_an_error(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_votes(path)


@pytest.mark.parametrize(
    "parameters",
    [
        {"noise": 1.5},
        {"ties": -0.1},
        {"prior_tau": 2.0},
        {"n": 0},
        {"grades": 0},
        {"noise": float("nan")},
    ],
)
def test_invalid_parameters_raise_an_error(parameters: dict[str, float]) -> None:
    with pytest.raises(DataError):
        SimulatedQueries(**parameters)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="runs"):
        simulate("heap", runs=0)
