"""Random ballots, as arrays and as lists for the reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core.kernels.voting.votes import ABSENT
from firstpage.data.ids import Ids
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.weights import normalize_weights


@dataclass
class Query:
    """One query: lists of document numbers in base order, best first."""

    n: int
    lists: list[list[int]]


def random_query(rng, rankers: int, n: int, partial: bool = False) -> Query:
    lists = [rng.permutation(n).tolist() for _ in range(rankers)]
    if partial:
        lists = [ballot[: int(rng.integers(0, n + 1))] for ballot in lists]
    return Query(n, lists)


def ballots_of(queries: list[Query], missing: Any = "last") -> Ballots:
    """Return ballots whose candidates are the documents, in the base order of their numbers."""
    offsets = np.concatenate([[0], np.cumsum([q.n for q in queries])]).astype(np.int64)
    positions = np.full((len(queries[0].lists), int(offsets[-1])), ABSENT, np.int64)
    for query, lo in zip(queries, offsets.tolist(), strict=False):
        for a, ballot in enumerate(query.lists):
            for position, document in enumerate(ballot):
                positions[a, lo + document] = position
    documents = np.arange(int(offsets[-1]))
    names = Ids.from_values(map(str, range(len(queries))))
    return Ballots(positions, offsets, documents, offsets.copy(), names, missing=missing)


def some_weights(rng, rankers: int) -> np.ndarray:
    """Return equal weights, small integers (which tie), or random weights."""
    kind = rng.integers(3)
    if kind == 0:
        return normalize_weights(None, rankers)
    numbers = rng.integers(0, 4, rankers) if kind == 1 else rng.random(rankers)
    if not numbers.any():
        return normalize_weights(None, rankers)
    return normalize_weights(numbers, rankers)


def split(ballots: Ballots, order: np.ndarray) -> list[list[int]]:
    return [part.tolist() for part in np.split(order, ballots.offsets[1:-1])]
