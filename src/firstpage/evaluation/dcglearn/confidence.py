"""Confidence intervals of a learned measure by resampling, and a test of rank one.

The test asks whether gains depend on the position (footnote 4 of Zhou et al. 2013).  Weights that
fit best are never exactly of rank one, so their distance from rank one needs a reference: pairs are
simulated from the rank-one measure nearest to the learned one, with as much noise as the judgments
have, and weights are learned from these.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its modules are loaded when they are first used

from firstpage.core import DataError, Floats, Progress
from firstpage.data.preferences import Utility
from firstpage.evaluation.dcglearn.learn import DCGLearn
from firstpage.evaluation.dcglearn.pairs import Pairs
from firstpage.evaluation.dcglearn.validation import differences, folds
from firstpage.evaluation.dcglearn.weights import rank_one_factors
from firstpage.evaluation.measures.significance import CONFIDENCE_LEVEL, percentile_interval


@dataclass(frozen=True)
class PositionTest:
    """Result of the test whether gains depend on the position.

    Attributes
    ----------
    rank_one_fraction : float
        Fraction of the squared norm of the learned weights that gains times discounts explain.
    expected : float
        Its mean where gains do not depend on the position.
    p : float
        p-value: the probability of a fraction this small where gains do not depend on the
        position.
    rounds : int
        Number of simulations.

    Examples
    --------
    >>> import firstpage as fp
    >>> better, worse = [[2, 0], [1, 0], [2, 1], [1, 1]], [[0, 2], [0, 1], [1, 2], [0, 1]]
    >>> learner = fp.dcglearn.DCGLearn(K=2, C=1.0).fit(better, worse)
    >>> test = fp.dcglearn.position_test(learner, rounds=9)
    >>> test.rounds, 0.0 < test.rank_one_fraction <= 1.0
    (9, True)
    """

    rank_one_fraction: float
    expected: float
    p: float
    rounds: int

    def to_dict(self) -> dict[str, Any]:
        """Return the result as measure files store it."""
        return dict(vars(self))


def position_test(
    learner: DCGLearn, rounds: int = 99, seed: int = 0, progress: Progress | None = None
) -> PositionTest:
    """Test whether gains depend on the position, by a parametric bootstrap.

    Parameters
    ----------
    learner : DCGLearn
        A fitted learner with its pairs in memory.
    rounds : int, default 99
        Number of simulations.
    seed : int, default 0
        Seed of the simulations.
    progress : callable, optional
        Called with (done, total) after each simulation.

    Returns
    -------
    PositionTest
        The rank-one fraction, its expectation under the null hypothesis, and the p-value.

    References
    ----------
    .. [1] Zhou et al. 2013 (see `DCGLearn`), footnote 4.

    Examples
    --------
    >>> import firstpage as fp
    >>> better = [[2, 0], [1, 0], [2, 1], [1, 1], [2, 0]]
    >>> worse = [[0, 2], [0, 1], [1, 2], [0, 1], [1, 1]]
    >>> learner = fp.dcglearn.DCGLearn(K=2, C=1.0).fit(better, worse)
    >>> test = fp.dcglearn.position_test(learner, rounds=9)
    >>> 0.0 < test.p <= 1.0
    True
    """
    pairs, spec = learner.pairs_, learner.spec_
    null_table = np.outer(learner.discounts_, learner.gains_)
    null_differences = differences(pairs, null_table)
    noise = _estimate_noise(learner)
    rng = np.random.default_rng(seed)
    fractions = np.empty(rounds)
    for number in range(rounds):
        simulated = noise.simulate(pairs, null_differences, rng)
        table = spec.table(simulated, learner.C_)
        fractions[number] = rank_one_factors(table).rank_one_fraction
        if progress is not None:
            progress(number + 1, rounds)
    below = int((fractions <= learner.rank_one_fraction_).sum())
    p = (1 + below) / (1 + rounds)
    return PositionTest(learner.rank_one_fraction_, float(fractions.mean()), p, rounds)


@dataclass(frozen=True)
class JudgmentNoise:
    """Errors of judgments: logistic noise in the perceived difference, and lapses.

    `scale` is in units of the measure; a lapse is an answer at random.
    """

    scale: float = 0.0
    lapse_rate: float = 0.0

    def simulate(self, pairs: Pairs, true_differences: Floats, rng: np.random.Generator) -> Pairs:
        """Return the pairs with preferences simulated from the true differences."""
        n = len(true_differences)
        perceived = true_differences + (self.scale * rng.logistic(size=n) if self.scale else 0.0)
        lapse = rng.random(n) < self.lapse_rate
        reverse = np.where(lapse, rng.random(n) < 0.5, perceived < 0) & (pairs.kind > 0)
        left = np.where(reverse[:, None], pairs.right, pairs.left)
        right = np.where(reverse[:, None], pairs.left, pairs.right)
        return Pairs(left, right, pairs.kind, pairs.weight, pairs.levels, pairs.rows)


def _estimate_noise(learner: DCGLearn) -> JudgmentNoise:
    """Return the noise of maximum likelihood, in units of the measure.

    Differences are those of gains and discounts learned without the pair itself: a measure that
    has seen the pairs would underestimate the noise.
    """
    pairs, spec = learner.pairs_, learner.spec_
    z, strict = np.zeros(len(pairs)), pairs.kind > 0
    groups = learner.groups_
    if len(np.unique(groups)) < 2:
        return JudgmentNoise()
    for train, test in folds(groups, learner.folds, learner.seed):
        table = spec.table(pairs[train], learner.C_, learner.optimum_, "gains")
        z[test] = differences(pairs[test], table)
    z, weight = z[strict], pairs.weight[strict]
    unit = float(np.abs(z).mean())
    if not unit or (z > 0).all():
        return JudgmentNoise()

    def negative_log_likelihood(point: Floats) -> float:
        lapse_rate = scipy.special.expit(point[1])
        scale = unit * np.exp(np.clip(point[0], -9, 9))
        probability = (1 - lapse_rate) * scipy.special.expit(z / scale) + lapse_rate / 2
        return -float(weight @ np.log(np.maximum(probability, 1e-300)))

    best = scipy.optimize.minimize(
        negative_log_likelihood, np.array([-1.0, -3.0]), method="Nelder-Mead"
    ).x
    return JudgmentNoise(
        unit * float(np.exp(np.clip(best[0], -9, 9))), float(scipy.special.expit(best[1]))
    )


ROUNDS = 200


@dataclass(frozen=True, eq=False)
class Intervals:
    """Confidence intervals of a learned measure; the last axis is (lower, upper).

    Attributes
    ----------
    gains : ndarray of shape (L, 2)
        Interval of each gain.
    discounts : ndarray of shape (K, 2)
        Interval of each discount.
    weights : ndarray of shape (K, L, 2)
        Interval of each weight, in units of the largest weight.
    rank_one_fraction : ndarray of shape (2,)
        Interval of the rank-one fraction.
    rounds : int
        Number of resamples.
    level : float
        Confidence level.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> bounds = np.array([[0.0, 0.0], [0.2, 0.6], [1.0, 1.0]])
    >>> weights = np.zeros((2, 3, 2))
    >>> fp.dcglearn.Intervals(bounds, bounds[1:], weights, np.array([0.9, 1.0]), 200, 0.95)
    Intervals(95%, 200 rounds: 3 gains, 2 discounts)
    """

    gains: Floats
    discounts: Floats
    weights: Floats
    rank_one_fraction: Floats
    rounds: int
    level: float

    def __repr__(self) -> str:
        return (
            f"Intervals({100 * self.level:g}%, {self.rounds} rounds: {len(self.gains)} gains, "
            f"{len(self.discounts)} discounts)"
        )

    @classmethod
    def from_utility(cls, utility: Utility) -> Intervals | None:
        """Return the intervals stored in a measure file.

        Parameters
        ----------
        utility : Utility
            A measure.

        Returns
        -------
        Intervals or None
            None where the measure has none.
        """
        stored = utility.about.get("intervals")
        if stored is None:
            return None
        gains, discounts, weights, fraction = (
            np.array(stored[name], np.float64)
            for name in ("gains", "discounts", "weights", "rank_one_fraction")
        )
        gains = without_fixed_gains(gains, utility.gains)
        return cls(gains, discounts, weights, fraction, stored["rounds"], stored["level"])

    def to_dict(self) -> dict[str, Any]:
        """Return the intervals as measure files store them.

        Returns
        -------
        dict
            Lists by name.
        """
        return {
            "gains": self.gains.tolist(), "discounts": self.discounts.tolist(),
            "weights": self.weights.tolist(),
            "rank_one_fraction": self.rank_one_fraction.tolist(), "rounds": self.rounds,
            "level": self.level,
        }  # fmt: skip


def resampled_tables(learner: DCGLearn, rounds: int, seed: int) -> Iterator[Floats]:
    """Yield weights learned from queries drawn with replacement, with the C of the fit."""
    _, group = np.unique(learner.groups_, return_inverse=True)
    count, spec = int(group.max()) + 1, learner.spec_
    rng = np.random.default_rng(seed)
    while rounds:
        multiplicity = np.bincount(rng.integers(0, count, count), minlength=count)[group]
        rows = np.flatnonzero(multiplicity)
        pairs = learner.pairs_[rows]
        if pairs.ties == len(pairs):
            continue  # nothing can be learned from ties alone
        pairs = pairs.with_weight(pairs.weight * multiplicity[rows])
        yield spec.table(pairs, learner.C_, learner.optimum_)
        rounds -= 1


def intervals(
    learner: DCGLearn,
    rounds: int = ROUNDS,
    level: float = CONFIDENCE_LEVEL,
    seed: int = 0,
    progress: Progress | None = None,
) -> Intervals:
    """Return percentile intervals of gains, discounts and weights over resampled queries.

    Weights are in units of the largest one, because their size depends on C.  Discounts are
    relative to the first position, so that resamples in which it has weight 0 are left out.

    Parameters
    ----------
    learner : DCGLearn
        A fitted learner with its pairs in memory.
    rounds : int, default 200
        Number of resamples, of queries where they are named and of pairs otherwise.
    level : float, default 0.95
        Confidence level.
    seed : int, default 0
        Seed of the resampling.
    progress : callable, optional
        Called with (done, total) after each resample.

    Returns
    -------
    Intervals
        Lower and upper bounds.

    Raises
    ------
    DataError
        If all pairs are of one query, `rounds` is below 2, or `level` is not between 0 and 1.

    Examples
    --------
    >>> import firstpage as fp
    >>> better = [[2, 0], [1, 0], [2, 1], [1, 1], [2, 0]]
    >>> worse = [[0, 2], [0, 1], [1, 2], [0, 1], [1, 1]]
    >>> learner = fp.dcglearn.DCGLearn(K=2, C=1.0).fit(better, worse)
    >>> fp.dcglearn.intervals(learner, rounds=20)
    Intervals(95%, 20 rounds: 3 gains, 2 discounts)
    """
    if len(np.unique(learner.groups_)) < 2:
        raise DataError("all pairs are of one query: there is nothing to resample.")
    if rounds < 2 or not 0 < level < 1:
        raise DataError(
            f"intervals need at least 2 rounds and a level between 0 and 1; got {rounds}, {level}."
        )
    gains, discounts, weights, fractions = [], [], [], []
    for done, table in enumerate(resampled_tables(learner, rounds, seed), 1):
        nearest = rank_one_factors(table)
        gains.append(nearest.gains)
        if nearest.discounts[0]:
            discounts.append(nearest.discounts)
        weights.append(table / (float(table.max()) or 1.0))
        fractions.append(nearest.rank_one_fraction)
        if progress is not None:
            progress(done, rounds)

    def bounds(values: list[Any]) -> Floats:
        return np.moveaxis(percentile_interval(np.array(values), level), 0, -1)

    if 2 * len(discounts) < rounds:
        discounts = [np.zeros(len(table))]  # undefined: the first position has weight 0
    return Intervals(
        without_fixed_gains(bounds(gains), learner.gains_),
        bounds(discounts),
        bounds(weights),
        bounds(fractions),
        rounds,
        level,
    )


def without_fixed_gains(bounds: Floats, gains: Floats) -> Floats:
    """Return the intervals of gains with those of the worst and the best grade reduced to a point.

    These gains are 0 and 1 by normalization; resamples that distinguish no grades have 0 for all.
    """
    fixed = bounds.copy()
    fixed[[0, -1]] = gains[[0, -1], None]
    return fixed
