"""The strategies of published preference judgments: shrinking pools and dueling bandits."""

from __future__ import annotations

from collections import Counter

import pytest

from firstpage.core.errors import DataError
from firstpage.labeling.strategies.registry import strategy
from firstpage.labeling.strategies.strategy import Compare, TopKTask
from tests.labeling.reference import by_merit, play

RISING = [float(i) for i in range(60)]


def pairs(name: str, task: TopKTask) -> tuple[list[int], list[tuple[int, int]]]:
    top_k, questions = play(strategy(name), task, by_merit(RISING[: task.n]))
    return list(top_k.order), [q.pair for q in questions if isinstance(q, Compare)]


def test_a_small_pool_is_all_pairs() -> None:
    """9 documents are at most the last pool of k = 5: 36 pairs, and the exact order."""
    order, asked = pairs("pools", TopKTask(9, 5))
    assert order == [8, 7, 6, 5, 4]
    assert len(asked) == len(set(asked)) == 36


@pytest.mark.parametrize(("n", "pairings"), [(40, 7), (41, 7), (40, 4), (41, 4)])
def test_a_round_compares_each_document_with_random_others(n: int, pairings: int) -> None:
    name = f"pools(pairings={pairings},memory=none)"
    first_round = pairs(name, TopKTask(n, 5))[1][: (n * pairings + 1) // 2]
    assert len(set(first_round)) == len(first_round)
    times = Counter(document for pair in first_round for document in pair)
    assert len(times) == n
    assert sum(times.values()) - n * pairings == n * pairings % 2
    assert set(times.values()) <= {pairings, pairings + 1}
    assert first_round != pairs(name, TopKTask(n, 5, seed=1))[1][: len(first_round)]


def test_the_pool_shrinks_by_about_half() -> None:
    """A document that wins half of its comparisons remains; the best one always does."""
    for seed in range(20):
        order, asked = pairs("pools", TopKTask(60, 1, seed))
        assert order == [59]
        assert len(asked) < 60 * 3 / 2 * 2.5  # 90 + 45 + 22 + ..: each round about half the last


def test_the_last_pool_has_at_least_k_documents() -> None:
    order, _ = pairs("pools(pairings=1,last=1)", TopKTask(20, 12))
    assert len(set(order)) == 12


def test_depth_compares_the_best_by_the_prior_and_their_ties() -> None:
    prior = tuple(float(i // 10) for i in range(60))  # six grades of ten documents
    asked = pairs("pools(depth=12)", TopKTask(60, 3, prior=prior))[1]
    assert {d for pair in asked for d in pair} == set(range(40, 60))


@pytest.mark.parametrize("repeats", [1, 2])
def test_duels_ask_a_pair_a_limited_number_of_times(repeats: int) -> None:
    order, asked = pairs(f"duels(repeats={repeats},budget=500)", TopKTask(12, 3))
    assert max(Counter(asked).values()) == repeats
    assert order == [11, 10, 9]
    assert len(asked) <= repeats * 66


def test_narrow_bounds_exclude_pairs() -> None:
    """Where the bounds have no width, a document that lost is not asked against its winner."""
    asked = pairs("duels(alpha=0,budget=500)", TopKTask(12, 1))[1]
    assert len(asked) < 3 * 66


def test_duels_spend_their_answers_on_the_best() -> None:
    """The bandit compares the best documents more often than a random choice would."""
    name = "duels(budget=150)"
    asked = [pair for seed in range(10) for pair in pairs(name, TopKTask(30, 1, seed))[1]]
    times = Counter(document for pair in asked for document in pair)
    assert sum(times[d] for d in range(25, 30)) > 2 * sum(times[d] for d in range(5))


def test_duels_stop_at_their_budget() -> None:
    assert len(pairs("duels(budget=17)", TopKTask(30, 5))[1]) == 17
    assert len(pairs("duels", TopKTask(50, 10))[1]) == 150  # that of the adaptive strategy


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pools(pairings=0)", "pairings"),
        ("pools(depth=-1)", "depth"),
        ("duels(alpha=-1)", "alpha"),
        ("duels(repeats=0)", "repeats"),
        ("duels(budget=-1)", "budget"),
    ],
)
def test_parameters_out_of_range(name: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        strategy(name)
