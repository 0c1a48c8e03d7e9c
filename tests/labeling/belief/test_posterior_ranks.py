"""The consensus of several assessors."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from firstpage.labeling.belief.posterior_ranks import consensus
from firstpage.labeling.strategies.strategy import Answer, AnsweredQuestion, Compare, Grade


def opinion(
    merit: list[float], noise: float = 0.0, seed: int = 0, pairs: int | None = None
) -> list[AnsweredQuestion]:
    """Return answers about all pairs, or `pairs` random ones, by merit with a normal error."""
    rng = np.random.default_rng(seed)
    all_pairs = list(combinations(range(len(merit)), 2))
    chosen = (
        all_pairs if pairs is None else [all_pairs[i] for i in rng.choice(len(all_pairs), pairs)]
    )
    answers: list[AnsweredQuestion] = []
    for a, b in chosen:
        difference = merit[a] - merit[b] + noise * rng.normal()
        answers.append((Compare(a, b), Answer(int(np.sign(difference)))))
    return answers


def test_two_agreeing_assessors_are_more_confident_than_one() -> None:
    merit = [5.0, 3.0, 4.0, 1.0, 2.0, 0.0]
    both = consensus(6, 3, [opinion(merit), opinion(merit)])
    assert both.order == (0, 2, 1)
    alone = consensus(6, 3, [opinion(merit)])
    assert both.set_confidence is not None
    assert alone.set_confidence is not None
    assert both.set_confidence > alone.set_confidence


def test_the_majority_decides() -> None:
    up, down = [0.0, 1.0, 2.0, 3.0], [3.0, 2.0, 1.0, 0.0]
    assert consensus(4, 2, [opinion(up), opinion(down), opinion(up)]).order == (3, 2)
    split = consensus(4, 2, [opinion(up), opinion(down)])
    assert split.membership == pytest.approx([0.5] * 4, abs=0.05)


def test_the_order_of_assessors_and_answers_hardly_matters() -> None:
    rng = np.random.default_rng(1)
    merit = list(rng.normal(size=12))
    people = [opinion(merit, 1.0, seed, pairs=25) for seed in range(3)]
    first = consensus(12, 4, people)
    reordered = consensus(12, 4, [list(reversed(answers)) for answers in reversed(people)])
    assert first.membership == pytest.approx(reordered.membership, abs=0.02)


def test_more_assessors_find_more_of_the_top() -> None:
    hits = {1: 0, 6: 0}
    for seed in range(12):
        merit = list(np.random.default_rng(seed).normal(size=15))
        best = set(np.argsort(merit)[-5:])
        for count in hits:
            people = [opinion(merit, 1.0, 100 * seed + i, pairs=20) for i in range(count)]
            hits[count] += len(best & set(consensus(15, 5, people).order))
    assert hits[6] > hits[1] + 6


def test_a_document_is_bad_by_majority() -> None:
    merit = [2.0, 1.0, 0.0]
    flagged: list[AnsweredQuestion] = [(Compare(0, 1), Answer(-1, frozenset({0})))]
    assert consensus(3, 2, [opinion(merit), opinion(merit), flagged]).bad == frozenset()
    top_k = consensus(3, 3, [flagged, flagged, opinion(merit)])
    assert top_k.bad == {0}
    assert top_k.order[-1] == 0


def test_grades_and_comparisons_are_combined() -> None:
    grades: list[AnsweredQuestion] = [(Grade(d), Answer(g)) for d, g in enumerate([0, 4, 2, 2])]
    assert consensus(4, 1, [grades]).order == (1,)
    both = consensus(4, 4, [grades, opinion([0.0, 3.0, 1.0, 2.0])])
    assert both.order == (1, 3, 2, 0)


def test_skipped_questions_and_no_answers_give_no_information() -> None:
    skipped: list[AnsweredQuestion] = [(Compare(0, 1), Answer(1, skipped=True))]
    assert consensus(2, 1, [skipped]).set_confidence == pytest.approx(0.5, abs=0.05)
    assert len(consensus(3, 2, []).order) == 2
