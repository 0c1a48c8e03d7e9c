"""Proposition 10 of Xia et al. (2009): three objects, and where the full order misleads.

The orders 123, 213 and 321 have the chances p1, p2 and p2.  For p1 > p2 object 1 is the likeliest
first one; which object a loss puts first depends on p1.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np
from scipy.optimize import brentq

from firstpage.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy
from firstpage.losses.loss import Loss
from firstpage.losses.pairwise import PairwiseLogistic
from firstpage.papers.theory.checks import Check, Result
from firstpage.papers.theory.minimizer import Least, least
from firstpage.papers.theory.spaces import Space, places
from firstpage.papers.theory.surrogates import STEP, Surrogate, surrogate
from firstpage.types import Array, Floats


class KFactor(Surrogate):
    """- sum over top-k lists of P(list | psi) log P(list | g), P being Luce's.

    psi falls with every place (n, n - 1, .. 1), or only over the first `level` places.
    """

    exact, convex = True, True

    def __init__(self, n: int, k: int, level: int | None = None) -> None:
        self.n, self.k = n, k
        self.name = f"k-factor ListNet, k = {k}"
        self._tops = [list(top) for top in permutations(range(n), k)]
        falls = np.arange(n, 0, -1.0)
        if level is not None:
            falls = np.maximum(level - np.arange(n), 0).astype(np.float64)
        psi = falls[places(n)]
        self._target = np.exp(np.array([self._logs(row) for row in psi]))

    def _logs(self, g: Floats) -> Floats:
        """log P of every top-k list."""
        found = np.zeros(len(self._tops))
        for at, top in enumerate(self._tops):
            for i, member in enumerate(top):
                left = [o for o in range(self.n) if o not in top[:i]]
                found[at] += g[member] - np.logaddexp.reduce(g[left])
        return found

    def values(self, g: Floats) -> Floats:
        found: Floats = -(self._target @ self._logs(g))
        return found

    def slopes(self, g: Floats, step: float = STEP) -> Floats:
        pull = np.zeros((len(self._tops), self.n))
        for at, top in enumerate(self._tops):
            for i, member in enumerate(top):
                left = [o for o in range(self.n) if o not in top[:i]]
                share: Array = np.exp(g[left] - np.logaddexp.reduce(g[left]))
                pull[at, member] += 1.0
                pull[at, left] -= share
        found: Floats = -(self._target @ pull)
        return found


CASES = (0.34, 0.36, 0.40, 0.44, 0.48, 0.50, 0.52, 0.53, 0.55, 0.70, 0.90)
THRESHOLD = 0.5261
FULL: dict[str, Loss] = {
    "ListMLE": PlackettLuce(), "RankCosine": Cosine(), "ListNet": SoftmaxCrossEntropy(),
    "RankNet": PairwiseLogistic(),
}  # fmt: skip


def space(p1: float) -> Space:
    p2 = (1 - p1) / 2
    return Space.of({(0, 1, 2): p1, (1, 0, 2): p2, (2, 1, 0): p2})


def least_at(loss: Loss, p1: float) -> Least:
    return least(surrogate(loss, 3), space(p1), np.random.default_rng(0), 1)[0]


def centred(found: Least) -> Floats:
    scores: Floats = found.scores - found.scores.mean()
    return scores


def threshold(loss: Loss) -> float:
    """From which p1 on object 1 is first."""

    def lead(p1: float) -> float:
        scores = least_at(loss, p1).scores
        return float(scores[0] - scores[1])

    return float(brentq(lead, 0.335, 0.9, xtol=1e-6))


def as_printed(rng: np.random.Generator, samples: int) -> Result:
    """Does ListMLE miss object 1 at every p1 > p2?"""
    right = [p1 for p1 in CASES if least_at(PlackettLuce(), p1).top(1) == (0,)]
    example = ""
    if right:
        scores = ", ".join(f"{x:.3f}" for x in centred(least_at(PlackettLuce(), 0.55)))
        example = f"at p1 = .55 the risk is least at ({scores}): object 1 is first, as it should be"
    return Result(not right, {"cases": len(CASES), "right": len(right)}, example)


def mended(rng: np.random.Generator, samples: int) -> Result:
    """Below the threshold 2 is first, above it 1; top-1 ListMLE has 1 first always."""
    at = threshold(PlackettLuce())
    full = {p1: least_at(PlackettLuce(), p1) for p1 in CASES}
    wrong = sum(f.top(1) != ((1,) if p1 < at else (0,)) for p1, f in full.items())
    wrong += sum(least_at(PlackettLuce(1), p1).top(1) != (0,) for p1 in CASES)
    wrong += any(not space(p1).preserves(1, 0, j) for p1 in CASES for j in (1, 2))
    g = centred(full[0.40])
    numbers = {"threshold": at, **{f"g{i + 1} at p1 = .40": float(x) for i, x in enumerate(g)}}
    numbers["greatest slope"] = max(f.slope for f in full.values())
    return Result(not wrong and abs(at - THRESHOLD) < 2e-4, numbers)


def others(rng: np.random.Generator, samples: int) -> Result:
    """The other full-order losses go wrong as well, each up to a threshold of its own."""
    found = {name: threshold(loss) for name, loss in FULL.items()}
    numbers = {f"{name} from p1 =": at for name, at in found.items()}
    return Result(all(1 / 3 < at < 0.9 for at in found.values()), numbers)


CHECKS = [
    Check("xia2009/proposition-10", "as it reads: with p123 = p1, p213 = p321 = p2, full-order "
          "ListMLE is wrong for every p1 > p2", as_printed, holds=False),
    Check("xia2009/proposition-10-some", "it is wrong for 1/3 < p1 < .5261 and right above; top-1 "
          "ListMLE is right always", mended, "mended", mends="xia2009/proposition-10"),
    Check("xia2009/proposition-10-others", "the other full-order losses are wrong too, for p1 "
          "just above 1/3", others, "ours"),
]  # fmt: skip
