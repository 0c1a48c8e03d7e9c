"""How sure a learned measure is of itself: intervals by resampling the pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.factor import factors
from firstpage.dcglearn.learn import DCGLearn
from firstpage.errors import DataError
from firstpage.measures.significance import percentile_interval
from firstpage.types import Floats, Progress

ROUNDS, LEVEL = 200, 0.95


@dataclass(frozen=True, eq=False)
class Intervals:
    """Lower and upper ends (the last axis) for every gain, discount and weight, and for the share
    of rank one."""

    gains: Floats
    discounts: Floats
    weights: Floats
    share: Floats
    rounds: int
    level: float

    def __repr__(self) -> str:
        return (
            f"Intervals({self.level:.0%}, {self.rounds} rounds: {len(self.gains)} gains, "
            f"{len(self.discounts)} discounts)"
        )

    @classmethod
    def held(cls, utility: Utility) -> Intervals | None:
        """Those that a measure file keeps, if any."""
        kept = utility.about.get("intervals")
        if kept is None:
            return None
        gains, discounts, weights, share = (
            np.array(kept[name], np.float64) for name in ("gains", "discounts", "weights", "share")
        )
        gains = without_fixed(gains, utility.gains)
        return cls(gains, discounts, weights, share, kept["rounds"], kept["level"])

    def to_dict(self) -> dict[str, Any]:
        """What a measure file keeps."""
        return {
            "gains": self.gains.tolist(), "discounts": self.discounts.tolist(),
            "weights": self.weights.tolist(), "share": self.share.tolist(),
            "rounds": self.rounds, "level": self.level,
        }  # fmt: skip


def resampled(learner: DCGLearn, rounds: int, seed: int) -> Iterator[Floats]:
    """Tables of weights, each learned from queries drawn anew, with the C that was chosen."""
    _, number = np.unique(learner.groups_, return_inverse=True)
    count, recipe = int(number.max()) + 1, learner.recipe_
    rng = np.random.default_rng(seed)
    while rounds:
        drawn = np.bincount(rng.integers(0, count, count), minlength=count)[number]
        kept = np.flatnonzero(drawn)
        pairs = learner.pairs_[kept]
        if pairs.ties == len(pairs):
            continue  # a draw of ties alone teaches nothing
        pairs = pairs.weighed(pairs.weight * drawn[kept])
        yield recipe.table(pairs, learner.C_, learner.optimum_)
        rounds -= 1


def intervals(
    learner: DCGLearn, rounds: int = ROUNDS, level: float = LEVEL, seed: int = 0,
    progress: Progress | None = None,
) -> Intervals:  # fmt: skip
    """Percentiles over resampled pairs (whole queries, where queries are named).

    Weights are told in units of the greatest one: their size depends on C.  Discounts are told by
    the first place, so that draws in which it is worth nothing tell nothing of them.
    """
    if len(np.unique(learner.groups_)) < 2:
        raise DataError("all pairs are of one query: there is nothing to resample.")
    if rounds < 2 or not 0 < level < 1:
        raise DataError(
            f"intervals need 2 rounds or more and a level between 0 and 1; got {rounds}, {level}."
        )
    gains, discounts, weights, shares = [], [], [], []
    for done, table in enumerate(resampled(learner, rounds, seed), 1):
        found = factors(table)
        gains.append(found.gains)
        if found.discounts[0]:
            discounts.append(found.discounts)
        weights.append(table / (float(table.max()) or 1.0))
        shares.append(found.share)
        if progress is not None:
            progress(done, rounds)

    def ends(values: list[Any]) -> Floats:
        return np.moveaxis(percentile_interval(np.array(values), level), 0, -1)

    if 2 * len(discounts) < rounds:
        discounts = [np.zeros(len(table))]  # nobody can tell: the first place is worth nothing
    sure = without_fixed(ends(gains), learner.gains_)
    return Intervals(sure, ends(discounts), ends(weights), ends(shares), rounds, level)


def without_fixed(ends: Floats, gains: Floats) -> Floats:
    """Return the intervals of gains, none for the worst and the best grade.

    These are 0 and 1 by normalization; draws that distinguish no grades have 0 for all.
    """
    found = ends.copy()
    found[[0, -1]] = gains[[0, -1], None]
    return found
