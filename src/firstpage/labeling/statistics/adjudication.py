"""What settling a dispute would change: the expected change of the top k of the truth.

The change between two truths of a query is measured as DCG weighs them.  A document at rank r of
the top k contributes gain / log2(r + 1), any other document nothing; the change is the sum of the
absolute differences of the contributions, divided by the sum of all contributions of both.  So it
is 0 where the top k stays as it is, and 1 where no document remains in it.

The value of settling a pair is the expectation of this change over the answers that a verdict may
have, each with its probability under the posterior of the utilities, and each with the truth that
follows from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp

import numpy as np

from firstpage.core import Floats, Ints
from firstpage.labeling.belief.posterior_ranks import weighted_median
from firstpage.labeling.belief.utilities import Utilities, moments

UNIFORM_VOTES = 1.0  # weight of the prior, in which every grade is as probable as any other


def contributions(order: Sequence[int] | Ints, n: int, gains: Floats | None = None) -> Floats:
    """Return what each of n documents contributes to the DCG of the ideal ranking."""
    values = np.zeros(n)
    ranked = np.asarray(order, np.int64)
    weights = 1.0 / np.log2(np.arange(len(ranked)) + 2.0)
    values[ranked] = weights if gains is None else weights * gains[ranked]
    return values


def top_k_change(before: Floats, after: Floats) -> float:
    """Return the change between two truths, given the contributions of their documents."""
    total = float(before.sum() + after.sum())
    return float(np.abs(before - after).sum()) / total if total > 0 else 0.0


def pair_values(
    belief: Utilities,
    pairs: Sequence[tuple[int, int]],
    k: int,
    weight: float,
    documents: Ints | None = None,
    ties: bool = False,
) -> Floats:
    """Return the expected change of the top k if a verdict settles each of these pairs."""
    n = len(belief.mean)
    documents = np.arange(n) if documents is None else documents
    if not len(pairs) or weight <= 0:
        return np.zeros(len(pairs))
    before = contributions(_top(belief.mean, documents, k), n)
    values = np.zeros(len(pairs))
    root = weight**0.5
    outcomes = (1, 0, -1) if ties else (1, -1)
    for number, (first, second) in enumerate(pairs):
        joint = belief.with_joint(first, second)
        direction, mean, variance = joint.difference(first, second)
        total = 0.0
        for outcome in outcomes:
            log_probability, gradient, _ = moments(
                root * mean, weight * variance, outcome, root * belief.margin
            )
            after = joint.mean_moved(direction, root * gradient)
            probability = exp(log_probability)
            total += probability
            top = _top(after, documents, k)
            values[number] += probability * top_k_change(before, contributions(top, n))
        values[number] /= total
    return values


def bad_value(
    mean: Floats,
    document: int,
    k: int,
    bad: frozenset[int],
    flags: int,
    assessors: int,
    weight: float,
) -> float:
    """Return the expected change of the top k if a verdict says whether a document is bad."""
    probability = (flags + 0.5 * UNIFORM_VOTES) / (assessors + UNIFORM_VOTES)
    before = _good_contributions(mean, bad, k)
    value = 0.0
    for flagged, chance in ((True, probability), (False, 1.0 - probability)):
        is_bad = 2 * (flags + weight * flagged) > assessors + weight
        after = _good_contributions(mean, bad | {document} if is_bad else bad - {document}, k)
        value += chance * top_k_change(before, after)
    return value


def grade_value(
    grades: Mapping[int, Sequence[int]], document: int, n: int, k: int, levels: int, weight: float
) -> float:
    """Return the expected change of the graded truth if a verdict grades a document.

    A grade g has the gain 2^g - 1.  The grade of a verdict has the probability of the assessors'
    grades, with one uniform grade added.
    """
    medians = np.zeros(n)
    for graded, votes in grades.items():
        medians[graded] = weighted_median([(g, 1.0) for g in votes])
    votes = list(grades.get(document, ()))
    before = _graded_contributions(medians, k)
    value = 0.0
    for grade in range(levels):
        probability = (votes.count(grade) + UNIFORM_VOTES / levels) / (len(votes) + UNIFORM_VOTES)
        after = medians.copy()
        after[document] = weighted_median([*((g, 1.0) for g in votes), (grade, weight)])
        value += probability * top_k_change(before, _graded_contributions(after, k))
    return value


def _graded_contributions(grades: Floats, k: int) -> Floats:
    order = np.argsort(-grades, kind="stable")[:k]
    return contributions(order, len(grades), np.exp2(grades) - 1.0)


def _good_contributions(mean: Floats, bad: frozenset[int], k: int) -> Floats:
    good = np.array([d for d in range(len(mean)) if d not in bad], np.int64)
    return contributions(_top(mean, good, k), len(mean))


def _top(mean: Floats, documents: Ints, k: int) -> Ints:
    """Return the k documents of greatest mean, best first."""
    top: Ints = documents[np.argsort(-mean[documents], kind="stable")[:k]]
    return top
