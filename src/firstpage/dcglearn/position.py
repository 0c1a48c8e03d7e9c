"""Do gains depend on the place?  A test of rank one (footnote 4 of Zhou et al. 2013).

The weights that best fit are never of rank one to the last digit, so their distance from it means
something only beside that of weights which were: measures of rank one, near the learned one, judge
the same pairs with as much noise as the people had, and what is learned from them is compared.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

from firstpage.dcglearn.factor import factors
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.pairs import Pairs
from firstpage.dcglearn.validation import differences, folds
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
