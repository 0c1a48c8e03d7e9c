"""A belief about how good documents are: normal utilities, from answers of all kinds.

Each answer is taken in by matching moments: the normal law with exactly the mean and the
covariance that the answer leaves (expectation propagation, Minka 2001; with one pass that of
TrueSkill, Herbrich et al. 2006).  Unlike a fit around the mode it keeps its measure where an
assessor never errs, and it costs n^2 an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, expm1, log, pi, sqrt
from typing import TypeAlias

import numpy as np
from scipy.linalg import solve
from scipy.special import expit, log_ndtr, ndtr, ndtri
from scipy.stats import rankdata

from firstpage.errors import DataError
from firstpage.types import Array, Floats

HALF_LOG_TAU = 0.5 * log(2 * pi)
NEVER = 1e-300


# Thurstone's model with ties.  The assessor sees the difference d of two utilities with a normal
# error of variance 1, and answers "first" above `margin`, "second" below -margin, and "neither"
# between (Glenn and David 1960).  So the unit of all utilities is the error of one answer.


def moments(
    mean: float, variance: float, outcome: int, margin: float
) -> tuple[float, float, float]:
    """log chance of an answer about d ~ N(mean, variance), and its two derivatives by the mean.

    The derivatives g and h give d's moments after the answer exactly: mean + variance g, and
    variance + variance^2 h (h < 0).
    """
    scale = sqrt(variance + 1.0)
    if outcome == 0:
        return _tie(mean / scale, margin / scale, scale)
    t = (outcome * mean - margin) / scale
    chance = float(log_ndtr(t))
    ratio = exp(-0.5 * t * t - HALF_LOG_TAU - chance)
    return chance, outcome * ratio / scale, -ratio * (ratio + t) / (scale * scale)


def _tie(t: float, width: float, scale: float) -> tuple[float, float, float]:
    """Of |d + error| < margin; t and width are in units of `scale`.

    Both ends are mirrored into the lower tail, where logarithms keep their digits.
    """
    sign = -1.0 if t > 0 else 1.0
    low, high = -width - abs(t), width - abs(t)
    top = float(log_ndtr(high))
    chance = top + log(-expm1(float(log_ndtr(low)) - top))
    at_low = exp(-0.5 * low * low - HALF_LOG_TAU - chance)
    at_high = exp(-0.5 * high * high - HALF_LOG_TAU - chance)
    slope = at_high - at_low  # by -|t|'s opposite: toward 0
    bend = low * at_low - high * at_high - slope * slope
    return chance, sign * slope / scale, bend / (scale * scale)


def information(mean: Floats, variance: Floats, margin: float) -> Floats:
    """E[g^2]: how far an answer is expected to move the mean of d, squared, per variance^2.

    At most about 2/pi / (variance + 1), at mean 0; next to nothing where the answer is foreseen.
    """
    scale = np.sqrt(variance + 1.0)
    size = np.abs(mean)  # either sign says as much, and in this tail a tie keeps its digits
    up, down = (size - margin) / scale, (-size - margin) / scale
    p_up, p_down = ndtr(up), ndtr(down)
    f_up, f_down = np.exp(-0.5 * up * up), np.exp(-0.5 * down * down)
    tie = np.maximum(ndtr(-up) - p_down, NEVER)
    total = f_up**2 / np.maximum(p_up, NEVER) + f_down**2 / np.maximum(p_down, NEVER)
    total += (f_up - f_down) ** 2 / tie
    found: Floats = total / (2 * pi * scale * scale)
    return found


# Bradley and Terry's utilities (1952) by maximum likelihood; a tie is half a win for each.
RIDGE = 1e-6
MAX_NEWTON_STEPS = 200
MAX_STEP = 2.0  # step of a utility: where one always wins, the likelihood is nearly flat
STEP_TOLERANCE = 1e-9


def bradley_terry(
    n: int,
    left: Sequence[int] | Array,
    right: Sequence[int] | Array,
    outcome: Sequence[int] | Array,
) -> Floats:
    """Utilities with P(left wins) = 1 / (1 + exp(u_right - u_left)), their mean 0.

    Maximizes the log likelihood less `RIDGE` / 2 times the sum of squares, which keeps documents
    finite that always win, and puts those that nobody judged, or a group that nobody compared with
    the others, at 0.
    """
    games, points = np.zeros((n, n)), np.zeros(n)
    left, right = np.asarray(left, np.int64), np.asarray(right, np.int64)
    half = 0.5 * np.asarray(outcome, np.float64)
    for one, other, sign in ((left, right, 1.0), (right, left, -1.0)):
        np.add.at(games, (one, other), 1.0)
        np.add.at(points, one, sign * half)
    found = np.zeros(n)
    for _ in range(MAX_NEWTON_STEPS):
        step = _newton(found, games, points, RIDGE)
        longest = float(np.abs(step).max(initial=0.0))
        found = found + step * min(1.0, MAX_STEP / max(longest, STEP_TOLERANCE))
        if longest < STEP_TOLERANCE:
            break
    centered: Floats = found - found.mean()
    return centered


def _newton(at: Floats, games: Floats, points: Floats, penalty: float) -> Floats:
    """Newton's step; `points` are wins less half of the games, which the slope at 0 leaves."""
    chance = expit(at[:, None] - at)
    slope = points - (games * (chance - 0.5)).sum(axis=1) - penalty * at
    bend = games * chance * (1.0 - chance)
    curvature = np.diag(bend.sum(axis=1) + penalty) - bend
    found: Floats = solve(curvature, slope, assume_a="pos")
    return found


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
class BeliefEnsemble:
    """The same answers under several spreads of the utilities: how clear-cut is this assessor?

    Noisy answers and documents of one quality favor small spreads, an assessor who never errs
    the largest.
    """

    beliefs: tuple[Utilities, ...]

    @classmethod
    def from_prior(
        cls, n: int, scores: Sequence[float] | None = None, features: Array | None = None,
        trust: float = TRUST,
    ) -> BeliefEnsemble:  # fmt: skip
        """Before any answer."""
        return cls(tuple(prior(n, spread, scores, features, trust) for spread in SPREADS))

    def after(self, first: int, second: int, outcome: int) -> BeliefEnsemble:
        """Every belief after an answer."""
        return BeliefEnsemble(
            tuple(belief.after(first, second, outcome) for belief in self.beliefs)
        )

    @property
    def best(self) -> Utilities:
        """The one with the most evidence, for results; among equals the first."""
        return max(self.beliefs, key=lambda b: b.evidence)

    @property
    def curious(self) -> Utilities:
        """The one with the most evidence of those that expect much to be found, for questions."""
        return max((b for b in self.beliefs if b.spread >= CURIOUS), key=lambda b: b.evidence)
