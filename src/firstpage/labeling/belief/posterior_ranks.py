"""Posterior ranks: the order, its confidence, and the consensus of several assessors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import scipy  # its modules are loaded when they are first used

from firstpage.core import Floats, Ints
from firstpage.labeling.belief.factorized import fit_many
from firstpage.labeling.belief.utilities import Utilities, prior
from firstpage.labeling.strategies.strategy import (
    Answer,
    AnsweredQuestion,
    Compare,
    Grade,
    Question,
    TopK,
)
from firstpage.labeling.strategies.ties import top_k_of

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
    if scipy.special.ndtr((difference / np.sqrt(np.maximum(variance, 1e-12))).min()) < confidence:
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
Opinions = Sequence[Sequence[AnsweredQuestion]]  # the answers of each assessor
WeightedAnswer = tuple[Question, Answer, float]  # a verdict counts as so many answers


@dataclass(frozen=True, eq=False)
class ConsensusBelief:
    """What the answers of all assessors, and verdicts, say about the documents of a query.

    Documents that are bad by majority come last.
    """

    belief: Utilities
    bad: frozenset[int]
    rows: list[Row]

    @property
    def good(self) -> Ints:
        """The documents that are not bad."""
        return np.array([d for d in range(len(self.belief.mean)) if d not in self.bad], np.int64)


def consensus_belief(
    n: int, opinions: Opinions, verdicts: Sequence[WeightedAnswer] = ()
) -> ConsensusBelief:
    """Return the posterior of n documents given the answers of all assessors, and verdicts.

    A document is bad if more than half of the assessors flagged it; a verdict of weight w that
    flags it, or that says it is not bad or better than another document, counts as w assessors.
    """
    rows = [row for answers in opinions for row in _comparisons(answers)]
    rows += _verdict_comparisons(opinions, verdicts)
    flags: Counter[int] = Counter(d for answers in opinions for d in _flagged_bad(answers))
    flagged, total = dict[int, float](flags), dict.fromkeys(range(n), float(len(opinions)))
    for question, answer, weight in verdicts:
        worst = _flagged_bad([(question, answer)])
        for document in worst | _not_bad(question, answer):
            total[document] += weight
            flagged[document] = flagged.get(document, 0.0) + weight * (document in worst)
    bad = frozenset(d for d, times in flagged.items() if 2 * times > total[d])
    firsts, seconds, outcomes, weights = zip(*rows, strict=True) if rows else ((), (), (), ())
    return ConsensusBelief(fit_many(prior(n), (firsts, seconds, outcomes), weights), bad, rows)


def consensus(
    n: int,
    k: int,
    opinions: Opinions,
    verdicts: Sequence[WeightedAnswer] = (),
    ranked: frozenset[int] | None = None,
) -> TopK:
    """Return the top k of n documents from the answers of all assessors, with its confidence.

    A document is bad, and comes last, if more than half of the assessors flagged it.  The m
    grades of an assessor are m (m - 1) / 2 comparisons whose weights sum to m - 1.  A verdict of
    weight w counts as w answers.  With `ranked` only these documents are in the order; the
    confidence is still that among all documents.
    """
    fitted = consensus_belief(n, opinions, verdicts)
    belief, bad, good = fitted.belief, fitted.bad, fitted.good
    order_of = None
    if ranked is not None:
        candidates = good[np.isin(good, list(ranked))]
        order_of = candidates[np.argsort(-belief.mean[candidates], kind="stable")][:k]
        bad = bad & ranked
    posterior = rank_posterior(belief, min(k, n), good, order=order_of)
    last = sorted(bad, key=lambda d: -float(belief.mean[d]))[: min(k, n) - len(posterior.order)]
    membership = posterior.membership.copy()
    membership[last] = 1.0
    order = [*(int(d) for d in posterior.order), *last]
    return replace(
        top_k_of(order, n, _majority_outcomes(fitted.rows), bad),
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


def _verdict_comparisons(opinions: Opinions, verdicts: Sequence[WeightedAnswer]) -> list[Row]:
    """Return verdicts as comparisons; a grade is compared with the median grades of the others.

    Each of these comparisons has the weight that it has in the grades of an assessor, times that
    of the verdict.
    """
    grades: dict[int, list[tuple[int, float]]] = {}
    for graded, grade, times in _all_grades(opinions, verdicts):
        grades.setdefault(graded.document, []).append((grade.outcome, times))
    medians = {document: weighted_median(votes) for document, votes in grades.items()}
    rows: list[Row] = []
    for question, answer, weight in verdicts:
        if isinstance(question, Compare):
            rows.append((question.first, question.second, answer.outcome, weight))
            continue
        for other, median in medians.items():
            if other != question.document:
                sign = (answer.outcome > median) - (answer.outcome < median)
                rows.append((question.document, other, sign, 2 * weight / len(medians)))
    return [row for row in rows if row[3] > 0]


def _all_grades(
    opinions: Opinions, verdicts: Sequence[WeightedAnswer]
) -> Iterator[tuple[Grade, Answer, float]]:
    """Yield the grades of assessors with weight 1, and those of verdicts, if assessors graded."""
    graded = [
        (question, answer, 1.0)
        for answers in opinions
        for question, answer in answers
        if isinstance(question, Grade) and not answer.skipped
    ]
    yield from graded
    for question, answer, weight in verdicts:
        if graded and isinstance(question, Grade) and weight > 0:
            yield question, answer, weight


def weighted_median(votes: Sequence[tuple[int, float]]) -> int:
    """Return the least value with at least half of the weight at or below it."""
    ordered = sorted(votes)
    half, total = sum(weight for _, weight in ordered) / 2, 0.0
    for value, weight in ordered:
        total += weight
        if total >= half - 1e-9:
            return value
    return ordered[-1][0]


def _not_bad(question: Question, answer: Answer) -> set[int]:
    """Return the documents of a verdict that are not bad: one that wins, or has another grade."""
    if isinstance(question, Grade):
        return {question.document} - _flagged_bad([(question, answer)])
    winner = {1: {question.first}, -1: {question.second}}.get(answer.outcome, set())
    return winner - answer.bad


def _majority_outcomes(rows: Sequence[Row]) -> dict[tuple[int, int], int]:
    """Return the outcome of each pair, for its smaller document; a verdict counts its weight.

    A pair that was called equal more often than not is a tie.  A pair with as many answers for
    either document has no outcome.
    """
    ties: dict[tuple[int, int], float] = {}
    wins: dict[tuple[int, int], float] = {}
    for first, second, outcome, weight in rows:
        pair = min(first, second), max(first, second)
        vote = max(weight, 1.0)
        ties[pair] = ties.get(pair, 0.0) + (-vote if outcome else vote)
        wins[pair] = wins.get(pair, 0.0) + vote * (outcome if first < second else -outcome)
    return {
        pair: 0 if balance > 0 else 1 if wins[pair] > 0 else -1
        for pair, balance in ties.items()
        if balance > 0 or wins[pair]
    }


def _flagged_bad(answers: Sequence[AnsweredQuestion]) -> set[int]:
    """Return the documents that an assessor flagged as bad or gave the lowest grade."""
    flagged = {document for _, answer in answers for document in answer.bad}
    return flagged | {
        question.document
        for question, answer in answers
        if isinstance(question, Grade) and answer.outcome == 0 and not answer.skipped
    }
