"""Section 5.5: pairs chosen to be asked, against pairs that come by chance.

Each strategy starts with the same 20 pairs and chooses from the same pool, a few at a time; after
each answer all is learned anew.  C is fixed: 100 without noise, 0.1 for editors.
"""

from __future__ import annotations

import numpy as np

from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.active import Strategy, choose
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.simulation import world
from firstpage.papers.study.study import Row
from firstpage.papers.zhou2013 import news, web
from firstpage.papers.zhou2013.news import Editors

START, POOL, TEST = 20, 2000, 4000
CLEAN, NOISY = 100.0, 0.1  # C


def simulated(
    rng: np.random.Generator, data: int, strategy: Strategy, sizes: list[int], batch: int
) -> list[Row]:
    """Figures 21, 22."""
    right = world(data)
    pool, test = right.pairs(POOL, rng), right.pairs(TEST, rng)
    found = curve(right.truth, pool, test, strategy, sizes, batch, CLEAN)
    return [{"strategy": strategy, "pairs": m, "value": value} for m, value in found.items()]


def real_lists(
    rng: np.random.Generator, name: str, strategy: Strategy, sizes: list[int], batch: int,
    folder: str,
) -> list[Row]:  # fmt: skip
    """Figure 23 (a), (b): queries of four folds to choose from, those of the fifth to test on."""
    train, test = next(web.folds(web.read_lists(folder, name), rng))
    pool, held = train.pairs(POOL, rng), test.pairs(TEST, rng)
    found = curve(world(2).truth, pool, held, strategy, sizes, batch, CLEAN)
    return [
        {"data": name, "strategy": strategy, "pairs": m, "value": value}
        for m, value in found.items()
    ]


def editors(
    rng: np.random.Generator, strategy: Strategy, sizes: list[int], batch: int
) -> list[Row]:
    """Figure 23 (c): four folds of the simulated editors' pairs to choose from."""
    judged = Editors().judged(rng)
    pairs = judged[~judged.tied]
    right = dict.fromkeys(sizes, 0.0)
    for train, test in news.split(len(pairs), rng):
        found = curve(Editors().truth, pairs[train], pairs[test], strategy, sizes, batch, NOISY)
        for m, value in found.items():
            right[m] += value * len(test) / len(pairs)
    return [
        {"data": "simulated news", "strategy": strategy, "pairs": m, "value": value}
        for m, value in right.items()
    ]


def curve(
    truth: Utility, pool: Preferences, test: Preferences, strategy: Strategy, sizes: list[int],
    batch: int, cost: float,
) -> dict[int, float]:  # fmt: skip
    """Accuracy after so many answers."""
    have, left = np.arange(START), np.arange(START, len(pool))
    blank = DCGLearn(truth.places, C=cost, grades=truth.grades, threads=1)
    found: dict[int, float] = {}
    for m in sizes:
        while len(have) < m:
            step = m - len(have) if strategy == "random" else min(batch, m - len(have))
            chosen = _asked(blank, pool, have, left, step, strategy)
            if not chosen:  # what is left has no difference
                break
            have, left = np.append(have, left[chosen]), np.delete(left, chosen)
        found[m] = blank.fit(pool[have]).score(test)
    return found


def _asked(
    blank: DCGLearn, pool: Preferences, have: np.ndarray, left: np.ndarray, count: int,
    strategy: Strategy,
) -> list[int]:  # fmt: skip
    """Which of those left; by chance: the next ones, for the pool has no order."""
    if strategy == "random":
        return list(range(count))
    return choose(blank.fit(pool[have]), pool[left], count, strategy, seed=len(have))
