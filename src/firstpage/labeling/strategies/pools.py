"""Shrinking pools: rounds of random pairs, until all pairs of the remaining documents are asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from firstpage.core import check_number
from firstpage.labeling.strategies.sorting import Comparisons, Memory, Sorting
from firstpage.labeling.strategies.strategy import Compare, TopKTask

EXTRA_PAIRINGS, EXTRA_POOL = 2, 4  # beyond k: 7 pairings and 9 documents for the paper's k of 5


@dataclass(frozen=True)
class Pools(Sorting):
    """Rounds over a shrinking pool, as for the preferences of TREC CAsT 2019.

    In each round, every document of the pool is compared with at least `pairings` random others.
    Those that win half of their comparisons or more remain. All pairs of the last pool are
    compared. Its documents are ordered by wins; documents that left the pool follow, those of later
    rounds first. A tie is half a win for each.

    Parameters
    ----------
    memory : {"pairs", "closure"} or None, default "pairs"
        Which comparisons are not asked again in a later round; see `Heap`.
    pairings : int, optional
        Comparisons per document and round; k + 2 by default, 7 for the paper's k of 5.
    last : int, optional
        Number of documents of which all pairs are compared; k + 4 by default, 9 for k = 5.
    depth : int, optional
        Only so many documents, the best by the prior, are compared, with those of the same score
        as the last one. By default all are.

    Raises
    ------
    DataError
        If a parameter is out of range.

    References
    ----------
    C. L. A. Clarke, A. Vtyurina and M. D. Smucker (2021). Assessing Top-k Preferences. ACM
    Transactions on Information Systems 39(3).

    Examples
    --------
    >>> from firstpage.labeling.simulation.simulate import SimulatedQueries, simulate
    >>> [result] = simulate("pools", k=5, queries=SimulatedQueries(n=9), runs=5)
    >>> result.question_counts.tolist(), float(result.recall.mean())
    ([36.0, 36.0, 36.0, 36.0, 36.0], 1.0)
    """

    memory: Memory = "pairs"
    pairings: int | None = None
    last: int | None = None
    depth: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("pairings", "last", "depth"):
            if getattr(self, name) is not None:
                check_number(self, name, minimum=1, integer=True)

    def _algorithm(self, task: TopKTask) -> Comparisons[list[int]]:
        pairings = self.pairings or task.top + EXTRA_PAIRINGS
        last = max(self.last or task.top + EXTRA_POOL, task.top)
        candidates = task.by_prior()
        if self.depth is not None and task.prior is not None and self.depth < task.n:
            least = task.prior[candidates[self.depth - 1]]
            candidates = [d for d in candidates if task.prior[d] >= least]
        rest = [d for d in task.by_prior() if d not in set(candidates)]
        return shrinking_pools(candidates, rest, task.top, pairings, last, task.seed)


def shrinking_pools(
    pool: list[int], rest: list[int], k: int, pairings: int, last: int, seed: int
) -> Comparisons[list[int]]:
    """Return the top k: the last pool by wins, then those that left it, then `rest`.

    A round that removes nothing is the last one; at least k documents remain where the pool has
    as many.
    """
    rng = np.random.default_rng([seed, 1])
    removed: list[int] = []
    while len(pool) > max(last, pairings + 1):
        shuffled = [pool[i] for i in rng.permutation(len(pool))]
        wins = yield from _win_rates(shuffled, _random_pairs(shuffled, pairings))
        best = sorted(pool, key=lambda d: -wins[d])
        size = max(sum(wins[d] >= 0.5 for d in pool), k)
        if size >= len(pool):
            break
        pool, removed = best[:size], best[size:] + removed
    wins = yield from _win_rates(pool, combinations(pool, 2))
    return [*sorted(pool, key=lambda d: -wins[d]), *removed, *rest][:k]


def _random_pairs(circle: list[int], pairings: int) -> list[tuple[int, int]]:
    """Return pairs of neighbors on a circle, so that each document has `pairings` or one more."""
    n = len(circle)
    pairs = [
        (circle[i], circle[(i + step) % n])
        for step in range(1, pairings // 2 + 1)
        for i in range(n)
    ]
    if pairings % 2:
        pairs += [(circle[i], circle[(i + n // 2) % n]) for i in range((n + 1) // 2)]
    return pairs


def _win_rates(
    documents: list[int], pairs: Iterable[tuple[int, int]]
) -> Comparisons[dict[int, float]]:
    """Ask all pairs; return the fraction of its comparisons that each document won."""
    points, games = dict.fromkeys(documents, 0.0), dict.fromkeys(documents, 0)
    for first, second in pairs:
        outcome = yield Compare(first, second)
        for document, won in ((first, outcome), (second, -outcome)):
            points[document] += 0.5 + won / 2
            games[document] += 1
    return {d: points[d] / max(games[d], 1) for d in documents}
