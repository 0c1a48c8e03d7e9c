"""Documents that were called equal share a label, whatever the order in which they were shown."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.labeling.belief.posterior_ranks import consensus
from firstpage.labeling.strategies.registry import STRATEGIES, strategy
from firstpage.labeling.strategies.strategy import Answer, Compare, Grade, TopKTask
from firstpage.labeling.strategies.ties import last_outcomes, top_k_of
from tests.labeling.reference import by_merit, play
from tests.labeling.strategies.test_strategies import MEMORIES, SORTING


def level_labels(merit: list[int], k: int) -> list[int]:
    """Return k minus the number of better documents; 0 for a tie above nothing across rank k, or
    of all documents."""
    above = [sum(other > m for other in merit) for m in merit]
    labels = [max(k - count, 0) for count in above]
    lowest = [m == min(merit) for m in merit]
    if len(merit) > k or all(lowest):
        labels = [0 if low else label for low, label in zip(lowest, labels, strict=True)]
    return labels


@pytest.mark.slow
@pytest.mark.parametrize("name", SORTING + MEMORIES)
@given(
    merit=st.lists(st.integers(0, 3), min_size=2, max_size=9),
    k=st.integers(1, 6),
    seed=st.integers(0, 5),
)
def test_labels_are_those_of_the_levels(name: str, merit: list[int], k: int, seed: int) -> None:
    top_k, _ = play(strategy(name), TopKTask(len(merit), k, seed), by_merit(merit))
    labels = top_k.labels(k)
    if len(set(merit)) == len(merit):  # nothing is tied, so the last of the top k has a label
        best = sorted(range(len(merit)), key=lambda d: -merit[d])
        assert labels == [max(k - best.index(d), 0) for d in range(len(merit))]
    elif len(merit) > k and merit.count(min(merit)) == 1:
        expected = level_labels(merit, k)
        expected[merit.index(min(merit))] = labels[merit.index(min(merit))]
        assert labels == expected
    else:
        assert labels == level_labels(merit, k)


@pytest.mark.parametrize("name", STRATEGIES)
def test_equal_documents_are_not_labeled_by_the_order_in_which_they_came(name: str) -> None:
    """An assessor who calls everything equal distinguishes nothing, also with a prior."""
    for k in (3, 8, 10):
        task = TopKTask(8, k, 0, tuple(float(-d) for d in range(8)))
        top_k, _ = play(strategy(name), task, lambda question: Answer(0))
        assert top_k.labels(k) == [0] * 8


def answers(*rows: tuple[int, int, int]) -> dict[tuple[int, int], int]:
    return last_outcomes((Compare(a, b), Answer(outcome)) for a, b, outcome in rows)


CASES = {
    "chained": ([5, 3, 8, 1], answers((5, 3, 0), (3, 8, 0), (8, 1, 1)), ((5, 3, 8),), set()),
    "connected by others": ([0, 1], answers((0, 2, 0), (1, 2, 0), (1, 3, 1)), ((0, 1, 2),), set()),
    "strict despite ties": ([0, 1, 2], answers((0, 1, 0), (1, 2, 0), (0, 2, 1)), ((0, 1),), set()),
    "against the order": ([0, 1], answers((0, 1, 0), (1, 2, 1), (2, 0, 1)), (), set()),
    "across rank k": ([0, 1], answers((0, 1, 1), (1, 4, 0), (4, 5, 0), (5, 6, 1)), ((1, 4, 5),), set()),
    "worse than a member": ([0], answers((0, 1, 0), (1, 2, 0), (0, 3, 1), (3, 2, 1)), ((0, 1),), set()),
    "above nothing": ([0, 1], answers((0, 1, 1), (1, 4, 0), (0, 5, 1)), ((1, 4),), {1, 4}),
    "the best of those outside": ([0, 1], answers((0, 1, 1), (1, 2, 0), (1, 3, 0), (3, 2, 1)), ((1, 3),), set()),
    "none": ([0, 1], answers((0, 1, 1), (1, 2, 1)), (), set()),
    "revised": ([0, 1], answers((0, 1, 0), (1, 0, -1)), (), set()),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_ties_by_hand(case: str) -> None:
    order, outcomes, tied, undecided = CASES[case]
    top_k = top_k_of(order, 9, outcomes)
    assert top_k.tied == tied
    assert top_k.undecided == undecided


def test_bad_documents_have_label_0_and_are_known_to_be_worse() -> None:
    outcomes = answers((0, 1, 0), (1, 2, 0), (3, 4, 0))
    top_k = top_k_of([0, 1, 3], 5, outcomes, bad=frozenset({3, 4}))
    assert top_k.tied == ((0, 1, 2),)
    assert top_k.labels(3) == [3, 3, 3, 0, 0]


def test_equal_grades_cross_rank_k() -> None:
    grades = [2, 1, 1, 1, 0]
    top_k, _ = play(
        strategy("five-grade"), TopKTask(5, 2, 0), lambda q: Answer(grades[q.documents[0]])
    )
    assert top_k.labels(2) == [2, 1, 1, 1, 0]


def test_the_majority_decides_what_is_equal() -> None:
    """Documents 0 and 1 are equal by two of three, document 2 is worse by all."""
    rows = [(Compare(0, 1), Answer(0)), (Compare(0, 2), Answer(1)), (Compare(1, 2), Answer(1))]
    other = [(Compare(1, 0), Answer(1)), *rows[1:]]
    assert consensus(3, 1, [rows, rows, other]).labels(1) == [1, 1, 0]
    split = [(Compare(0, 1), Answer(1)), *rows[1:]]
    assert sum(consensus(3, 1, [split, other]).labels(1)) == 1
    graded = [[(Grade(d), Answer(g)) for d, g in enumerate((2, 2, 1))] for _ in range(2)]
    assert consensus(3, 1, graded).labels(1) == [1, 1, 0]


@pytest.mark.slow
@pytest.mark.parametrize("relevant", [0.1, 0.5])
@pytest.mark.parametrize("name", ["heap", "tournament", "insertion", "adaptive"])
def test_an_assessor_who_says_yes_or_no_does_not_favor_the_first_stage(
    name: str, relevant: float
) -> None:
    """The labels find the relevant documents, of which the first stage shows some first."""
    missed = labeled = 0
    for run in range(20):
        rng = np.random.default_rng(run)
        merit = (rng.random(20) < relevant).astype(float)
        prior = merit + rng.standard_normal(20)
        top_k, _ = play(
            strategy(name), TopKTask(20, 5, run, tuple(prior)), by_merit(merit.tolist())
        )
        labels = np.array(top_k.labels(5))
        missed += int(((labels == 0) & (merit > 0)).sum())
        labeled += int(((labels > 0) & (merit == 0)).sum())
    assert labeled == 0
    assert missed <= (5 if name == "adaptive" else 0)  # of about 40 and 200


@pytest.mark.parametrize("k", [1, 2, 3, 4, 10])
def test_documents_that_are_all_equal_have_label_0_beside_skipped_ones(k: int) -> None:
    by_pairs = top_k_of([2, 0, 1, 3][:k], 4, {(0, 2): 0})
    assert by_pairs.undecided == {0, 2}
    assert (by_pairs.labels(k)[0], by_pairs.labels(k)[2]) == (0, 0)
    answers = [Answer(2), Answer(0, skipped=True), Answer(2), Answer(0, skipped=True)]
    by_grades, _ = play(
        strategy("five-grade"), TopKTask(4, k), lambda question: answers[question.documents[0]]
    )
    assert by_grades.undecided == {0, 2}
    assert (by_grades.labels(k)[0], by_grades.labels(k)[2]) == (0, 0)
