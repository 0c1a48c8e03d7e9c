"""What DCGLearn finds of a true measure, from so many pairs, so noisy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.data.preferences import Preferences
from firstpage.data.utility import Utility
from firstpage.dcglearn.factor import similarity
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.pairs import encode
from firstpage.dcglearn.validation import agreement
from firstpage.dcglearn.worlds import reversed_pairs, world
from firstpage.errors import DataError
from firstpage.types import Floats

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
    tick: Callable[[int, int], None] | None = None,
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
        if tick is not None:
            tick(run + 1, runs)
    return Simulation(data, pairs, noise, *np.array(rows).T)


def learn(
    truth: Utility, train: Preferences, valid: Preferences, threads: int | None = None
) -> DCGLearn:
    """DCGLearn with as many places and grades as the truth has, and C by validation."""
    learner = DCGLearn(truth.places, grades=truth.grades, threads=threads)
    return learner.fit(train, valid=valid)


def accuracy_of(measure: Utility, given: Preferences) -> float:
    """How often a known measure agrees with preferences."""
    pairs = encode(given.regraded(measure.grades), measure.places, len(measure.grades))
    return agreement(pairs, measure.weights).accuracy
