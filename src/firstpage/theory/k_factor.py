"""ListNet of the first k factors of the Luce model, as first proposed: footnote 4 of Xia et al."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from firstpage.theory.spaces import places
from firstpage.theory.surrogates import STEP, Surrogate
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
