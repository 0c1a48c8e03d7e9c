"""Plain Python functions as measures."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise, permutations, product
from math import factorial, prod
from typing import ClassVar

import numpy as np

from firstpage.core import Floats, Ints, qualified_name
from firstpage.evaluation.measures.base import ALL, Convention, Measure, RankedLists, failed_measure

MAX_ORDERS = 120  # orders of tied documents that are all measured
SAMPLED_ORDERS = 100  # random ones, where there are more
SIGNATURE = (
    "; it takes the labels in ranked order and those of the ideal order, and returns a number"
)


@dataclass(frozen=True)
class FunctionMeasure(Measure):
    """A Python function of the labels of one query.

    With tied scores it is the mean over all orders of the tied documents if there are at most 120,
    else over 100 random ones, by the convention's seed.

    Parameters
    ----------
    function : callable
        ``function(labels, ideal)`` returns the value of one query, given the labels in ranked order
        (NaN: unjudged) and the labels of all judged documents in descending order.
    """

    function: Callable[[Floats, Floats], float]
    about: ClassVar[str] = "a function of your own"

    @property
    def name(self) -> str:
        """Name of the function, with its module."""
        return qualified_name(self.function)

    def __str__(self) -> str:
        return self.name + ("(condensed=true)" if self.condensed else "")

    def values(self, lists: RankedLists, convention: Convention) -> Floats:
        best, best_offsets = lists.ideal(ALL)
        out = np.empty(len(lists))
        bounds = zip(pairwise(lists.offsets), pairwise(best_offsets), strict=True)
        for q, ((lo, hi), (best_lo, best_hi)) in enumerate(bounds):
            labels, ideal = lists.labels[lo:hi].copy(), best[best_lo:best_hi].copy()
            orders = _orders(lists.tie_sizes[lo:hi], convention.seed + q)
            out[q] = np.mean([self._value(labels[order], ideal) for order in orders])
        return out

    def _value(self, labels: Floats, ideal: Floats) -> float:
        try:
            return float(self.function(labels, ideal))
        except Exception as error:  # whatever the user's code raises
            raise failed_measure(self, error, SIGNATURE) from error


def _orders(tie_sizes: Ints, seed: int) -> Iterator[Ints]:
    """Yield the orders of the documents of one list that ties allow, or a sample of them."""
    tie: list[int] = []
    size = len(tie_sizes)
    while len(tie) < size:
        tie += [len(tie)] * int(tie_sizes[len(tie)])
    blocks = [list(rows) for _, rows in groupby(range(size), key=tie.__getitem__)]
    sizes = [len(block) for block in blocks if len(block) > 1]
    if not sizes:
        yield np.arange(size)
    elif sum(sizes) <= 10 and prod(map(factorial, sizes)) <= MAX_ORDERS:
        for arrangement in product(*(permutations(block) for block in blocks)):
            yield np.array([row for block in arrangement for row in block])
    else:
        rng = np.random.default_rng(seed)
        for _ in range(SAMPLED_ORDERS):
            yield np.lexsort((rng.random(size), np.array(tie)))
