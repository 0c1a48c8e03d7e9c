"""Posterior ranks: the order, its confidence, and the consensus of several assessors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import ndtr

from firstpage.labeling.belief.factorized import fit_many
from firstpage.labeling.belief.utilities import Utilities, prior
from firstpage.labeling.strategies.strategy import (
    AnsweredQuestion,
    Compare,
    Grade,
    TopK,
    tied_runs,
)
from firstpage.types import Floats, Ints

SAMPLES = 2000  # a probability then has a standard error of about .01
STOPPING_SAMPLES = 400  # of the stopping rule, which is evaluated after every answer
MAX_SAMPLED = 1 << 21  # utilities in memory at a time
SEED = 20120812


@dataclass(frozen=True, eq=False)
class RankPosterior:
    """The posterior of the top k.

    Attributes
    ----------
    order : array of int
        The top k by mean utility, best first.
    ranks : array of shape (n, k)
        Probability that document d has rank r, counted from 0.
    membership : array of shape (n,)
        Probability that a document is among the top k.
    confidence : array of shape (k,)
        Probability that the document at rank r of `order` has this rank.
    set_confidence : float
        Probability that the documents of `order` are the top k in some order.
    """

    order: Ints
    ranks: Floats
    membership: Floats
    confidence: Floats
    set_confidence: float


def rank_posterior(
    belief: Utilities,
    k: int,
    documents: Ints | None = None,
    samples: int = SAMPLES,
    order: Ints | None = None,
) -> RankPosterior:
    """Return the posterior of the top k of `documents` (default all), by sampling utilities.

    The other documents have probability 0.  The order is that of the means unless `order` gives
    another one.
    """
    n = len(belief.mean)
    documents = np.arange(n) if documents is None else documents
    k = min(k, len(documents)) if order is None else len(order)
    if order is None:
        order = documents[np.argsort(-belief.mean[documents], kind="stable")][:k]
    tops = sample_top_k(belief, k, documents, samples)
    ranks = np.zeros((n, k))
    for rank in range(k):
        ranks[:, rank] = np.bincount(tops[:, rank], minlength=n)
    ranks /= len(tops)
    same = (np.sort(tops, axis=1) == np.sort(order)).all(axis=1)
    return RankPosterior(
        order, ranks, ranks.sum(axis=1), ranks[order, np.arange(k)], float(same.mean())
    )


def is_confident(confidence: float, belief: Utilities, k: int, documents: Ints) -> bool:
    """Return whether the k documents of greatest mean are the best with this probability.

    The probability is at most that of any of them being above any other document; where this
    bound is too small, as it mostly is, nothing is sampled.
    """
    order = documents[np.argsort(-belief.mean[documents], kind="stable")]
    top, rest = order[:k], order[k:]
    if not (len(top) and len(rest)):
        return True
    difference = belief.mean[top][:, None] - belief.mean[rest]
    variance = belief.variance[top][:, None] + belief.variance[rest]
    variance = variance - 2.0 * belief.covariance_of(top, rest)
    if ndtr((difference / np.sqrt(np.maximum(variance, 1e-12))).min()) < confidence:
        return False
    return rank_posterior(belief, k, documents, STOPPING_SAMPLES).set_confidence >= confidence


def sample_top_k(belief: Utilities, k: int, documents: Ints, samples: int) -> Ints:
    """Return the top k, best first, per sample of the utilities; the seed is fixed.

    Documents more than four standard deviations below the k-th are left out.
    """
    mean, deviation = belief.mean[documents], np.sqrt(belief.variance[documents])
    threshold = np.sort(mean - 4.0 * deviation)[::-1][k - 1 : k]
    near = documents[mean + 4.0 * deviation >= threshold] if k else documents[:0]
    marginal = belief.marginal(near)
    scale, joint = np.sqrt(marginal.variance), marginal.joint
    cov = marginal.covariance
    root = np.linalg.cholesky(cov + 1e-9 * np.diag(np.diagonal(cov)))
    rng = np.random.default_rng(SEED)
    rows = max(1, MAX_SAMPLED // max(len(near), 1))
    tops = []
    for start in range(0, samples, rows):
        normal = rng.standard_normal((min(rows, samples - start), len(near)))
        if joint is None:
            utilities = marginal.mean + normal @ root.T
        else:
            utilities = marginal.mean + normal * scale
            utilities[:, joint] = marginal.mean[joint] + normal[:, joint] @ root.T
        tops.append(near[_largest(utilities, k)])
    return np.concatenate(tops)


def _largest(values: Floats, k: int) -> Ints:
    """Return the columns of the k greatest values of each row, in descending order."""
    if values.shape[1] <= 4 * k:
        return np.argsort(-values, axis=1, kind="stable")[:, :k]
    columns = (
        np.argpartition(-values, k - 1, axis=1)[:, :k] if k else np.zeros((len(values), 0), int)
    )
    order = np.argsort(-np.take_along_axis(values, columns, axis=1), axis=1, kind="stable")
    return np.take_along_axis(columns, order, axis=1)


Row = tuple[int, int, int, float]  # first, second, outcome, weight


def consensus(n: int, k: int, opinions: Sequence[Sequence[AnsweredQuestion]]) -> TopK:
    """Return the top k of n documents from the answers of all assessors, with its confidence.

    A document is bad, and comes last, if more than half of the assessors flagged it.  The m
    grades of an assessor are m (m - 1) / 2 comparisons whose weights sum to m - 1.
    """
    rows = [row for answers in opinions for row in _comparisons(answers)]
    flags = Counter(document for answers in opinions for document in _flagged_bad(answers))
    bad = frozenset(d for d, times in flags.items() if 2 * times > len(opinions))
    firsts, seconds, outcomes, weights = zip(*rows, strict=True) if rows else ((), (), (), ())
    belief = fit_many(prior(n), (firsts, seconds, outcomes), weights)
    good = np.array([d for d in range(n) if d not in bad], np.int64)
    posterior = rank_posterior(belief, min(k, n), good)
    last = sorted(bad, key=lambda d: -float(belief.mean[d]))[: min(k, n) - len(posterior.order)]
    membership = posterior.membership.copy()
    membership[last] = 1.0
    order = [*(int(d) for d in posterior.order), *last]
    return TopK.from_order(
        order,
        n,
        bad=bad,
        tied=tied_runs(order[: len(posterior.order)], _majority_ties(rows)),
        confidence=(*map(float, posterior.confidence), *[1.0] * len(last)),
        set_confidence=posterior.set_confidence,
        membership=tuple(map(float, membership)),
    )


def _comparisons(answers: Sequence[AnsweredQuestion]) -> list[Row]:
    """Return an assessor's answers as weighted comparisons; grades become comparisons."""
    rows: list[Row] = []
    graded: list[tuple[int, int]] = []
    for question, answer in answers:
        if answer.skipped:
            continue
        if isinstance(question, Compare):
            rows.append((question.first, question.second, answer.outcome, 1.0))
        else:
            graded.append((question.document, answer.outcome))
    for (first, a), (second, b) in combinations(graded, 2):
        rows.append((first, second, (a > b) - (a < b), 2 / len(graded)))
    return rows


def _majority_ties(rows: Sequence[Row]) -> set[tuple[int, int]]:
    """Return the pairs that were called equal more often than not."""
    balance: Counter[tuple[int, int]] = Counter()
    for first, second, outcome, _ in rows:
        balance[min(first, second), max(first, second)] += -1 if outcome else 1
    return {pair for pair, count in balance.items() if count > 0}


def _flagged_bad(answers: Sequence[AnsweredQuestion]) -> set[int]:
    """Return the documents that an assessor flagged as bad or gave the lowest grade."""
    flagged = {document for _, answer in answers for document in answer.bad}
    return flagged | {
        question.document
        for question, answer in answers
        if isinstance(question, Grade) and answer.outcome == 0 and not answer.skipped
    }
