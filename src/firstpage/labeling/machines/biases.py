"""Tests of a machine's biases: the position of a document, and its length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import Floats
from firstpage.labeling.statistics.consistency import sign_test
from firstpage.labeling.statistics.intervals import (
    Interval,
    Proportion,
    bootstrap,
    format_p,
)

Orders = Mapping[tuple[str, str, str], tuple[int, int]]
"""By (query, left, right): the answer, and the answer to the swapped pair, both about `left`."""
Lengths = Mapping[tuple[str, str], int]
"""By (query, document): the number of characters."""


@dataclass(frozen=True)
class PositionBiasTest:
    """Answers to both orders of the same pairs.

    `consistent` is the fraction with the same answer, `first` and `second` count the pairs of which
    the document that was shown first or second was better in both orders; `bias` is their
    difference divided by the number of pairs, `p` the p-value of a sign test of the two counts.
    """

    consistent: Proportion
    first: int
    second: int
    bias: Interval
    p: float

    def to_dict(self) -> dict[str, Any]:
        """Return the test for JSON."""
        return {
            "consistent": self.consistent.to_dict(),
            "first": self.first,
            "second": self.second,
            "bias": self.bias.to_dict(),
            "p": self.p,
        }

    def rows(self) -> list[list[str]]:
        """Return the rows of a table."""
        low, high = self.consistent.interval
        return [
            ["same answer in both orders", f"{self.consistent.value:.3f} [{low:.3f}, {high:.3f}]"],
            ["preference for the first document", f"{self.bias}, {format_p(self.p)}"],
        ]


def position_test(orders: Orders, rounds: int = 2000, seed: int = 0) -> PositionBiasTest:
    """Return the test of a preference for the position of a document."""
    rows = [(query, *answers) for (query, _, _), answers in orders.items()]
    # Shown first: left in the first order, right in the swapped one.
    leaning = [(query, (straight - swapped) / 2) for query, straight, swapped in rows]
    first = sum(straight > 0 > swapped for _, straight, swapped in rows)
    second = sum(straight < 0 < swapped for _, straight, swapped in rows)
    same = sum(straight == swapped for _, straight, swapped in rows)
    return PositionBiasTest(
        Proportion(same, len(rows)),
        first,
        second,
        clustered_mean(leaning, rounds, seed),
        sign_test(first, second),
    )


def length_bias(
    relations: Mapping[tuple[str, str, str], int],
    human: Mapping[tuple[str, str, str], Sequence[int]],
    lengths: Lengths,
    rounds: int = 2000,
    seed: int = 0,
) -> Interval:
    """Return how much more a machine prefers the longer document than people do.

    The mean over pairs of documents of different length of (answer of the machine - mean answer of
    people), where 1 is the longer document and -1 the shorter one; people themselves may prefer
    longer documents, so 0 means as much as they do.
    """
    values = []
    for item, answers in human.items():
        query, a, b = item
        difference = lengths.get((query, a), 0) - lengths.get((query, b), 0)
        if difference and (query, a) in lengths and (query, b) in lengths:
            sign = 1 if difference > 0 else -1
            values.append((query, sign * (relations[item] - sum(answers) / len(answers))))
    return clustered_mean(values, rounds, seed)


def clustered_mean(values: Sequence[tuple[str, float]], rounds: int, seed: int) -> Interval:
    """Return the mean of values with its interval over resampled queries."""
    index = {query: i for i, query in enumerate(dict.fromkeys(query for query, _ in values))}
    total, count = np.zeros(len(index)), np.zeros(len(index))
    for query, value in values:
        total[index[query]] += value
        count[index[query]] += 1
    return bootstrap(lambda w: ratio_of_sums(w @ total, w @ count), len(index), rounds, seed)


def ratio_of_sums(hits: Floats, total: Floats) -> Floats:
    """Return hits / total; NaN where total is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(total > 0, np.divide(hits, total), np.nan)
