"""Simulations of Zhou et al. (2013), section 5.2: how well DCGLearn recovers a known measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.core import Array, DataError, Floats, Progress
from firstpage.data.preferences import Preferences, Utility
from firstpage.evaluation.dcglearn.learn import DCGLearn
from firstpage.evaluation.dcglearn.pairs import encode
from firstpage.evaluation.dcglearn.validation import preference_agreement
from firstpage.evaluation.dcglearn.weights import similarity

LIST = (5, 5, 4, 4, 3, 3, 2, 2, 1, 1)
OTHER_LIST = (5, 5, 5, 4, 4, 4, 3, 3, 2, 1)  # for optimal rankings of other grades
GRADES = (1, 2, 3, 4, 5)
PairSampler = Callable[[int], tuple[Array, Array]]  # from a count to as many pairs of rankings
DIFFERENCE_TOLERANCE = 1e-9  # below it two rankings have the same true value


@dataclass(frozen=True, eq=False)
class PreferenceSimulator:
    """Preferences of a known measure between orders of one list of grades."""

    truth: Utility
    grades: tuple[int, ...] = LIST

    @property
    def positions(self) -> int:
        return len(self.grades)

    def rankings(self, count: int, rng: np.random.Generator) -> Array:
        """Return random orders of the grades, one per row."""
        rows = np.tile(np.array(self.grades, np.int8), (count, 1))
        return rng.permuted(rows, axis=1)

    def values(self, rankings: Array) -> Floats:
        """Return the true value of each ranking."""
        level = np.searchsorted(self.truth.grades, rankings)
        totals: Floats = self.truth.weights[np.arange(rankings.shape[1]), level].sum(axis=1)
        return totals

    def prefer(self, left: Array, right: Array) -> Preferences:
        """Return the preferences of the true measure; pairs of equal value are left out."""
        difference = self.values(left) - self.values(right)
        distinct = np.abs(difference) > DIFFERENCE_TOLERANCE
        outcome = np.sign(difference[distinct])
        return Preferences.from_grades(
            left[distinct], right[distinct], outcome, grades=self.truth.grades
        )

    def pairs(self, count: int, rng: np.random.Generator) -> Preferences:
        """Return preferences between random orders."""
        return self._sample(count, lambda n: (self.rankings(n, rng), self.rankings(n, rng)))

    def optimal_pairs(
        self, count: int, rng: np.random.Generator, grades: Sequence[int] | None = None
    ) -> Preferences:
        """Return preferences between the best order and random orders of the same grades.

        With `grades`, the random orders are of these grades instead.
        """
        best = np.sort(np.array(self.grades, np.int8))[::-1]
        other = PreferenceSimulator(self.truth, tuple(self.grades if grades is None else grades))
        return self._sample(count, lambda n: (np.tile(best, (n, 1)), other.rankings(n, rng)))

    def _sample(self, count: int, draw: PairSampler) -> Preferences:
        """Draw pairs until there are enough of different value."""
        preferences = self.prefer(*draw(max(count, 8)))
        while len(preferences) < count:
            preferences = preferences + self.prefer(*draw(max(count, 8)))
        return preferences[:count]


def zhou_simulator(data: int) -> PreferenceSimulator:
    """Return the simulator of Data 1 (gain: the grade) or Data 2 (gain: 2^grade - 1).

    The discounts of both are 1 / log2(1 + position).
    """
    if data not in (1, 2):
        raise DataError(f"data must be 1 or 2 (Data 1 and Data 2 of the paper); got {data}.")
    return PreferenceSimulator(Utility.from_dcg(("linear", "exp")[data - 1], GRADES, len(LIST)))


def reverse_pairs(
    preferences: Preferences, fraction: float, rng: np.random.Generator
) -> Preferences:
    """Return the preferences with a random fraction of the outcomes reversed."""
    chosen = rng.permutation(len(preferences))[: round(fraction * len(preferences))]
    outcome = preferences.outcome.copy()
    outcome[chosen] *= -1
    return replace(preferences, outcome=outcome)


def randomize_grades(
    preferences: Preferences, fraction: float, rng: np.random.Generator
) -> Preferences:
    """Return the preferences with random grades for a random fraction of the documents.

    A random grade may equal the true one.
    """
    sides = []
    for side in (preferences.left, preferences.right):
        noisy = rng.random(side.shape) < fraction
        sides.append(np.where(noisy, rng.integers(0, len(preferences.grades), side.shape), side))
    return replace(preferences, left=sides[0].astype(np.int8), right=sides[1].astype(np.int8))


TEST_PAIRS, VALID_PAIRS = 4000, 800


@dataclass(frozen=True, eq=False)
class MeasureRecovery:
    """Results of a simulation.

    Attributes
    ----------
    data, pairs : int
        Data 1 or 2, and the number of training pairs.
    noise : float
        Fraction of reversed training and validation pairs.
    accuracies : ndarray
        Accuracy on noise-free test pairs, per run.
    similarities : ndarray
        Cosine of the learned and the true weights, per run.
    others : ndarray
        Accuracy of the wrong measure (that of Data 2 on Data 1, and the reverse), per run.
    costs : ndarray
        The C that was chosen, per run.
    """

    data: int
    pairs: int
    noise: float
    accuracies: Floats
    similarities: Floats
    others: Floats
    costs: Floats

    def to_dict(self) -> dict[str, Any]:
        """Return the means and their standard errors over runs, for JSON."""
        summary: dict[str, Any] = {
            "data": self.data, "pairs": self.pairs, "noise": self.noise,
            "runs": len(self.accuracies), "C": self.costs.tolist(),
        }  # fmt: skip
        named = (
            ("accuracy", self.accuracies),
            ("similarity", self.similarities),
            ("other_accuracy", self.others),
        )
        for name, values in named:
            summary[name] = float(values.mean())
            if len(values) > 1:
                summary[f"{name}_se"] = float(values.std(ddof=1) / np.sqrt(len(values)))
        return summary


def simulate(
    data: int,
    pairs: int = 800,
    noise: float = 0.0,
    runs: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> MeasureRecovery:
    """Learn from pairs of Data 1 or 2, a fraction of them reversed.

    C is chosen by validation pairs with the same noise.
    """
    if not 0 <= noise <= 1:
        raise DataError(f"noise is a fraction of the pairs, from 0 to 1; got {noise:g}.")
    if pairs < 1 or runs < 1:
        raise DataError(f"pairs and runs must be at least 1; got {pairs} and {runs}.")
    simulator, other = zhou_simulator(data), zhou_simulator(3 - data)
    rows = []
    for run in range(runs):
        rng = np.random.default_rng([seed, data, run])
        train = reverse_pairs(simulator.pairs(pairs, rng), noise, rng)
        valid = reverse_pairs(simulator.pairs(VALID_PAIRS, rng), noise, rng)
        learner = fit_learner(simulator.truth, train, valid)
        test = simulator.pairs(TEST_PAIRS, rng)
        rows.append(
            (
                learner.score(test),
                similarity(simulator.truth.weights, learner.weights_),
                utility_accuracy(other.truth, test),
                learner.C_,
            )
        )
        if progress is not None:
            progress(run + 1, runs)
    return MeasureRecovery(data, pairs, noise, *np.array(rows).T)


def fit_learner(
    truth: Utility, train: Preferences, valid: Preferences | None, threads: int | None = None
) -> DCGLearn:
    """Fit DCGLearn with the positions and grades of the truth, and C by validation pairs; without
    these, C by cross-validation."""
    learner = DCGLearn(truth.n_positions, grades=truth.grades, threads=threads)
    return learner.fit(train, valid=valid)


def utility_accuracy(utility: Utility, preferences: Preferences) -> float:
    """Return the fraction of preferences that a known measure agrees with."""
    pairs = encode(
        preferences.with_grades(utility.grades), utility.n_positions, len(utility.grades)
    )
    return preference_agreement(pairs, utility.weights).accuracy
