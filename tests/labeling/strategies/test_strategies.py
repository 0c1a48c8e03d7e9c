"""Every strategy finds the true top k, asks as often as theory says, and ends whatever is answered."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from math import ceil, factorial, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstpage.errors import DataError
from firstpage.labeling.strategies.registry import STRATEGIES, strategy
from firstpage.labeling.strategies.strategy import Answer, Compare, Grade, Task, TopK, tied_runs
from tests.labeling.reference import by_merit, heap_label, play

SORTING = [
    "heap", "heap-memo", "heap-closure", "tournament", "insertion", "quick-sort",
    "quick-sort(whole=false)", "select-best", "pairs",
]  # fmt: skip
MEMORIES = ["tournament(memory=none)", "insertion(memory=pairs)", "quick-sort(memory=none)"]


def counts(name: str, n: int, k: int, runs: int) -> np.ndarray:
    merit = [float(i) for i in range(n)]
    return np.array(
        [len(play(strategy(name), Task(n, k, seed), by_merit(merit))[1]) for seed in range(runs)]
    )


@pytest.mark.parametrize("name", SORTING + MEMORIES)
@given(merit=st.permutations(range(9)), k=st.integers(1, 12), seed=st.integers(0, 5))
def test_finds_the_true_top(name: str, merit: list[int], k: int, seed: int) -> None:
    found, _ = play(strategy(name), Task(9, k, seed), by_merit([float(m) for m in merit]))
    best = sorted(range(9), key=lambda d: -merit[d])
    assert list(found.order) == best[:k]
    assert sorted(found.order + found.rest) == list(range(9))


@pytest.mark.slow
@pytest.mark.parametrize("name", SORTING)
@given(data=st.data(), n=st.integers(1, 12), k=st.integers(1, 14))
def test_any_answers_end_in_a_valid_top(name: str, data: st.DataObject, n: int, k: int) -> None:
    """Contradictions, ties and bad documents too: every question has a fixed consequence."""

    def respond(question: Compare | Grade) -> Answer:
        outcome = data.draw(st.integers(-1, 1))
        bad = data.draw(st.sets(st.sampled_from(question.documents)))
        return Answer(outcome, frozenset(bad), skipped=data.draw(st.booleans()))

    found, asked = play(strategy(name), Task(n, k), respond)
    assert len(found.order) == min(n, k)
    assert sorted(found.order + found.rest) == list(range(n))
    assert len(asked) <= 2 * n * n
    flags = [d in found.bad for d in found.order]
    assert flags == sorted(flags), "bad documents come last"


@given(
    merit=st.lists(st.integers(0, 4), min_size=1, max_size=30),
    k=st.integers(1, 12),
    seed=st.integers(0, 9),
)
def test_heap_is_the_papers(merit: list[int], k: int, seed: int) -> None:
    """The same questions in the same order as the algorithm of SPEC 2.1, ties included."""
    task = Task(len(merit), k, seed)
    calls: list[tuple[int, int]] = []

    def less(a: int, b: int) -> bool:
        calls.append((a, b))
        return merit[a] < merit[b]

    top, rest = heap_label(task.shuffled(), k, less)
    found, asked = play(strategy("heap"), task, by_merit([float(m) for m in merit]))
    assert [q.documents for q in asked] == calls
    assert list(found.order) == top
    assert sorted(found.rest) == sorted(rest)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n", "mean", "within"),
    [
        ("heap", 50, 150.8, 1.5), ("heap-memo", 50, 135.8, 1.5), ("heap-closure", 50, 130.4, 1.5),
        ("tournament", 50, 90.7, 0.3), ("insertion", 50, 115.6, 1.2),
        ("heap", 100, 232, 5), ("heap-closure", 100, 210, 5), ("tournament", 100, 150, 0.5),
        ("insertion", 100, 189, 4),
    ],
)  # fmt: skip
def test_counts(name: str, n: int, mean: float, within: float) -> None:
    """SPEC 2.3; the tournament meets what no strategy can promise to beat, 90 and 150."""
    found = counts(name, n, 10, 600 if n == 50 else 150)
    error = 3 * found.std() / np.sqrt(len(found))
    assert abs(found.mean() - mean) < max(within, error)


def test_thousand_documents() -> None:
    assert abs(counts("tournament", 1000, 10, 3).mean() - 1080) <= 1
    assert abs(counts("heap", 1000, 10, 5).mean() - 1238) < 60


@pytest.mark.slow
def test_tournament_stays_under_ninety_one() -> None:
    """On average; n - k + ceil(log2(n! / (n-k+1)!)) = 90 is the least that can be promised."""
    assert 40 + ceil(log2(factorial(50) / factorial(41))) == 90
    assert counts("tournament", 50, 10, 200).mean() <= 91


@pytest.mark.slow
def test_select_best_and_every_pair_by_arithmetic() -> None:
    assert counts("select-best", 20, 4, 2).tolist() == [19 + 18 + 17 + 16] * 2
    assert counts("pairs", 7, 3, 2).tolist() == [21, 21]
    assert counts("quick-sort", 60, 10, 40).mean() == pytest.approx(
        2 * 61 * sum(1 / i for i in range(1, 61)) - 4 * 60, rel=0.1
    )


@pytest.mark.parametrize(
    "name", ["heap-memo", "heap-closure", "tournament", "insertion", "quick-sort"]
)
def test_no_pair_twice(name: str) -> None:
    for seed in range(20):
        asked = play(strategy(name), Task(30, 8, seed), by_merit([float(i) for i in range(30)]))[1]
        assert max(Counter(q.pair for q in asked if isinstance(q, Compare)).values()) == 1


def test_closure_asks_nothing_that_follows() -> None:
    """Against a plain search for paths among the answers given before."""
    for seed in range(10):
        asked = play(
            strategy("heap-closure"), Task(25, 6, seed), by_merit([float(i) for i in range(25)])
        )[1]
        above: dict[int, set[int]] = {d: set() for d in range(25)}
        for question in asked:
            low, high = question.pair  # merit is the number itself
            reach, stack = set(), [low]
            while stack:
                for up in above[stack.pop()] - reach:
                    reach.add(up)
                    stack.append(up)
            assert high not in reach
            above[low].add(high)


def test_ties_are_not_transitive() -> None:
    """a ~ b and b ~ c say nothing of a and c: the pair is asked."""
    asked = play(strategy("pairs(memory=closure)"), Task(5, 5), lambda q: Answer(0))[1]
    assert {q.pair for q in asked if isinstance(q, Compare)} == set(combinations(range(5), 2))


def test_a_good_prior_saves_questions() -> None:
    n, merit = 50, [float(-i) for i in range(50)]
    with_prior = Task(n, 10, prior=tuple(merit))
    asked = play(strategy("insertion"), with_prior, by_merit(merit))[1]
    assert len(asked) == n - 1  # each document loses to the one before it, and that is all
    assert len(asked) < counts("insertion", n, 10, 5).min()


def test_bad_documents_are_not_asked_about() -> None:
    """SPEC 2.5: one bad loses unasked, two are equal, and the bad ones come last."""
    good = {0, 1, 2, 3}
    merit = [float(10 - d) for d in range(12)]

    def respond(question: Compare | Grade) -> Answer:
        bad = frozenset(d for d in question.documents if d not in good)
        return Answer(by_merit(merit)(question).outcome, bad)

    for name in SORTING:
        found, asked = play(strategy(name), Task(12, 6), respond)
        assert list(found.order[:4]) == [0, 1, 2, 3], name
        assert set(found.order[4:]) <= found.bad, name
        twice = [q for q in asked if not set(q.documents) & good]
        assert len(twice) <= 4, "two bad documents meet only while nobody has called them bad"


def test_five_grades() -> None:
    grades = [4, 0, 2, 2, 3, 0]
    found, asked = play(strategy("five-grade"), Task(6, 4, 3), by_merit([float(g) for g in grades]))
    assert sorted(q.document for q in asked if isinstance(q, Grade)) == list(range(6))
    assert [grades[d] for d in found.order] == [4, 3, 2, 2]
    assert found.tied == (tuple(d for d in found.order if grades[d] == 2),)
    assert found.bad == {1, 5}


def test_skipped_grades_come_last() -> None:
    found, _ = play(
        strategy("five-grade"), Task(3, 3), lambda q: Answer(0, skipped=q.documents == (1,))
    )
    assert found.order[-1] == 1


def test_tied_runs_by_hand() -> None:
    assert tied_runs([5, 3, 8, 1, 2], {(3, 5), (3, 8), (1, 2)}) == ((5, 3, 8), (1, 2))
    assert tied_runs([5, 3], set()) == ()


def test_labels() -> None:
    assert TopK.of([2, 0], 4).labels(10) == [9, 0, 10, 0]


@pytest.mark.parametrize("name", STRATEGIES)
def test_one_and_two_documents(name: str) -> None:
    found, asked = play(strategy(name), Task(1, 10), lambda q: Answer(0))
    assert found.order == (0,)
    assert len(asked) == (1 if name == "five-grade" else 0)
    found, _ = play(strategy(name), Task(2, 1), by_merit([0.0, 1.0]))
    assert found.order == (1,)


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (lambda: Task(0, 3), "nothing to label"),
        (lambda: Task(3, 0), "from 1 on"),
        (lambda: Task(3, 1, prior=(1.0,)), "1 scores for 3"),
        (lambda: Task(2, 1, prior=(1.0, float("nan"))), "missing or infinite"),
        (lambda: strategy("heep"), "Did you mean 'heap'"),
        (lambda: strategy("heap(memory=much)"), "none, pairs or closure"),
        (lambda: strategy("heap(size=3)"), "no parameter 'size'"),
        (lambda: strategy("five-grade(levels=1)"), "at least 2"),
    ],
)
def test_bad_input(bad, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(DataError, match=says):
        bad()
