"""Cross entropy of complete permutations (ListNet as first printed), for up to 12 documents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from firstpage.core import Array, BoundKernel, DataError, Floats, Ints
from firstpage.core.kernels.losses import permutations as kernel
from firstpage.data import Truth, offsets_from_lengths
from firstpage.learning.losses.base import Loss, LossTarget, LossTerm, OneKernelTarget, ShortLists
from firstpage.learning.losses.listwise import relevance

MAX_LENGTH = 12  # documents of a list


@dataclass(frozen=True)
class PermutationCrossEntropy(Loss):
    """Cross entropy of the Plackett-Luce distributions over permutations, ListNet's full form.

    Minus the sum over all permutations of P(permutation | labels) * log P(permutation | scores).
    It is exact, in O(2^n n) instead of O(n!), for lists of up to 12 documents.

    Parameters
    ----------
    k : int, optional
        Replace the labels by the top-k labels k, k-1, .., 1, 0, .., 0 of the truth.
    temperature : float, default 1.0
        The number by which labels are divided; above 0.

    Raises
    ------
    DataError
        If `temperature` is not above 0; on use, if a query has more than 12 documents or if
        documents have weights other than 1.

    References
    ----------
    Cao, Qin, Liu, Tsai and Li (2007), Learning to rank: from pairwise approach to listwise
    approach, section 4.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays(np.eye(3), [2, 1, 0], [1, 1, 1])
    >>> values, _ = fp.extend.loss("PermutationCrossEntropy").value_grad(np.zeros(3), data.truth)
    >>> float(values[0].round(3))  # log 3!
    1.792
    """

    k: int | None = None
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise DataError(f"temperature must be above 0; got {self.temperature}.")

    def target(self, truth: Truth, weights: Floats | None = None) -> LossTarget:
        if weights is not None and not np.all(weights == 1.0):
            raise DataError(
                "the permutation form takes no weights of documents inside a query; use the "
                "top-one form."
            )
        psi = relevance(truth, None, self.k) / self.temperature
        lengths = truth.lengths
        if int(lengths.max(initial=0)) > MAX_LENGTH:
            q = int(np.argmax(lengths))
            raise DataError(
                f"query {truth.queries[q]!r} has {int(lengths[q])} documents; the exact "
                f"permutation form takes at most {MAX_LENGTH}. Use the top-one form for longer "
                "lists."
            )
        rows = np.arange(len(psi)) - np.repeat(truth.offsets[:-1], lengths)
        return PermutationTarget(psi, rows, truth.offsets, truth.offsets, np.ones(len(truth)))


class PermutationTarget(OneKernelTarget):
    """The documents `docs` of each query, as numbers inside it, and their target scores `psi`."""

    def __init__(
        self, psi: Floats, docs: Array, firsts: Ints, offsets: Ints, factor: Floats
    ) -> None:
        self.docs = docs.astype(np.int32)
        self.firsts, self.offsets, self.factor = firsts, offsets, factor
        numbers: dict[tuple[float, ...], int] = {}  # equal targets share a table
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

    def hessian_scale(self) -> Floats:
        scale: Floats = self.factor * np.maximum(np.diff(self.firsts) - 1, 0)
        return scale

    def terms(self) -> list[LossTerm]:
        lists = ShortLists(self.docs, self.firsts, self.table, self.starts, self.reach)
        return [LossTerm("permutations", {}, self.factor, lists=lists)]

    def entropy(self) -> Floats:
        """Return the least value that scores can reach, per query (before the factor)."""
        entropies: Floats = self._entropies[self.table] if len(self.table) else np.empty(0)
        return entropies

    def at_zero(self) -> Floats:
        """Return the value where all scores are equal: the log of the number of permutations."""
        logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, MAX_LENGTH + 1)))])
        return logs[np.diff(self.firsts)]

    def _bind(
        self, lo: int, hi: int, scores: Floats, values: Floats, grad: Floats, curvature: Floats
    ) -> BoundKernel:
        a, b = int(self.firsts[lo]), int(self.firsts[hi])
        z, logs = np.empty(MAX_LENGTH), np.empty(1 << MAX_LENGTH)
        return kernel.permutation_cross_entropy.bind(
            scores, self.docs[a:b], self.offsets[lo : hi + 1], self.firsts[lo : hi + 1],
            self.table[lo:hi], self.starts, self.reach, self.factor[lo:hi], z, logs, values, grad,
            curvature,
        )  # fmt: skip


@lru_cache(4096)
def reach_table(psi: tuple[float, ...]) -> tuple[Floats, float]:
    """Return, for each subset, the probability that it is ever the set of documents not yet ranked;
    and the entropy of the distribution."""
    reach, entropy = np.empty(1 << len(psi)), np.empty(1)
    kernel.subset_probabilities(np.array(psi), reach, entropy)
    return reach, float(entropy[0])
