"""Distributions of the features and scores of training, in bins, by which a server sees drift."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstpage.core import Array, Floats, Ints
from firstpage.data import Dataset
from firstpage.learning.scorers.scorer import Scoring
from firstpage.learning.scorers.scoring_base import JsonObject

BINS = 5  # of equal mass in training, as far as values are not equal
MAX_ROWS, MAX_FEATURES = 2000, 1000  # that are sampled, and described


@dataclass(frozen=True, eq=False)
class Distributions:
    """How many values are in each bin, by column: the scores, then each feature.

    Attributes
    ----------
    edges : ndarray of shape (columns, BINS - 1)
        Upper ends of the bins but the last; infinite, where there are fewer.
    counts : ndarray of shape (columns, BINS + 1)
        The values per bin in training; the last are missing values.
    """

    edges: Floats
    counts: Ints

    def counts_of(self, values: Array) -> Ints:
        """Return the numbers of other values in the same bins, by column."""
        missing = np.isnan(values)
        bins = np.where(missing, BINS, (values[:, :, None] > self.edges).sum(axis=2))
        return np.stack([(bins == number).sum(axis=0) for number in range(BINS + 1)], axis=1)

    def to_dict(self) -> JsonObject:
        """Return the distributions as JSON."""
        edges = [row[np.isfinite(row)].tolist() for row in self.edges]
        return {"edges": edges, "counts": self.counts.tolist()}


def distributions_of(
    data: Dataset, scoring: Scoring, threads: int | None = None
) -> JsonObject | None:
    """Return the distributions of scaled training data as JSON; None of too many features."""
    if data.n_features > MAX_FEATURES or not data.n_docs:
        return None
    queries = np.arange(0, len(data.lengths), -(-data.n_docs // MAX_ROWS))
    rows = np.concatenate([np.arange(*data.offsets[q : q + 2]) for q in queries.tolist()])
    sample = data.X[rows] if isinstance(data.X, np.ndarray) else data.X[rows].toarray()
    offsets = np.concatenate([[0], np.cumsum(np.asarray(data.lengths)[queries])])
    scores = scoring.predict(np.ascontiguousarray(sample), threads, offsets)
    values = np.column_stack([scores, sample]).astype(np.float64)
    edges = np.full((values.shape[1], BINS - 1), np.inf)
    for column, out in zip(values.T, edges, strict=True):
        known, counts = np.unique(column[np.isfinite(column)], return_counts=True)
        if len(known) > 1:
            below = np.cumsum(counts)[:-1] / counts.sum()  # up to each value
            wanted = np.arange(1, BINS) / BINS
            nearest = np.unique(np.abs(below[:, None] - wanted).argmin(axis=0))
            # between values, so that rounding to 32 bits moves none over an edge
            middles = known[nearest] / 2 + known[nearest + 1] / 2
            out[: len(nearest)] = [float(f"{middle:.9g}") for middle in middles.tolist()]
    empty = np.zeros((len(edges), BINS + 1), np.int64)
    return Distributions(edges, Distributions(edges, empty).counts_of(values)).to_dict()


def read_distributions(record: JsonObject, n_features: int) -> Distributions | None:
    """Return the distributions of a training record; None if it has none, or others."""
    try:
        stored = record["distributions"]
        counts = np.array(stored["counts"], np.int64).reshape(n_features + 1, BINS + 1)
        edges = np.full((n_features + 1, BINS - 1), np.inf)
        for row, values in zip(edges, stored["edges"], strict=True):
            row[: len(values)] = values
    except (KeyError, TypeError, ValueError):
        return None
    return Distributions(edges, counts) if (counts >= 0).all() else None
