"""A normal posterior of the documents' utilities, updated by answers of all kinds.

Each answer updates the posterior by moment matching: the result is the normal distribution with
exactly the mean and covariance of the posterior after that answer (expectation propagation, Minka
2001; a single pass is that of TrueSkill, Herbrich et al. 2006).  Unlike a Laplace approximation at
the mode it stays calibrated for an assessor who never errs; an answer costs O(n^2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, expm1, log, pi, sqrt
from typing import TypeAlias

import numpy as np
import scipy  # its modules are loaded when they are first used

from firstpage.core import Array, DataError, Floats, Ints

HALF_LOG_TAU = 0.5 * log(2 * pi)
MIN_PROBABILITY = 1e-300


# Thurstone's model with ties.  The assessor perceives the difference d of two utilities with a
# normal error of variance 1, and answers "first" above `margin`, "second" below -margin, and
# "neither" between them (Glenn and David 1960).  So the unit of all utilities is the standard
# deviation of the error of an answer.


def moments(
    mean: float, variance: float, outcome: int, margin: float
) -> tuple[float, float, float]:
    """Return the log probability of an answer about d ~ N(mean, variance), and its derivatives.

    The first and second derivative by the mean, g and h, give the exact moments of d after the
    answer: mean + variance g, and variance + variance^2 h (h < 0).
    """
    scale = sqrt(variance + 1.0)
    if outcome == 0:
        return _tie_moments(mean / scale, margin / scale, scale)
    t = (outcome * mean - margin) / scale
    log_probability = float(scipy.special.log_ndtr(t))
    ratio = exp(-0.5 * t * t - HALF_LOG_TAU - log_probability)
    return log_probability, outcome * ratio / scale, -ratio * (ratio + t) / (scale * scale)


def _tie_moments(t: float, width: float, scale: float) -> tuple[float, float, float]:
    """Return `moments` of the event |d + error| < margin; t and width are in units of `scale`.

    Both ends are mirrored into the lower tail, where logarithms are precise.
    """
    sign = -1.0 if t > 0 else 1.0
    low, high = -width - abs(t), width - abs(t)
    top = float(scipy.special.log_ndtr(high))
    log_probability = top + log(-expm1(float(scipy.special.log_ndtr(low)) - top))
    at_low = exp(-0.5 * low * low - HALF_LOG_TAU - log_probability)
    at_high = exp(-0.5 * high * high - HALF_LOG_TAU - log_probability)
    first = at_high - at_low  # derivative toward 0
    second = low * at_low - high * at_high - first * first
    return log_probability, sign * first / scale, second / (scale * scale)


def information(mean: Floats, variance: Floats, margin: float) -> Floats:
    """Return E[g^2]: the expected squared change of the mean of d, divided by variance^2.

    It is at most about 2/pi / (variance + 1), at mean 0, and almost 0 where the answer is certain.
    """
    scale = np.sqrt(variance + 1.0)
    size = np.abs(mean)  # symmetric in the sign; in this tail the probability of a tie is precise
    up, down = (size - margin) / scale, (-size - margin) / scale
    p_up, p_down = scipy.special.ndtr(up), scipy.special.ndtr(down)
    f_up, f_down = np.exp(-0.5 * up * up), np.exp(-0.5 * down * down)
    p_tie = np.maximum(scipy.special.ndtr(-up) - p_down, MIN_PROBABILITY)
    total = f_up**2 / np.maximum(p_up, MIN_PROBABILITY)
    total = total + f_down**2 / np.maximum(p_down, MIN_PROBABILITY)
    total += (f_up - f_down) ** 2 / p_tie
    expectation: Floats = total / (2 * pi * scale * scale)
    return expectation


# Bradley-Terry utilities (1952) by maximum likelihood; a tie is half a win for each.
RIDGE = 1e-6
MAX_NEWTON_STEPS = 200
MAX_STEP = 2.0  # of a utility: where one document always wins, the likelihood is nearly flat
STEP_TOLERANCE = 1e-9


def bradley_terry(
    n: int,
    left: Sequence[int] | Array,
    right: Sequence[int] | Array,
    outcome: Sequence[int] | Array,
) -> Floats:
    """Return utilities with P(left wins) = 1 / (1 + exp(u_right - u_left)) and mean 0.

    Maximizes the log likelihood minus `RIDGE` / 2 times the sum of squares.  The penalty keeps the
    utility of a document that always wins finite, and sets documents that were not compared, or a
    group that was not compared with the others, to 0.
    """
    games, points = np.zeros((n, n)), np.zeros(n)  # points: wins minus half of the games
    left, right = np.asarray(left, np.int64), np.asarray(right, np.int64)
    half = 0.5 * np.asarray(outcome, np.float64)
    for first, second, sign in ((left, right, 1.0), (right, left, -1.0)):
        np.add.at(games, (first, second), 1.0)
        np.add.at(points, first, sign * half)
    utilities = np.zeros(n)
    for _ in range(MAX_NEWTON_STEPS):
        probability = scipy.special.expit(utilities[:, None] - utilities)
        gradient = points - (games * (probability - 0.5)).sum(axis=1) - RIDGE * utilities
        fisher = games * probability * (1.0 - probability)
        step = np.linalg.solve(np.diag(fisher.sum(axis=1) + RIDGE) - fisher, gradient)
        longest = float(np.abs(step).max(initial=0.0))
        utilities = utilities + step * min(1.0, MAX_STEP / max(longest, STEP_TOLERANCE))
        if longest < STEP_TOLERANCE:
            break
    return np.asarray(utilities - utilities.mean())


MARGIN = 0.4  # of a tie, in standard deviations of an answer: 3 in 10 equal pairs are called equal
PRIOR_SDS = (1.2, 0.7, 2.0)  # prior standard deviations of the utilities that are compared
MIN_EXPLORATION_SD = 1.2  # smaller ones concentrate too early on too few documents
PRIOR_CORRELATION = 0.5  # default correlation of a prior order with the truth
SHARED_VARIANCE = 0.5  # fraction of the variance that documents with equal features share
MAX_JOINT = 500  # documents whose covariances are kept
SWEEPS = 4  # passes over the answers; more change the third digit

Answers: TypeAlias = tuple[Sequence[int], Sequence[int], Sequence[int]]  # firsts, seconds, outcomes
Site: TypeAlias = tuple[float, float]  # an answer's factor: precision, precision x mean


@dataclass(frozen=True, eq=False)
class Utilities:
    """Normal utilities, of which some documents (by default all) have a joint distribution.

    Up to `MAX_JOINT` documents, all are joint. Of more, only those compared are, and of these the
    most promising ones: the others are independent, so that an answer costs no more for 10,000
    documents than for `MAX_JOINT`.

    Attributes
    ----------
    mean : array
        Means of the utilities.
    covariance : array
        Covariance matrix of the joint documents.
    margin : float
        Differences below it are called ties.
    evidence : float
        Log probability of the answers so far.
    prior_sd : float
        Standard deviation of the utilities before any answer.
    joint : array of int or None
        The documents of `covariance`, in its order; None: all documents.
    marginal_variance : array or None
        Variances of the documents that are not joint, by document; None if all are.
    """

    mean: Floats
    covariance: Floats
    margin: float = MARGIN
    evidence: float = 0.0
    prior_sd: float = 1.0
    joint: Ints | None = None
    marginal_variance: Floats | None = None

    @property
    def variance(self) -> Floats:
        """The variance per utility, bounded below by the rounding error."""
        variance: Floats = np.maximum(np.diagonal(self.covariance), 1e-12)
        if self.joint is None or self.marginal_variance is None:
            return variance
        of_all = self.marginal_variance.copy()
        of_all[self.joint] = variance
        return of_all

    def covariance_of(self, rows: Ints, columns: Ints) -> Floats:
        """Return the covariances of some documents with others."""
        if self.joint is None:
            return self.covariance[np.ix_(rows, columns)]
        at_rows, at_columns = self._places(rows), self._places(columns)
        matrix = np.where(np.equal.outer(rows, columns), self.variance[columns], 0.0)
        in_rows, in_columns = np.flatnonzero(at_rows >= 0), np.flatnonzero(at_columns >= 0)
        matrix[np.ix_(in_rows, in_columns)] = self.covariance[
            np.ix_(at_rows[in_rows], at_columns[in_columns])
        ]
        return matrix

    def marginal(self, documents: Ints) -> Utilities:
        """Return the distribution of some documents, in this order."""
        if self.joint is None:
            matrix = self.covariance[np.ix_(documents, documents)]
            return replace(self, mean=self.mean[documents], covariance=matrix)
        places = self._places(documents)
        inside = np.flatnonzero(places >= 0)
        return replace(
            self,
            mean=self.mean[documents],
            covariance=self.covariance[np.ix_(places[inside], places[inside])],
            joint=inside,
            marginal_variance=self.variance[documents],
        )

    def covariance_times(self, columns: Floats, power: int = 1) -> Floats:
        """Return the product of the covariance matrix (its elements to a power) with columns."""
        matrix = self.covariance if power == 1 else self.covariance**power
        if self.joint is None:
            return matrix @ columns
        diagonal = self.variance**power
        product: Floats = (columns.T * diagonal).T
        product[self.joint] = matrix @ columns[self.joint]
        return product

    def updated(self, first: int, second: int, outcome: int, weight: float = 1.0) -> Utilities:
        """Return the posterior after an answer: 1, the first is better; -1, the second; 0, a tie.

        An answer of weight w has an error of variance 1/w, so w = 2 counts about as two answers.
        """
        before = self.with_joint(first, second)
        direction, mean, variance = before.difference(first, second)
        root = weight**0.5
        log_probability, gradient, curvature = moments(
            root * mean, weight * variance, outcome, root * self.margin
        )
        after = before.moved(direction, root * gradient, weight * curvature)
        return replace(after, evidence=self.evidence + log_probability)

    def difference(self, first: int, second: int) -> tuple[Floats, float, float]:
        """Return the covariances of u_first - u_second with the joint utilities, its mean and
        its variance; both documents are joint."""
        a, b = (first, second) if self.joint is None else self._places(np.array([first, second]))
        direction = self.covariance[a] - self.covariance[b]
        mean = float(self.mean[first] - self.mean[second])
        return direction, mean, max(float(direction[a] - direction[b]), 1e-12)

    def moved(self, direction: Floats, by: float, curvature: float) -> Utilities:
        """Return the distribution with another mean and covariance along a direction."""
        outer = np.multiply.outer(direction * curvature, direction)
        return replace(
            self, mean=self.mean_moved(direction, by), covariance=self.covariance + outer
        )

    def mean_moved(self, direction: Floats, by: float) -> Floats:
        """Return the means after a step along a direction."""
        if self.joint is None:
            return self.mean + direction * by
        mean = self.mean.copy()
        mean[self.joint] += direction * by
        return mean

    def with_joint(self, *documents: int) -> Utilities:
        """Return the distribution with these documents joint.

        Where more than `MAX_JOINT` would be joint, those least likely to be among the best become
        independent: their means and variances remain, their covariances are dropped.
        """
        if self.joint is None or (np.isin(documents, self.joint)).all():
            return self
        variance = self.variance
        added = np.array([d for d in documents if d not in self.joint], np.int64)
        kept = np.arange(len(self.joint))
        excess = len(kept) + len(added) - MAX_JOINT
        if excess > 0:
            promise = (self.mean + 2.0 * np.sqrt(variance))[self.joint]
            promise[np.isin(self.joint, documents)] = np.inf
            kept = np.sort(np.argsort(-promise, kind="stable")[: len(kept) - excess])
        size = len(kept) + len(added)
        covariance = np.zeros((size, size))
        covariance[: len(kept), : len(kept)] = self.covariance[np.ix_(kept, kept)]
        new = np.arange(len(kept), size)
        covariance[new, new] = variance[added]
        return replace(
            self,
            covariance=covariance,
            joint=np.concatenate((self.joint[kept], added)),
            marginal_variance=variance,
        )

    def _places(self, documents: Ints) -> Ints:
        """Return the row of each document in `covariance`; -1 where it is not joint."""
        places = np.full(len(self.mean), -1)
        places[self.joint] = np.arange(len(self.covariance))
        found: Ints = places[documents]
        return found


def prior(
    n: int,
    prior_sd: float = 1.0,
    scores: Sequence[float] | None = None,
    features: Array | None = None,
    prior_correlation: float = PRIOR_CORRELATION,
) -> Utilities:
    """Return the distribution before any answer: utilities of variance prior_sd^2 around 0.

    `scores` enter by their normal scores (ranks), so that their scale does not matter;
    `prior_correlation` is their assumed correlation with the utilities, and removes its square from
    the variance.  Documents with similar `features` share up to half of the remaining variance; of
    more than `MAX_JOINT` documents, only the first ones by score do.
    """
    mean = np.zeros(n)
    variance = prior_sd * prior_sd
    if scores is not None:
        ranks = scipy.stats.rankdata(np.asarray(scores, np.float64))
        normal_scores = np.asarray(scipy.special.ndtri((ranks - 0.375) / (n + 0.25)))  # Blom
        mean = prior_correlation * prior_sd * normal_scores
        variance *= 1.0 - prior_correlation * prior_correlation
    if n <= MAX_JOINT:
        correlation = np.eye(n) if features is None else _correlation(features, n)
        return Utilities(mean, variance * correlation, prior_sd=prior_sd)
    joint = np.zeros(0, np.int64)
    correlation = np.zeros((0, 0))
    if features is not None:
        joint = np.argsort(-mean, kind="stable")[:MAX_JOINT]
        correlation = _correlation(features, n, joint)
    variances = np.full(n, variance)
    return Utilities(mean, variance * correlation, MARGIN, 0.0, prior_sd, joint, variances)


def _correlation(features: Array, n: int, documents: Ints | None = None) -> Floats:
    """Return correlations: half the identity, half exp(-distance^2 / (2 median distance^2))."""
    features = np.asarray(features, np.float64)
    if features.ndim != 2 or len(features) != n:
        raise DataError(f"features must have a row for each of the {n} documents.")
    if documents is not None:
        features, n = features[documents], len(documents)
    scale = features.std(axis=0)
    rows = (features - features.mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    square = (rows * rows).sum(axis=1)
    distance = np.maximum(square[:, None] + square - 2 * rows @ rows.T, 0.0)
    median = float(np.median(distance)) or 1.0
    correlation: Floats = (1 - SHARED_VARIANCE) * np.eye(n) + SHARED_VARIANCE * np.exp(
        -distance / (2 * median)
    )
    return correlation


def fit(before: Utilities, answers: Answers, weights: Sequence[float] | None = None) -> Utilities:
    """Return the posterior after all answers by expectation propagation, independent of order.

    The answers may come from several assessors.  `evidence` is that of the first sweep.
    """
    rows = list(zip(*answers, weights or [1.0] * len(answers[0]), strict=True))
    belief, sites = before, [(0.0, 0.0)] * len(rows)
    for sweep in range(SWEEPS):
        evidence = belief.evidence
        for at, row in enumerate(rows):
            belief, sites[at] = _update_site(belief, sites[at], *row)
        if sweep:
            belief = replace(belief, evidence=evidence)
    return belief


def _update_site(
    belief: Utilities, site: Site, first: int, second: int, outcome: int, weight: float
) -> tuple[Utilities, Site]:
    """Return the belief with an answer's site removed, matched again and put back, and the site."""
    direction, mean, variance = belief.difference(first, second)
    precision = max(1.0 / variance - site[0], 1e-9)  # of the difference without this answer
    cavity_mean = (mean / variance - site[1]) / precision
    root = weight**0.5
    log_probability, gradient, curvature = moments(
        root * cavity_mean, weight / precision, outcome, root * belief.margin
    )
    new_mean = cavity_mean + root * gradient / precision
    new_variance = max((1.0 + weight * curvature / precision) / precision, 1e-12)
    updated = belief.moved(
        direction, (new_mean - mean) / variance, (new_variance - variance) / variance**2
    )
    return replace(updated, evidence=belief.evidence + log_probability), (
        1.0 / new_variance - precision,
        new_mean / new_variance - cavity_mean * precision,
    )


@dataclass(frozen=True)
class BeliefEnsemble:
    """Posteriors of the same answers under several prior standard deviations of the utilities.

    Noisy answers and documents of similar quality favor a small standard deviation, an assessor
    who never errs the greatest.
    """

    beliefs: tuple[Utilities, ...]

    @classmethod
    def from_prior(
        cls,
        n: int,
        scores: Sequence[float] | None = None,
        features: Array | None = None,
        prior_correlation: float = PRIOR_CORRELATION,
    ) -> BeliefEnsemble:
        """Return the ensemble before any answer."""
        return cls(tuple(prior(n, sd, scores, features, prior_correlation) for sd in PRIOR_SDS))

    def updated(self, first: int, second: int, outcome: int) -> BeliefEnsemble:
        """Return the ensemble after an answer."""
        return BeliefEnsemble(
            tuple(belief.updated(first, second, outcome) for belief in self.beliefs)
        )

    @property
    def best(self) -> Utilities:
        """The posterior with the greatest evidence, for results; the first of several."""
        return max(self.beliefs, key=lambda b: b.evidence)

    @property
    def exploratory(self) -> Utilities:
        """The posterior with the greatest evidence among wide priors, for choosing questions."""
        return max(
            (b for b in self.beliefs if b.prior_sd >= MIN_EXPLORATION_SD), key=lambda b: b.evidence
        )
