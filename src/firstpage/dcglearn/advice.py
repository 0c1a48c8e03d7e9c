"""Whether more judgments pay: the learning curve so far, and where it leads."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import nnls

from firstpage.data.utility import Form
from firstpage.dcglearn.factor import factors
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.validation import agreement, folds
from firstpage.types import Floats, Ints

PARTS = (0.2, 0.35, 0.5, 0.7, 1.0)  # of the pairs to learn from
POWERS = np.arange(0.3, 1.51, 0.1)  # errors fall like pairs to the power of minus one of these
FEWEST = 20  # pairs below which nobody can tell
LEAST_GAIN = 1e-4  # accuracy a judgment: below it most people would stop


@dataclass(frozen=True)
class Advice:
    """pairs     so far
    ceiling   where more of such pairs lead in the end (people err, and grades do)
    miss, power   after n pairs the accuracy is about ceiling - miss * n^-power
    curve     (pairs, accuracy) on pairs held out, which all of this is read from

    NaN where there are too few pairs to tell.
    """

    pairs: int
    ceiling: float
    miss: float
    power: float
    curve: tuple[tuple[int, float], ...]

    def accuracy(self, more: int = 0) -> float:
        """What to expect after so many more pairs."""
        return self.ceiling - self.miss * math.pow(self.pairs + more, -self.power)

    @property
    def gain(self) -> float:
        """Accuracy that the next judgment is expected to bring."""
        return self.power * self.miss * math.pow(self.pairs, -self.power - 1)

    @property
    def known(self) -> bool:
        return bool(np.isfinite(self.ceiling))

    @property
    def stop(self) -> bool:
        return self.known and self.gain < LEAST_GAIN

    def needed(self, accuracy: float) -> int | None:
        """Pairs in all for this accuracy; None where it is out of reach or cannot be told."""
        if not self.known or accuracy >= self.ceiling:
            return None
        return int(np.ceil((self.miss / (self.ceiling - accuracy)) ** (1 / self.power)))

    def __str__(self) -> str:
        if not self.known:
            return f"too few pairs ({self.pairs}) or queries to tell whether more would pay; go on."
        bring = self.accuracy(100) - self.accuracy()
        what = "more hardly pay" if self.stop else "go on"
        return (
            f"expected accuracy {self.accuracy():.3f} with {self.pairs} pairs, "
            f"{self.ceiling:.3f} with ever more; the next 100 bring about {bring:+.3f}: {what}."
        )

    def to_dict(self) -> dict[str, Any]:
        """What a program reads; null for what cannot be told."""
        told = {
            "accuracy": self.accuracy(), "ceiling": self.ceiling, "gain": self.gain,
            "gain_of_100": self.accuracy(100) - self.accuracy(),
        }  # fmt: skip
        return {
            "pairs": self.pairs, "stop": self.stop, "text": str(self),
            "curve": [list(point) for point in self.curve],
            **{name: value if self.known else None for name, value in told.items()},
        }  # fmt: skip


def advice(learner: DCGLearn, repeats: int = 3, form: Form = "gains") -> Advice:
    """From measures learned on parts of the pairs and judged on others, in the form used."""
    count = len(learner.pairs_)
    groups = learner.groups_
    if count < FEWEST or len(np.unique(groups)) < 5:
        return Advice(count, np.nan, np.nan, np.nan, ())
    points = []
    for repeat in range(repeats):
        rng = np.random.default_rng([learner.seed, repeat])
        for train, held in folds(groups, learner.folds, learner.seed + repeat):
            points += _learned(learner, rng.permutation(train), held, form)
    if not points:  # preferences of one query only: none is left to judge by
        return Advice(count, np.nan, np.nan, np.nan, ())
    sizes, right = np.array(points).T
    parts = np.unique(sizes)
    means = np.array([right[sizes == size].mean() for size in parts])
    ceiling, miss, power = _fitted(sizes, right)
    curve = tuple((int(m), float(a)) for m, a in zip(parts, means, strict=True))
    return Advice(count, ceiling, miss, power, curve)


def _learned(learner: DCGLearn, train: Ints, held: Ints, form: Form) -> list[tuple[int, float]]:
    found = []
    for part in PARTS:
        rows = train[: max(1, round(part * len(train)))]
        pairs, test = learner.pairs_[rows], learner.pairs_[held]
        if pairs.ties == len(pairs) or test.ties == len(test):
            continue
        table = learner.recipe_.fit(learner.recipe_.sums(pairs), learner.C_).table
        if form == "gains":
            table = factors(table.reshape(learner.places_, -1)).table
        found.append((len(rows), agreement(test, table).accuracy))
    return found


def _fitted(sizes: Floats, right: Floats) -> tuple[float, float, float]:
    """Errors as floor + miss * pairs^-power, both not negative, by least squares."""
    best = (np.inf, 0.0, 0.0, 1.0)
    for power in POWERS:
        curve = sizes**-power * sizes.min() ** power
        columns = np.column_stack([np.ones_like(curve), curve])
        (floor, miss), misfit = nnls(columns, 1.0 - right)
        best = min(best, (float(misfit), float(floor), float(miss), float(power)))
    _, floor, miss, power = best
    return 1.0 - floor, miss * float(sizes.min()) ** power, power
