"""How sure a learned measure is of itself: intervals by resampling, and a test of rank one.

Do gains depend on the place (footnote 4 of Zhou et al. 2013)?  The weights that best fit are never
of rank one to the last digit, so their distance from it means something only beside that of
weights which were: measures of rank one, near the learned one, judge the same pairs with as much
noise as the people had, and what is learned from them is compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.pairs import Pairs
from firstpage.dcglearn.validation import differences, folds
from firstpage.dcglearn.weights import factors
from firstpage.errors import DataError
from firstpage.measures.significance import CONFIDENCE_LEVEL, percentile_interval
from firstpage.types import Floats, Progress


@dataclass(frozen=True)
class PositionTest:
    """share     of rank one in the learned weights
    expected  its mean, where gains do not depend on the place
    p         how often it is then as small as this, or smaller
    rounds    simulations"""

    share: float
    expected: float
    p: float
    rounds: int


def position_test(
    learner: DCGLearn, rounds: int = 99, seed: int = 0, progress: Progress | None = None
) -> PositionTest:
    """Parametric bootstrap: the share of rank one against what chance gives."""
    pairs, recipe = learner.pairs_, learner.recipe_
    null = np.outer(learner.discounts_, learner.gains_)
    worth = differences(pairs, null)
    noise = _noise(learner)
    rng = np.random.default_rng(seed)
    shares = np.empty(rounds)
    for at in range(rounds):
        told = noise.judge(pairs, worth, rng)
        shares[at] = factors(recipe.table(told, learner.C_)).share
        if progress is not None:
            progress(at + 1, rounds)
    below = int((shares <= learner.share_).sum())
    return PositionTest(learner.share_, float(shares.mean()), (1 + below) / (1 + rounds), rounds)


@dataclass(frozen=True)
class Noise:
    """How people err: by logistic noise in what they see, and by not looking at all."""

    spread: float = 0.0
    lapses: float = 0.0

    def judge(self, pairs: Pairs, worth: Floats, rng: np.random.Generator) -> Pairs:
        """The same pairs, as such people would prefer them who see these differences."""
        seen = worth + (self.spread * rng.logistic(size=len(worth)) if self.spread else 0.0)
        coin = rng.random(len(worth)) < self.lapses
        back = np.where(coin, rng.random(len(worth)) < 0.5, seen < 0) & (pairs.kind > 0)
        left = np.where(back[:, None], pairs.right, pairs.left)
        right = np.where(back[:, None], pairs.left, pairs.right)
        return Pairs(left, right, pairs.kind, pairs.weight, pairs.levels, pairs.rows)


def _noise(learner: DCGLearn) -> Noise:
    """The noise, in units of the measure's differences, that explains the pairs best.

    Differences are those of gains and discounts learned without the pair itself; else a measure
    that knows its pairs by heart would take people for sure of themselves.
    """
    pairs, recipe = learner.pairs_, learner.recipe_
    z, strict = np.zeros(len(pairs)), pairs.kind > 0
    groups = learner.groups_
    if len(np.unique(groups)) < 2:
        return Noise()
    for train, held in folds(groups, learner.folds, learner.seed):
        table = recipe.table(pairs[train], learner.C_, learner.optimum_, "gains")
        z[held] = differences(pairs[held], table)
    z, weight = z[strict], pairs.weight[strict]
    scale = float(np.abs(z).mean())
    if not scale or (z > 0).all():
        return Noise()

    def misfit(point: Floats) -> float:
        lapses = expit(point[1])
        chance = (1 - lapses) * expit(z / (scale * np.exp(np.clip(point[0], -9, 9)))) + lapses / 2
        return -float(weight @ np.log(np.maximum(chance, 1e-300)))

    best = minimize(misfit, np.array([-1.0, -3.0]), method="Nelder-Mead").x
    return Noise(scale * float(np.exp(np.clip(best[0], -9, 9))), float(expit(best[1])))


ROUNDS = 200


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
    learner: DCGLearn, rounds: int = ROUNDS, level: float = CONFIDENCE_LEVEL, seed: int = 0,
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
