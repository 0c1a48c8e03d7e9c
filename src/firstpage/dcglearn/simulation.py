"""Simulations of Zhou et al. (2013), section 5.2: what DCGLearn learns of a known measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.pairs import encode
from firstpage.dcglearn.validation import agreement
from firstpage.dcglearn.weights import similarity
from firstpage.errors import DataError
from firstpage.types import Array, Floats, Progress

LIST = (5, 5, 4, 4, 3, 3, 2, 2, 1, 1)
OTHER_LIST = (5, 5, 5, 4, 4, 4, 3, 3, 2, 1)  # for optimal rankings of other grades
GRADES = (1, 2, 3, 4, 5)
Draw = Callable[[int], tuple[Array, Array]]  # so many pairs of rankings
NOTHING = 1e-9  # a difference in the true worth that is none


@dataclass(frozen=True, eq=False)
class World:
    """A true measure, and the grades whose orders are compared."""

    truth: Utility
    grades: tuple[int, ...] = LIST

    @property
    def places(self) -> int:
        return len(self.grades)

    def rankings(self, count: int, rng: np.random.Generator) -> Array:
        """Random orders of the grades, one a row."""
        rows = np.tile(np.array(self.grades, np.int8), (count, 1))
        return rng.permuted(rows, axis=1)

    def worth(self, rankings: Array) -> Floats:
        """The true worth of rankings."""
        level = np.searchsorted(self.truth.grades, rankings)
        found: Floats = self.truth.weights[np.arange(rankings.shape[1]), level].sum(axis=1)
        return found

    def prefer(self, left: Array, right: Array) -> Preferences:
        """What the true measure says of pairs; those it finds equal are left out."""
        apart = self.worth(left) - self.worth(right)
        clear = np.abs(apart) > NOTHING
        outcome = np.sign(apart[clear])
        return Preferences.from_grades(left[clear], right[clear], outcome, grades=self.truth.grades)

    def pairs(self, count: int, rng: np.random.Generator) -> Preferences:
        """So many pairs of random orders."""
        return self._filled(count, lambda n: (self.rankings(n, rng), self.rankings(n, rng)))

    def optimal_pairs(
        self, count: int, rng: np.random.Generator, grades: Sequence[int] | None = None
    ) -> Preferences:
        """One side always the best order of the grades; the other a random order of them, or of
        other grades."""
        best = np.sort(np.array(self.grades, np.int8))[::-1]
        other = World(self.truth, tuple(self.grades if grades is None else grades))
        return self._filled(count, lambda n: (np.tile(best, (n, 1)), other.rankings(n, rng)))

    def _filled(self, count: int, draw: Draw) -> Preferences:
        """Draws until there are enough that are not equal."""
        found = self.prefer(*draw(max(count, 8)))
        while len(found) < count:
            found = found + self.prefer(*draw(max(count, 8)))
        return found[:count]


def world(data: int) -> World:
    """Data 1 (the gain is the grade) or Data 2 (2^grade - 1), discounts 1 / log(1 + place)."""
    if data not in (1, 2):
        raise DataError(f"there are Data 1 and Data 2; got {data}.")
    return World(Utility.from_dcg(("linear", "exp")[data - 1], GRADES, len(LIST)))


def reversed_pairs(given: Preferences, share: float, rng: np.random.Generator) -> Preferences:
    """A share of the preferences turned round, as people err."""
    turned = rng.permutation(len(given))[: round(share * len(given))]
    outcome = given.outcome.copy()
    outcome[turned] *= -1
    return replace(given, outcome=outcome)


def regraded(given: Preferences, share: float, rng: np.random.Generator) -> Preferences:
    """A share of the documents with a random grade (perhaps their own), as assessors err."""
    sides = []
    for side in (given.left, given.right):
        noisy = rng.random(side.shape) < share
        sides.append(np.where(noisy, rng.integers(0, len(given.grades), side.shape), side))
    return replace(given, left=sides[0].astype(np.int8), right=sides[1].astype(np.int8))


TEST, VALID = 4000, 800  # pairs


@dataclass(frozen=True, eq=False)
class Simulation:
    """Accuracy on clean test pairs and similarity to the true weights, one a run.

    other: the accuracy of the wrong measure (Data 2's on Data 1, and the reverse)
    """

    data: int
    pairs: int
    noise: float
    accuracies: Floats
    similarities: Floats
    others: Floats
    costs: Floats

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints; standard errors are over runs."""
        found: dict[str, Any] = {
            "data": self.data, "pairs": self.pairs, "noise": self.noise,
            "runs": len(self.accuracies), "C": self.costs.tolist(),
        }  # fmt: skip
        named = (("accuracy", self.accuracies), ("similarity", self.similarities),
                 ("other", self.others))  # fmt: skip
        for name, values in named:
            found[name] = float(values.mean())
            if len(values) > 1:
                found[f"{name}_se"] = float(values.std(ddof=1) / np.sqrt(len(values)))
        return found


def simulate(
    data: int, pairs: int = 800, noise: float = 0.0, runs: int = 5, seed: int = 0,
    progress: Progress | None = None,
) -> Simulation:  # fmt: skip
    """Learn from pairs of Data 1 or 2, a share of them reversed; C by validation pairs as noisy."""
    if not 0 <= noise <= 1:
        raise DataError(f"noise is a share of the pairs, from 0 to 1; got {noise:g}.")
    if pairs < 1 or runs < 1:
        raise DataError(f"pairs and runs must be 1 or more; got {pairs} and {runs}.")
    right, wrong = world(data), world(3 - data)
    rows = []
    for run in range(runs):
        rng = np.random.default_rng([seed, data, run])
        train = reversed_pairs(right.pairs(pairs, rng), noise, rng)
        valid = reversed_pairs(right.pairs(VALID, rng), noise, rng)
        learner = learn(right.truth, train, valid)
        test = right.pairs(TEST, rng)
        rows.append(
            (
                learner.score(test), similarity(right.truth.weights, learner.weights_),
                accuracy_of(wrong.truth, test), learner.C_,
            )
        )  # fmt: skip
        if progress is not None:
            progress(run + 1, runs)
    return Simulation(data, pairs, noise, *np.array(rows).T)


def learn(
    truth: Utility, train: Preferences, valid: Preferences, threads: int | None = None
) -> DCGLearn:
    """DCGLearn with as many places and grades as the truth has, and C by validation."""
    learner = DCGLearn(truth.n_positions, grades=truth.grades, threads=threads)
    return learner.fit(train, valid=valid)


def accuracy_of(measure: Utility, given: Preferences) -> float:
    """How often a known measure agrees with preferences."""
    pairs = encode(given.with_grades(measure.grades), measure.n_positions, len(measure.grades))
    return agreement(pairs, measure.weights).accuracy
