"""The value of settling a dispute, against brute force on small queries."""

from __future__ import annotations

from itertools import combinations
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstpage.labeling.belief.posterior_ranks import consensus, consensus_belief, weighted_median
from firstpage.labeling.belief.utilities import Utilities, fit, prior
from firstpage.labeling.statistics.adjudication import (
    bad_value,
    contributions,
    grade_value,
    pair_values,
    top_k_change,
)
from firstpage.labeling.strategies.strategy import Answer, Compare, Grade

SAMPLES = 200_000


def brute_force_value(
    belief: Utilities, pair: tuple[int, int], k: int, weight: float, ties: bool
) -> float:
    """Sample utilities and verdicts; compare the tops by posterior means, document by document."""
    rng = np.random.default_rng(7)
    utilities = rng.multivariate_normal(belief.mean, belief.covariance, SAMPLES)
    perceived = utilities[:, pair[0]] - utilities[:, pair[1]]
    perceived = perceived + rng.standard_normal(SAMPLES) / weight**0.5
    answers = {1: perceived > belief.margin, -1: perceived < -belief.margin}
    if ties:
        answers[0] = abs(perceived) <= belief.margin
    total = sum(int(chosen.sum()) for chosen in answers.values())
    value = 0.0
    for chosen in answers.values():
        if chosen.any():
            before, after = (
                dict(zip(np.argsort(-means)[:k].tolist(), range(k), strict=False))
                for means in (belief.mean, utilities[chosen].mean(axis=0))
            )
            differing = 0.0
            for document in range(len(belief.mean)):
                old, new = (
                    1 / log2(ranks[document] + 2) if document in ranks else 0.0
                    for ranks in (before, after)
                )
                differing += abs(old - new)
            ideal = sum(1 / log2(rank + 2) for rank in range(min(k, len(belief.mean))))
            value += int(chosen.sum()) / total * differing / (2 * ideal)
    return value


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weight", [1.0, 10.0])
def test_the_value_of_a_pair_is_that_of_brute_force(weight: float, ties: bool) -> None:
    answers = ((0, 1, 0, 2, 2, 0), (1, 2, 3, 3, 1, 1), (1, 1, -1, -1, 1, -1))
    belief = fit(prior(4), answers)
    pairs = list(combinations(range(4), 2))
    values = pair_values(belief, pairs, 2, weight, ties=ties)
    expected = [brute_force_value(belief, pair, 2, weight, ties) for pair in pairs]
    assert values == pytest.approx(expected, abs=0.01)
    assert max(values) > 0.05, "the assessors contradict each other"


def test_documents_outside_the_top_k_are_worth_nothing() -> None:
    belief = Utilities(np.array([9.0, 8.0, -5.0, -5.1]), np.eye(4) * 0.01)
    values = pair_values(belief, [(0, 1), (2, 3)], 2, 10.0)
    assert values[1] == 0
    assert pair_values(belief, [(2, 3)], 4, 10.0)[0] > 0, "all four are in the truth"
    assert pair_values(belief, [(0, 1)], 2, 0.0)[0] == 0, "verdicts do not count"


def test_a_bad_document_at_the_top_is_worth_more_than_one_below() -> None:
    mean = np.array([3.0, 2.0, 1.0, 0.0])
    values = [bad_value(mean, d, 2, frozenset(), 1, 2, 10.0) for d in range(4)]
    # p(bad) = (1 + .5) / 3; without document 0, documents 1 and 2 are the top.
    discount = 1 / log2(3)
    change = (1 + (1 - discount) + discount) / (2 * (1 + discount))
    assert values[0] == pytest.approx(0.5 * change)
    assert values[0] > values[1] > values[2] == values[3] == 0


def test_the_value_of_a_grade_by_hand() -> None:
    """Two assessors gave 2 and 0 to a document; a verdict of weight 1 decides between them."""
    grades = {0: [2, 0], 1: [1, 1]}
    before = contributions([1, 0], 2, np.array([0.0, 1.0]))  # medians 0 and 1
    after_two = contributions([0, 1], 2, np.array([3.0, 1.0]))
    after_one = contributions([0, 1], 2, np.array([1.0, 1.0]))
    probability = (1 + 1 / 3) / 3
    expected = probability * top_k_change(before, after_two)
    expected += (1 / 3) / 3 * top_k_change(before, after_one)
    assert grade_value(grades, 0, 2, 2, 3, 1.0) == pytest.approx(expected)


@given(st.permutations(range(6)), st.permutations(range(6)), st.integers(1, 6))
def test_the_change_is_a_distance_between_tops(first: list[int], second: list[int], k: int) -> None:
    tops = [contributions(order[:k], 6) for order in (first, second)]
    change = top_k_change(*tops)
    assert change == top_k_change(*reversed(tops))
    assert 0 <= change <= 1 + 1e-12
    assert (change == 0) == (first[:k] == second[:k])
    if not set(first[:k]) & set(second[:k]):
        assert change == pytest.approx(1)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=7), st.integers(0, 4), st.integers(1, 9))
def test_a_weighted_median_is_that_of_repeated_votes(
    votes: list[int], grade: int, times: int
) -> None:
    from statistics import median_low

    weighted = weighted_median([*((g, 1.0) for g in votes), (grade, float(times))])
    assert weighted == median_low([*votes, *[grade] * times])


@settings(deadline=None, max_examples=20)
@given(st.permutations(range(5)), st.integers(0, 3))
def test_a_verdict_of_great_weight_decides(truth: list[int], at: int) -> None:
    """Two assessors say the opposite of each other; the verdict orders two neighbors."""
    pairs = list(combinations(truth, 2))
    opinions = [tuple((Compare(*pair), Answer(sign)) for pair in pairs) for sign in (1, -1)]
    first, second = truth[at], truth[at + 1]
    for winner, loser in ((first, second), (second, first)):
        order = consensus(5, 5, opinions, [(Compare(winner, loser), Answer(1), 100.0)]).order
        assert order.index(winner) < order.index(loser)


def test_verdicts_flag_documents_and_clear_them() -> None:
    opinions = [((Compare(0, 1), Answer(1, frozenset({1}))),)] * 2
    assert consensus_belief(2, opinions).bad == {1}
    cleared = consensus_belief(2, opinions, [(Grade(1), Answer(1), 10.0)])
    assert cleared.bad == frozenset(), "a verdict that it is not bad"
    assert consensus_belief(2, opinions, [(Compare(1, 0), Answer(1), 10.0)]).bad == frozenset()
    assert consensus_belief(2, opinions, [(Compare(0, 1), Answer(1), 10.0)]).bad == {1}
    assert consensus_belief(2, opinions, [(Grade(1), Answer(1), 1.0)]).bad == {1}, "2 of 3"
    flagged = consensus_belief(2, [opinions[0], ()], [(Grade(0), Answer(0), 3.0)])
    assert flagged.bad == {0}


def test_values_of_more_documents_than_are_joint(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only compared documents have covariances; the values are those of the dense posterior."""
    from firstpage.labeling.belief import utilities

    answers = [((Compare(a, b), Answer(sign)),) for a, b, sign in ((0, 1, 1), (1, 2, 1), (2, 0, 1))]
    dense = consensus_belief(12, answers).belief
    monkeypatch.setattr(utilities, "MAX_JOINT", 10)
    sparse = consensus_belief(12, answers).belief
    assert dense.joint is None
    assert sparse.joint is not None
    pairs = [(0, 1), (1, 2), (2, 7)]
    values = [pair_values(belief, pairs, 3, 10.0) for belief in (dense, sparse)]
    assert values[1] == pytest.approx(values[0], abs=1e-6)
