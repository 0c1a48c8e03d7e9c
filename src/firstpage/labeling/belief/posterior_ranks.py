"""What a belief says about ranks: the order, how confident it is, and the consensus of several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtr

from firstpage.labeling.belief.utilities import Utilities, fit, prior
from firstpage.labeling.strategies.strategy import AnsweredQuestion, Compare, Grade, TopK, tied_runs
from firstpage.types import Floats, Ints

SAMPLES = 2000  # a chance is then known to about .01
FEW = 400  # to see whether it is time to stop, which is asked after every answer
SEED = 20120812


@dataclass(frozen=True, eq=False)
class RankPosterior:
    """The top k as believed, best first.

    `places[d, r]`: the chance that document d has place r (from 0); `membership`: that it is among
    the top k; `confidence[r]`: that the document at place r of `order` belongs there;
    `set_confidence`: that these documents are the top k.
    """

    order: Ints
    places: Floats
    membership: Floats
    confidence: Floats
    set_confidence: float


def standing(
    belief: Utilities,
    k: int,
    among: Ints | None = None,
    samples: int = SAMPLES,
    order: Ints | None = None,
) -> RankPosterior:
    """From samples of the utilities of documents `among` (all); the others have no chance.

    The order is that of the means, unless another one is given to be judged.
    """
    n = len(belief.mean)
    among = np.arange(n) if among is None else among
    k = min(k, len(among)) if order is None else len(order)
    if order is None:
        order = among[np.argsort(-belief.mean[among], kind="stable")][:k]
    tops = sampled_tops(belief, k, among, samples)
    places = np.zeros((n, k))
    for place in range(k):
        places[:, place] = np.bincount(tops[:, place], minlength=n)
    places /= len(tops)
    same = (np.sort(tops, axis=1) == np.sort(order)).all(axis=1)
    return RankPosterior(
        order, places, places.sum(axis=1), places[order, np.arange(k)], float(same.mean())
    )


def surer_than(confidence: float, belief: Utilities, k: int, among: Ints) -> bool:
    """Whether the k documents of greatest mean are the best with at least this chance.

    They are not more surely so than any one of them is above any other document; where that
    already is too little, as it mostly is, nothing is sampled.
    """
    order = among[np.argsort(-belief.mean[among], kind="stable")]
    top, rest = order[:k], order[k:]
    if not (len(top) and len(rest)):
        return True
    apart = belief.mean[top][:, None] - belief.mean[rest]
    variance = belief.variance[top][:, None] + belief.variance[rest]
    variance = variance - 2.0 * belief.covariance[np.ix_(top, rest)]
    if ndtr((apart / np.sqrt(np.maximum(variance, 1e-12))).min()) < confidence:
        return False
    return standing(belief, k, among, FEW).set_confidence >= confidence


def sampled_tops(belief: Utilities, k: int, among: Ints, samples: int) -> Ints:
    """The top k, best first, in samples of the utilities; always the same samples.

    Documents that four standard deviations would not bring near the k-th are left out.
    """
    mean, deviation = belief.mean[among], np.sqrt(belief.variance[among])
    bar = np.sort(mean - 4.0 * deviation)[::-1][k - 1 : k]
    near = among[mean + 4.0 * deviation >= bar] if k else among[:0]
    cov = belief.covariance[np.ix_(near, near)]
    root = np.linalg.cholesky(cov + 1e-9 * np.diag(np.diagonal(cov)))
    noise = np.random.default_rng(SEED).standard_normal((samples, len(near)))
    drawn = belief.mean[near] + noise @ root.T
    best = np.argsort(-drawn, axis=1, kind="stable")[:, :k]
    found: Ints = near[best]
    return found


Row = tuple[int, int, int, float]  # first, second, outcome, weight


def consensus(n: int, k: int, opinions: Sequence[Sequence[AnsweredQuestion]]) -> TopK:
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
    return TopK.from_order(
        order,
        n,
        bad=bad,
        tied=tied_runs(order[: len(found.order)], _mostly_ties(rows)),
        confidence=(*map(float, found.confidence), *[1.0] * len(last)),
        set_confidence=found.set_confidence,
        membership=tuple(map(float, membership)),
    )


def _rows(answers: Sequence[AnsweredQuestion]) -> list[Row]:
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


def _called_bad(answers: Sequence[AnsweredQuestion]) -> set[int]:
    """By the button, or by the lowest grade."""
    found = {document for _, answer in answers for document in answer.bad}
    return found | {
        question.document
        for question, answer in answers
        if isinstance(question, Grade) and answer.outcome == 0 and not answer.skipped
    }
