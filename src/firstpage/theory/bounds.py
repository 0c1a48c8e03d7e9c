"""The chain of section 5 of Lan et al. (2013): 1 - NDCG@k, weighted Kendall's tau, losses.

Scores are in the true order: z[0] is the best document's.  Labels are n - place, gains 2^label - 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from firstpage.data.truth import Truth
from firstpage.losses.base import Loss
from firstpage.losses.listwise import PlackettLuce
from firstpage.losses.pairwise import PairwiseExponential, PairwiseHinge, PairwiseLogistic
from firstpage.types import Array, Bools, Floats

LONGEST = 8
LOSSES: dict[str, type[PlackettLuce | PairwiseHinge | PairwiseExponential | PairwiseLogistic]] = {
    "hinge": PairwiseHinge, "exponential": PairwiseExponential, "logistic": PairwiseLogistic,
    "listmle": PlackettLuce,
}  # fmt: skip


def discount(places: Array) -> Floats:
    found: Floats = 1 / np.log2(1.0 + places)
    return found


@dataclass(frozen=True, eq=False)
class Chain:
    """Everything the inequalities speak of, for many score vectors of n documents.  By row:

    ndcg, printed, all_places  the usual NDCG@k; equation (9), whose sum stops at the true place k
                               but not at rank k; the proof's, whose sum goes to n.  Ties are
                               broken against the truth
    wkt, wkt_weak              weighted Kendall's tau, by < as printed and by <=
    some, some_weak            the same with "at least one" instead of how many
    top, full                  losses by name, top-k and of the full order
    """

    z: Floats
    k: int
    alpha: Floats
    ndcg: Floats
    printed: Floats
    all_places: Floats
    wkt: Floats
    wkt_weak: Floats
    some: Floats
    some_weak: Floats
    top: dict[str, Floats]
    full: dict[str, Floats]

    @property
    def n(self) -> int:
        return int(self.z.shape[1])

    @property
    def N(self) -> float:
        """N_k, the most that the sum can be."""
        return float(self.alpha.sum())

    @property
    def c(self) -> float:
        """The greatest alpha."""
        return float(self.alpha.max())

    @property
    def distinct(self) -> Bools:
        """Rows without equal scores."""
        found: Bools = np.diff(np.sort(self.z, axis=1), axis=1).min(axis=1) > 0
        return found


def chain(z: Floats, k: int) -> Chain:
    """All terms for score vectors z, one a row."""
    n = z.shape[1]
    gains = 2.0 ** (n - 1 - np.arange(n)) - 1
    alpha = gains[:k] * discount(np.arange(1, k + 1))
    total = alpha.sum()
    below = np.triu(np.ones((n, n), bool), 1)  # l after j in the true order
    beaten = (z[:, :, None] < z[:, None, :]) & below
    weakly = (z[:, :, None] <= z[:, None, :]) & below
    # The worst order of equals: who is worse in truth comes first.
    ranks = 1 + (z[:, None, :] > z[:, :, None]).sum(2)
    ranks += ((z[:, None, :] == z[:, :, None]) & below).sum(2)
    seen = discount(ranks)
    v, weak = beaten.sum(2)[:, :k], weakly.sum(2)[:, :k]
    return Chain(
        z, k, alpha,
        ndcg=(np.where(ranks <= k, seen, 0.0) @ gains) / total,
        printed=(seen[:, :k] @ gains[:k]) / total, all_places=(seen @ gains) / total,
        wkt=v @ alpha, wkt_weak=weak @ alpha, some=(v > 0) @ alpha, some_weak=(weak > 0) @ alpha,
        top={name: values(cls(k=k), z) for name, cls in LOSSES.items()},
        full={name: values(cls(), z) for name, cls in LOSSES.items()},
    )  # fmt: skip


def values(loss: Loss, z: Floats) -> Floats:
    """A loss of the package on scores in true order."""
    rows, n = z.shape
    labels = np.tile(np.arange(n - 1, -1, -1.0), rows)
    truth = Truth.of(labels, np.repeat(np.arange(rows), n))
    return loss.value_grad(z.ravel(), truth)[0]


def scores(rng: np.random.Generator, n: int, k: int, rows: int) -> Floats:
    """Score vectors to try: random ones of all scales, ties, tiny gaps, one below all others."""
    z = rng.normal(size=(rows, n)) * 10 ** rng.uniform(-3, 1, (rows, 1))
    ties = rng.integers(0, 3, (rows // 4 + 1, n)).astype(np.float64)
    step = 10 ** rng.uniform(-9, 0, (8, 1))
    below = np.where(np.arange(n) > 0, step, 0.0)  # the first one just below the rest
    apart = below + 1e-3 * step * rng.random((8, n))  # the same without ties
    deep = np.where(np.arange(n) >= k, step, 0.0)
    line = np.arange(n) * step
    return np.vstack([z, ties, below, apart, deep, line, -line, np.zeros((1, n))])


def chains(rng: np.random.Generator, samples: int) -> Iterator[Chain]:
    """Chains for all lengths from 2 to 8 and all k, about `samples` vectors together."""
    every = [(n, k) for n in range(2, LONGEST + 1) for k in range(1, n + 1)]
    for n, k in every:
        yield chain(scores(rng, n, k, max(samples // len(every), 4)), k)
