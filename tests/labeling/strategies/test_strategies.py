"""Every strategy finds the true top k, asks the expected number of questions, and always ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.core.errors import DataError
from firstpage.labeling.strategies.registry import STRATEGIES, strategy
from firstpage.labeling.strategies.strategy import Answer, Compare, Grade, TopK, TopKTask
from tests.labeling.reference import by_merit, heap_label, play
from tests.narrow import instance

SORTING = [
    "heap", "heap-memo", "heap-closure", "tournament", "insertion", "quick-sort",
    "quick-sort(full=false)", "select-best", "pairs",
]  # fmt: skip
PUBLISHED = ["pools", "pools(pairings=3,last=4)", "duels"]
MEMORIES = ["tournament(memory=none)", "insertion(memory=pairs)", "quick-sort(memory=none)"]


def counts(name: str, n: int, k: int, runs: int) -> np.ndarray:
    merit = [float(i) for i in range(n)]
    return np.array(
        [
            len(play(strategy(name), TopKTask(n, k, seed), by_merit(merit))[1])
            for seed in range(runs)
        ]
    )


@pytest.mark.parametrize("name", SORTING + MEMORIES)
@given(merit=st.permutations(range(9)), k=st.integers(1, 12), seed=st.integers(0, 5))
def test_the_true_top_is_found(name: str, merit: list[int], k: int, seed: int) -> None:
    top_k, _ = play(strategy(name), TopKTask(9, k, seed), by_merit([float(m) for m in merit]))
    best = sorted(range(9), key=lambda d: -merit[d])
    assert list(top_k.order) == best[:k]
    assert sorted(top_k.order + top_k.rest) == list(range(9))


@pytest.mark.parametrize("name", SORTING + MEMORIES + PUBLISHED)
def test_what_was_asked_before_is_not_asked_again(name: str) -> None:
    """Each answer and each skip counts as often as it was given: a restart goes on where it was."""
    merit = by_merit([float(i) for i in range(8)])

    def respond(question: Compare | Grade) -> Answer:
        return replace(merit(question), skipped=0 in question.documents)

    task = TopKTask(8, 3, 0)
    top_k, questions = play(strategy(name), task, respond)
    past = tuple((question, respond(question)) for question in questions)
    again, asked = play(strategy(name), replace(task, past=past), respond)
    assert asked == []
    assert again == top_k


@pytest.mark.parametrize("name", SORTING + PUBLISHED)
@given(data=st.data(), n=st.integers(1, 12), k=st.integers(1, 14))
def test_any_answers_give_a_valid_top(name: str, data: st.DataObject, n: int, k: int) -> None:
    """Contradictory answers, ties, skips and bad documents give a valid result."""

    def respond(question: Compare | Grade) -> Answer:
        outcome = data.draw(st.integers(-1, 1))
        bad = data.draw(st.sets(st.sampled_from(question.documents)))
        return Answer(outcome, frozenset(bad), skipped=data.draw(st.booleans()))

    top_k, questions = play(strategy(name), TopKTask(n, k), respond)
    assert len(top_k.order) == min(n, k)
    assert sorted(top_k.order + top_k.rest) == list(range(n))
    assert len(questions) <= 2 * n * n
    flags = [d in top_k.bad for d in top_k.order]
    assert flags == sorted(flags), "bad documents come last"


@given(
    merit=st.lists(st.integers(0, 4), min_size=1, max_size=30),
    k=st.integers(1, 12),
    seed=st.integers(0, 9),
)
def test_the_heap_is_the_algorithm_of_the_paper(merit: list[int], k: int, seed: int) -> None:
    """The questions are those of the paper's Algorithm 1, in the same order, ties included."""
    task = TopKTask(len(merit), k, seed)
    calls: list[tuple[int, int]] = []

    def less(a: int, b: int) -> bool:
        calls.append((a, b))
        return merit[a] < merit[b]

    top, rest = heap_label(task.shuffled(), k, less)
    top_k, questions = play(strategy("heap"), task, by_merit([float(m) for m in merit]))
    assert [q.documents for q in questions] == calls
    assert list(top_k.order) == top
    assert sorted(top_k.rest) == sorted(rest)


@pytest.mark.parametrize(
    ("name", "n", "mean", "within"),
    [
        ("heap-memo", 50, 135.8, 1.5), ("heap-closure", 50, 130.4, 1.5),
        ("tournament", 50, 90.7, 0.3), ("insertion", 50, 115.6, 1.2),
        ("heap", 100, 232, 5), ("heap-closure", 100, 210, 5), ("tournament", 100, 150, 0.5),
        ("insertion", 100, 189, 4),
    ],
)  # fmt: skip
def test_mean_number_of_questions(name: str, n: int, mean: float, within: float) -> None:
    """The tournament meets the lower bounds of the worst case, 90 and 150.

    They are n - k + ceil(log2(n! / (n-k+1)!)).  The heap of 50 documents is in
    `simulation/test_simulate.py`.
    """
    numbers = counts(name, n, 10, 300 if n == 50 else 100)
    error = 3 * numbers.std() / np.sqrt(len(numbers))
    assert abs(numbers.mean() - mean) < max(within, error)


def test_number_of_questions_for_a_thousand_documents() -> None:
    assert abs(counts("tournament", 1000, 10, 3).mean() - 1080) <= 1
    assert abs(counts("heap", 1000, 10, 5).mean() - 1238) < 60


def test_select_best_and_every_pair_by_arithmetic() -> None:
    assert counts("select-best", 20, 4, 2).tolist() == [19 + 18 + 17 + 16] * 2
    assert counts("pairs", 7, 3, 2).tolist() == [21, 21]
    assert counts("quick-sort", 60, 10, 40).mean() == pytest.approx(
        2 * 61 * sum(1 / i for i in range(1, 61)) - 4 * 60, rel=0.1
    )


@pytest.mark.parametrize(
    "name", ["heap-memo", "heap-closure", "tournament", "insertion", "quick-sort"]
)
def test_no_pair_is_asked_twice(name: str) -> None:
    for seed in range(20):
        questions = play(
            strategy(name), TopKTask(30, 8, seed), by_merit([float(i) for i in range(30)])
        )[1]
        assert max(Counter(q.pair for q in questions if isinstance(q, Compare)).values()) == 1


def test_closure_asks_no_implied_pair() -> None:
    """No asked pair is connected by a path of earlier answers."""
    for seed in range(10):
        questions = play(
            strategy("heap-closure"), TopKTask(25, 6, seed), by_merit([float(i) for i in range(25)])
        )[1]
        above: dict[int, set[int]] = {d: set() for d in range(25)}
        for question in questions:
            low, high = instance(Compare, question).pair  # merit is the number itself
            reachable: set[int] = set()
            stack = [low]
            while stack:
                for up in above[stack.pop()] - reachable:
                    reachable.add(up)
                    stack.append(up)
            assert high not in reachable
            above[low].add(high)


def test_ties_are_not_transitive() -> None:
    """a ~ b and b ~ c do not imply a ~ c: the pair is asked."""
    questions = play(strategy("pairs(memory=closure)"), TopKTask(5, 5), lambda q: Answer(0))[1]
    assert {q.pair for q in questions if isinstance(q, Compare)} == set(combinations(range(5), 2))


def test_a_good_prior_saves_questions() -> None:
    n, merit = 50, [float(-i) for i in range(50)]
    with_prior = TopKTask(n, 10, prior=tuple(merit))
    questions = play(strategy("insertion"), with_prior, by_merit(merit))[1]
    assert len(questions) == n - 1  # each document loses to the one before it, and that is all
    assert len(questions) < counts("insertion", n, 10, 5).min()


def test_bad_documents_are_not_compared() -> None:
    """A bad document loses without a question, two are equal, and bad documents come last."""
    good = {0, 1, 2, 3}
    merit = [float(10 - d) for d in range(12)]

    def respond(question: Compare | Grade) -> Answer:
        bad = frozenset(d for d in question.documents if d not in good)
        return Answer(by_merit(merit)(question).outcome, bad)

    for name in SORTING:
        top_k, questions = play(strategy(name), TopKTask(12, 6), respond)
        assert list(top_k.order[:4]) == [0, 1, 2, 3], name
        assert set(top_k.order[4:]) <= top_k.bad, name
        twice = [q for q in questions if not set(q.documents) & good]
        assert len(twice) <= 4, "two bad documents meet only while nobody has called them bad"


def test_the_top_k_by_grades() -> None:
    grades = [4, 0, 2, 2, 3, 0]
    top_k, questions = play(
        strategy("five-grade"), TopKTask(6, 4, 3), by_merit([float(g) for g in grades])
    )
    assert sorted(q.document for q in questions if isinstance(q, Grade)) == list(range(6))
    assert [grades[d] for d in top_k.order] == [4, 3, 2, 2]
    assert top_k.tied == (tuple(d for d in top_k.order if grades[d] == 2),)
    assert top_k.bad == {1, 5}


def test_documents_with_skipped_grades_come_last() -> None:
    top_k, _ = play(
        strategy("five-grade"), TopKTask(3, 3), lambda q: Answer(0, skipped=q.documents == (1,))
    )
    assert top_k.order[-1] == 1


def test_labels_decrease_from_k() -> None:
    assert TopK.from_order([2, 0], 4).labels(10) == [9, 0, 10, 0]


@pytest.mark.parametrize("name", STRATEGIES)
def test_queries_with_one_and_two_documents(name: str) -> None:
    top_k, questions = play(strategy(name), TopKTask(1, 10), lambda q: Answer(0))
    assert top_k.order == (0,)
    assert len(questions) == (1 if name == "five-grade" else 0)
    top_k, _ = play(strategy(name), TopKTask(2, 1), by_merit([0.0, 1.0]))
    assert top_k.order == (1,)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda: TopKTask(0, 3), "cannot be labeled"),
        (lambda: TopKTask(3, 0), "k must be at least 1"),
        (lambda: TopKTask(3, 1, prior=(1.0,)), "1 scores for 3"),
        (lambda: TopKTask(2, 1, prior=(1.0, float("nan"))), "finite scores"),
        (lambda: strategy("heep"), "Did you mean 'heap'"),
        (lambda: strategy("heap(memory=much)"), "none, pairs or closure"),
        (lambda: strategy("heap(size=3)"), "no parameter 'size'"),
        (lambda: strategy("five-grade(levels=1)"), "levels of FiveGrade must be"),
    ],
)
def test_invalid_input_raises_an_error(bad, message: str) -> None:
    with pytest.raises(DataError, match=message):
        bad()
