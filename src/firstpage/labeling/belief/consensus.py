"""One truth where several people judged a query: what fits all their answers best."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from firstpage.labeling.belief.posterior_ranks import standing
from firstpage.labeling.belief.utilities import fit, prior
from firstpage.labeling.strategies.strategy import Asked, Compare, Grade, TopK, tied_runs

Row = tuple[int, int, int, float]  # first, second, outcome, weight


def consensus(n: int, k: int, opinions: Sequence[Sequence[Asked]]) -> TopK:
    """The top k of n documents from everybody's answers, with its confidence.

    A document is bad, and comes last, if more than half of those who judged called it so.  m
    grades of one person are m (m - 1) / 2 comparisons that count m together.
    """
    rows = [row for answers in opinions for row in _rows(answers)]
    called = Counter(document for answers in opinions for document in _called_bad(answers))
    bad = frozenset(d for d, times in called.items() if 2 * times > len(opinions))
    firsts, seconds, outcomes, weights = zip(*rows, strict=True) if rows else ((), (), (), ())
    belief = fit(prior(n), (firsts, seconds, outcomes), weights)
    good = np.array([d for d in range(n) if d not in bad], np.int64)
    found = standing(belief, min(k, n), good)
    last = sorted(bad, key=lambda d: -float(belief.mean[d]))[: min(k, n) - len(found.order)]
    membership = found.membership.copy()
    membership[last] = 1.0
    order = [*(int(d) for d in found.order), *last]
    return TopK.of(
        order,
        n,
        bad=bad,
        tied=tied_runs(order[: len(found.order)], _mostly_ties(rows)),
        confidence=(*map(float, found.confidence), *[1.0] * len(last)),
        set_confidence=found.set_confidence,
        membership=tuple(map(float, membership)),
    )


def _rows(answers: Sequence[Asked]) -> list[Row]:
    """Comparisons of one person, grades turned into such."""
    rows: list[Row] = []
    graded: list[tuple[int, int]] = []
    for question, answer in answers:
        if answer.skipped:
            continue
        if isinstance(question, Compare):
            rows.append((question.first, question.second, answer.outcome, 1.0))
        else:
            graded.append((question.document, answer.outcome))
    for (one, high), (other, low) in combinations(graded, 2):
        rows.append((one, other, (high > low) - (high < low), 2 / len(graded)))
    return rows


def _mostly_ties(rows: Sequence[Row]) -> set[tuple[int, int]]:
    """Pairs that were called equal more often than not."""
    balance: Counter[tuple[int, int]] = Counter()
    for first, second, outcome, _ in rows:
        balance[min(first, second), max(first, second)] += -1 if outcome else 1
    return {pair for pair, count in balance.items() if count > 0}


def _called_bad(answers: Sequence[Asked]) -> set[int]:
    """By the button, or by the lowest grade."""
    found = {document for _, answer in answers for document in answer.bad}
    return found | {
        question.document
        for question, answer in answers
        if isinstance(question, Grade) and answer.outcome == 0 and not answer.skipped
    }
