"""Cross entropy of whole permutations (ListNet as first printed), for up to 12 documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from firstpage.data.groups import offsets_from_lengths
from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.kernels.losses import permutations as kernel
from firstpage.losses.listwise import relevance
from firstpage.losses.loss import Loss, Run, ShortLists, Target, Term
from firstpage.types import Array, Floats, Ints

LONGEST = 12


@dataclass(frozen=True)
class PermutationCrossEntropy(Loss):
    """- sum over all permutations of P(permutation | labels) * log P(permutation | scores).

    P is Plackett and Luce's.  Exact, in O(2^n n) instead of n!, for lists of up to 12 documents;
    with `k` labels are the top-k map.
    """

    k: int | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise DataError(f"temperature must be above 0; got {self.temperature}.")

    def target(self, truth: Truth, weights: Floats | None = None) -> Target:
        if weights is not None and not np.all(weights == 1.0):
            raise DataError("permutations have no weights inside a query; the top-one form has.")
        psi = relevance(truth, None, self.k) / self.temperature
        lengths = truth.lengths
        if int(lengths.max(initial=0)) > LONGEST:
            q = int(np.argmax(lengths))
            raise DataError(
                f"query {truth.queries[q]!r} has {int(lengths[q])} documents; the exact "
                f"permutation form takes at most {LONGEST}. Use the top-one form for longer lists."
            )
        rows = np.arange(len(psi)) - np.repeat(truth.offsets[:-1], lengths)
        return Permutations(psi, rows, truth.offsets, truth.offsets, np.ones(len(truth)))


class Permutations:
    """The documents `docs` of each query, numbers inside it, and their target scores `psi`."""

    def __init__(
        self, psi: Floats, docs: Array, firsts: Ints, offsets: Ints, factor: Floats
    ) -> None:
        self.docs = docs.astype(np.int32)
        self.firsts, self.offsets, self.factor = firsts, offsets, factor
        numbers: dict[tuple[float, ...], int] = {}  # one table for equal targets
        lists = [tuple(psi[a:b].tolist()) for a, b in pairwise(firsts.tolist())]
        self.table = np.array(
            [numbers.setdefault(tuple(x - max(p) for x in p), len(numbers)) for p in lists],
            np.int64,
        )
        tables = [reach_table(p) for p in numbers]
        sizes = [len(t) for t, _ in tables]
        self.starts = offsets_from_lengths(sizes)
        self.reach = np.concatenate([np.empty(0), *(t for t, _ in tables)])
        self._entropies = np.array([h for _, h in tables])

    def stiffness(self) -> Floats:
        found: Floats = self.factor * np.maximum(np.diff(self.firsts) - 1, 0)
        return found

    def terms(self) -> list[Term]:
        lists = ShortLists(self.docs, self.firsts, self.table, self.starts, self.reach)
        return [Term("permutations", {}, self.factor, lists=lists)]

    def entropy(self) -> Floats:
        """The least value that scores can reach, a query (before the factor)."""
        found: Floats = self._entropies[self.table] if len(self.table) else np.empty(0)
        return found

    def at_zero(self) -> Floats:
        """The value where all scores are equal: log of the number of permutations."""
        logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, LONGEST + 1)))])
        return logs[np.diff(self.firsts)]

    def bind(self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats) -> Run:
        return self._bind(lo, hi, scores, values, grad, np.empty(0))

    def bind_curvature(self, lo: int, hi: int, scores: Floats, out: Floats) -> Run:
        return self._bind(lo, hi, scores, np.empty(hi - lo), np.empty(len(scores)), out)

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curve: Floats
    ) -> Run:
        a, b = int(self.firsts[lo]), int(self.firsts[hi])
        return kernel.permutation_cross_entropy.bind(
            scores, self.docs[a:b], self.offsets[lo : hi + 1], self.firsts[lo : hi + 1],
            self.table[lo:hi], self.starts, self.reach, self.factor[lo:hi],
            np.empty(LONGEST), np.empty(1 << LONGEST), values, grad, curve,
        )  # fmt: skip


@lru_cache(4096)
def reach_table(psi: tuple[float, ...]) -> tuple[Floats, float]:
    """For each subset the chance that it is ever all that is left; and the entropy."""
    reach, entropy = np.empty(1 << len(psi)), np.empty(1)
    kernel.subset_probabilities(np.array(psi), reach, entropy)
    return reach, float(entropy[0])
