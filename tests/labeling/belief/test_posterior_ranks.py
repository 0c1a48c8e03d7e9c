"""One truth from several people."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from firstpage.labeling.belief.posterior_ranks import consensus
from firstpage.labeling.strategies.strategy import Answer, AnsweredQuestion, Compare, Grade


def opinion(
    merit: list[float], noise: float = 0.0, seed: int = 0, pairs: int | None = None
) -> list[AnsweredQuestion]:
    """Answers about all pairs, or so many random ones, of one who sees merit with an error."""
    rng = np.random.default_rng(seed)
    every = list(combinations(range(len(merit)), 2))
    picked = every if pairs is None else [every[i] for i in rng.choice(len(every), pairs)]
    found: list[AnsweredQuestion] = []
    for a, b in picked:
        apart = merit[a] - merit[b] + noise * rng.normal()
        found.append((Compare(a, b), Answer(int(np.sign(apart)))))
    return found


def test_two_who_agree() -> None:
    merit = [5.0, 3.0, 4.0, 1.0, 2.0, 0.0]
    found = consensus(6, 3, [opinion(merit), opinion(merit)])
    assert found.order == (0, 2, 1)
    alone = consensus(6, 3, [opinion(merit)])
    assert found.set_confidence is not None
    assert alone.set_confidence is not None
    assert found.set_confidence > alone.set_confidence


def test_two_outvote_one() -> None:
    up, down = [0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 0.0]
    assert consensus(4, 2, [opinion(up), opinion(down), opinion(up)]).order == (3, 2)
    split = consensus(4, 2, [opinion(up), opinion(down)])
    assert split.membership == pytest.approx([0.5] * 4, abs=0.05)


def test_the_order_of_people_and_answers_hardly_matters() -> None:
    rng = np.random.default_rng(1)
    merit = list(rng.normal(size=12))
    people = [opinion(merit, 1.0, seed, pairs=25) for seed in range(3)]
    one = consensus(12, 4, people)
    other = consensus(12, 4, [list(reversed(answers)) for answers in reversed(people)])
    assert one.membership == pytest.approx(other.membership, abs=0.02)


def test_more_people_find_more() -> None:
    hits = {1: 0, 6: 0}
    for seed in range(12):
        merit = list(np.random.default_rng(seed).normal(size=15))
        best = set(np.argsort(merit)[-5:])
        for count in hits:
            people = [opinion(merit, 1.0, 100 * seed + i, pairs=20) for i in range(count)]
            hits[count] += len(best & set(consensus(15, 5, people).order))
    assert hits[6] > hits[1] + 6


def test_bad_needs_a_majority() -> None:
    merit = [2.0, 1.0, 0.0]
    flagged: list[AnsweredQuestion] = [(Compare(0, 1), Answer(-1, frozenset({0})))]
    assert consensus(3, 2, [opinion(merit), opinion(merit), flagged]).bad == frozenset()
    found = consensus(3, 3, [flagged, flagged, opinion(merit)])
    assert found.bad == {0}
    assert found.order[-1] == 0


def test_grades_and_comparisons_together() -> None:
    grades: list[AnsweredQuestion] = [(Grade(d), Answer(g)) for d, g in enumerate([0, 4, 2, 2])]
    assert consensus(4, 1, [grades]).order == (1,)
    both = consensus(4, 4, [grades, opinion([0.0, 3.0, 1.0, 2.0])])
    assert both.order == (1, 3, 2, 0)


def test_skipped_and_nothing() -> None:
    skipped: list[AnsweredQuestion] = [(Compare(0, 1), Answer(1, skipped=True))]
    assert consensus(2, 1, [skipped]).set_confidence == pytest.approx(0.5, abs=0.05)
    assert len(consensus(3, 2, []).order) == 2
