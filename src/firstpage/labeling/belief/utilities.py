"""A belief about how good documents are: normal utilities, from answers of all kinds.

Each answer is taken in by matching moments: the normal law with exactly the mean and the
covariance that the answer leaves (expectation propagation, Minka 2001; with one pass that of
TrueSkill, Herbrich et al. 2006).  Unlike a fit around the mode it keeps its measure where an
assessor never errs, and it costs n^2 an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from firstpage.errors import DataError
from firstpage.labeling.belief.thurstone import moments
from firstpage.types import Array, Floats

MARGIN = 0.4  # of differences that look equal, in errors of one answer: 3 in 10 of equal pairs
SPREADS = (1.2, 0.7, 2.0)  # standard deviations of utilities that are tried
CURIOUS = 1.2  # who believes in less asks too early about too few
TRUST = 0.5  # correlation of a prior order with the truth, unless told otherwise
SHARED = 0.5  # of the variance, what documents with like features have in common
SWEEPS = 4  # passes over the answers; more change the third digit

Answers: TypeAlias = tuple[Sequence[int], Sequence[int], Sequence[int]]  # firsts, seconds, outcomes
Share: TypeAlias = tuple[float, float]  # of one answer in a belief: precision, precision x mean


@dataclass(frozen=True, eq=False)
class Utilities:
    """Utilities ~ N(mean, covariance); `evidence`: log chance of the answers that led here."""

    mean: Floats
    covariance: Floats
    margin: float = MARGIN
    evidence: float = 0.0
    spread: float = 1.0

    @property
    def variance(self) -> Floats:
        """Of each utility; not below what rounding leaves."""
        found: Floats = np.maximum(np.diagonal(self.covariance), 1e-12)
        return found

    def after(self, first: int, second: int, outcome: int, weight: float = 1.0) -> Utilities:
        """The belief after one answer; 1: the first is better, -1: the second, 0: neither.

        `weight` w: as if its error had variance 1/w; so w = 2 says about as much as two answers.
        """
        along = self.covariance[first] - self.covariance[second]
        mean, variance = self._difference(first, second, along)
        root = weight**0.5
        chance, slope, bend = moments(root * mean, weight * variance, outcome, root * self.margin)
        return replace(
            self,
            mean=self.mean + along * (root * slope),
            covariance=self.covariance + np.multiply.outer(along * (weight * bend), along),
            evidence=self.evidence + chance,
        )

    def _difference(self, first: int, second: int, along: Floats) -> tuple[float, float]:
        mean = float(self.mean[first] - self.mean[second])
        return mean, max(float(along[first] - along[second]), 1e-12)


def prior(
    n: int,
    spread: float = 1.0,
    scores: Sequence[float] | None = None,
    features: Array | None = None,
    trust: float = TRUST,
) -> Utilities:
    """The belief before any answer: utilities of variance spread^2 around 0.

    `scores` count by their ranks, made normal, so their scale does not matter; `trust` is their
    believed correlation with the truth, so it also takes trust^2 off the variance.  Documents with
    `features` near to each other share up to half of what is left.
    """
    mean = np.zeros(n)
    left = spread * spread
    if scores is not None:
        ranks = rankdata(np.asarray(scores, np.float64))
        mean = trust * spread * np.asarray(ndtri((ranks - 0.375) / (n + 0.25)))  # Blom
        left *= 1.0 - trust * trust
    covariance = np.eye(n) if features is None else _alike(np.asarray(features, np.float64), n)
    return Utilities(mean, left * covariance, spread=spread)


def _alike(features: Floats, n: int) -> Floats:
    """Correlations from features: half the identity, half exp(-distance^2 / 2 typical^2)."""
    if features.ndim != 2 or len(features) != n:
        raise DataError(f"features must be a row for each of {n} documents.")
    scale = features.std(axis=0)
    rows = (features - features.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    square = (rows * rows).sum(axis=1)
    distance = np.maximum(square[:, None] + square - 2 * rows @ rows.T, 0.0)
    typical = float(np.median(distance)) or 1.0
    found: Floats = (1 - SHARED) * np.eye(n) + SHARED * np.exp(-distance / (2 * typical))
    return found


def fit(before: Utilities, answers: Answers, weights: Sequence[float] | None = None) -> Utilities:
    """The belief after answers, whatever their order: passes until their shares agree.

    For the consensus of several assessors: hand in the answers of all.  `evidence` is that of the
    first pass.
    """
    rows = list(zip(*answers, weights or [1.0] * len(answers[0]), strict=True))
    belief, shares = before, [(0.0, 0.0)] * len(rows)
    for sweep in range(SWEEPS):
        evidence = belief.evidence
        for at, row in enumerate(rows):
            belief, shares[at] = _again(belief, shares[at], *row)
        if sweep:
            belief = replace(belief, evidence=evidence)
    return belief


def _again(
    belief: Utilities, share: Share, first: int, second: int, outcome: int, weight: float
) -> tuple[Utilities, Share]:
    """Take one answer's share (precision, precision x mean) out, and in again as it is now due."""
    along = belief.covariance[first] - belief.covariance[second]
    mean, variance = belief._difference(first, second, along)
    precision = max(1.0 / variance - share[0], 1e-9)  # of the difference without this answer
    alone = (mean / variance - share[1]) / precision
    root = weight**0.5
    chance, slope, bend = moments(root * alone, weight / precision, outcome, root * belief.margin)
    then_mean = alone + root * slope / precision
    then = max((1.0 + weight * bend / precision) / precision, 1e-12)
    changed = replace(
        belief,
        mean=belief.mean + along * ((then_mean - mean) / variance),
        covariance=belief.covariance
        + np.multiply.outer(along * ((then - variance) / variance**2), along),
        evidence=belief.evidence + chance,
    )
    return changed, (1.0 / then - precision, then_mean / then - alone * precision)


@dataclass(frozen=True)
class Rivals:
    """The same answers under several spreads of the utilities: how clear-cut is this assessor?

    Noisy answers and documents of one quality favour small spreads, an assessor who never errs
    the largest.
    """

    beliefs: tuple[Utilities, ...]

    @classmethod
    def of(
        cls, n: int, scores: Sequence[float] | None = None, features: Array | None = None,
        trust: float = TRUST,
    ) -> Rivals:  # fmt: skip
        """Before any answer."""
        return cls(tuple(prior(n, spread, scores, features, trust) for spread in SPREADS))

    def after(self, first: int, second: int, outcome: int) -> Rivals:
        """Every belief after an answer."""
        return Rivals(tuple(belief.after(first, second, outcome) for belief in self.beliefs))

    @property
    def best(self) -> Utilities:
        """The one with the most evidence, for results; among equals the first."""
        return max(self.beliefs, key=lambda b: b.evidence)

    @property
    def curious(self) -> Utilities:
        """The one with the most evidence of those that expect much to be found, for questions."""
        return max((b for b in self.beliefs if b.spread >= CURIOUS), key=lambda b: b.evidence)
