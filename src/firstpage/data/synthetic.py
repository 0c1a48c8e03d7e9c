"""Synthetic collections of any size with a known utility.

A document has features x ~ N(0, 1) and a utility u(x), linear or not; assessors observe u plus
noise.  Labels are grades (cut at fixed thresholds, so queries differ in how many relevant documents
they have) or a full order.  Every query depends on the seed and its number alone: a collection is
the same however it is divided into blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.data.dataset import Dataset
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids

CALIBRATION_DOCS = 20_000  # drawn to set the thresholds of the grades
LENGTHS = {  # distributions and their numbers of parameters
    "uniform": 2,  # minimum, maximum
    "poisson": 1,  # mean
    "geometric": 1,  # mean
    "lognormal": 2,  # median, sigma
}


@dataclass(frozen=True)
class Synthetic:
    """Recipe of a synthetic collection; `dataset()` generates it.

    Parameters
    ----------
    queries : int, default 100
        The number of queries.
    docs : int or str, default 50
        Documents per query: a number, or a distribution such as "uniform(5, 200)",
        "poisson(30)", "geometric(20)" or "lognormal(100, 0.6)" (median, sigma).
    features : int, default 20
        The number of features.
    utility : {"linear", "nonlinear"}, default "linear"
        "linear": u(x) = w.x with unit w; "nonlinear": with products, waves and a threshold.
    noise : float, default 0.5
        Standard deviation of the noise that assessors add to the utility (whose own is 1).
    errors : {"normal", "gumbel"}, default "normal"
        Distribution of the noise.  With "gumbel", full orders are Plackett-Luce draws from
        u / noise.
    grades : int, default 5
        The number of grades: labels are 0 .. grades-1.
    relevant : float, default 0.3
        Fraction of documents with a positive label; half of them reach 2, half of these 3, ..
    labels : {"grades", "order"}, default "grades"
        "order" labels the documents of a query n-1 .. 0 from best to worst.
    head_fraction : float, optional
        If given, only this fraction at the top is ordered by u; the tail below it follows another
        direction, independent of the first (the noisy tails of Lan et al. 2013).
    seed : int, default 0
        Seed of all random numbers.

    Attributes
    ----------
    weights : ndarray of shape (features,)
        The true direction, of length 1.
    tail_weights : ndarray of shape (features,)
        The direction that orders the tail, orthogonal to `weights`.
    thresholds : ndarray of shape (grades - 1,)
        Where the grades begin: an observed utility of at least `thresholds[g - 1]` has grade g or
        more.

    Raises
    ------
    DataError
        If a parameter is out of its range.

    References
    ----------
    .. [1] Y. Lan, J. Guo, S. Niu, X. Cheng, "Is Top-k Sufficient for Ranking?", CIKM 2013.

    Examples
    --------
    >>> import firstpage as fp
    >>> recipe = fp.Synthetic(queries=3, docs=10, features=4, seed=1)
    >>> recipe.dataset()
    Dataset(synthetic: 3 queries, 30 documents, 4 features, dense float32)
    """

    queries: int = 100
    docs: int | str = 50
    features: int = 20
    utility: Literal["linear", "nonlinear"] = "linear"
    noise: float = 0.5
    errors: Literal["normal", "gumbel"] = "normal"
    grades: int = 5
    relevant: float = 0.3
    labels: Literal["grades", "order"] = "grades"
    head_fraction: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("queries", "features", "grades", "seed"):
            if not isinstance(getattr(self, name), int | np.integer):
                raise DataError(f"{name} must be an integer; got {getattr(self, name)!r}.")
        for name, minimum in (("queries", 1), ("features", 1), ("grades", 2)):
            if getattr(self, name) < minimum:
                raise DataError(f"{name} must be at least {minimum}; got {getattr(self, name)}.")
        for name, options in (
            ("utility", ("linear", "nonlinear")),
            ("errors", ("normal", "gumbel")),
            ("labels", ("grades", "order")),
        ):
            if getattr(self, name) not in options:
                raise DataError(
                    f"{name} must be {' or '.join(options)}; got {getattr(self, name)!r}."
                )
        if not 0 < self.relevant <= 1:
            raise DataError(f"relevant must lie in (0, 1]; got {self.relevant}.")
        if not 0 <= self.noise < np.inf:
            raise DataError(f"noise must not be negative; got {self.noise}.")
        if self.seed < 0:
            raise DataError(f"seed must not be negative; got {self.seed}.")
        if self.head_fraction is not None and not 0 < self.head_fraction < 1:
            raise DataError(f"head_fraction must lie between 0 and 1; got {self.head_fraction}.")
        self._length(self._rng(-1))  # raises if the distribution is invalid

    # --- the true model

    @cached_property
    def weights(self) -> Floats:
        """The true direction, of length 1."""
        w: Floats = self._rng(-2).normal(size=self.features)
        return w / float(np.linalg.norm(w))

    @cached_property
    def tail_weights(self) -> Floats:
        """The direction that orders the tail, orthogonal to the true one."""
        v: Floats = self._rng(-3).normal(size=self.features)
        v = v - float(v @ self.weights) * self.weights
        return v / max(float(np.linalg.norm(v)), 1e-9)

    def true_utility(self, X: Array) -> Floats:
        """Return u(x), by which the best possible ranker sorts.

        Parameters
        ----------
        X : array_like of shape (n_docs, features)
            Features.

        Returns
        -------
        ndarray of shape (n_docs,)
            The utility of each document.
        """
        x = np.asarray(X, np.float64)
        linear: Floats = x @ self.weights
        if self.utility == "linear":
            return linear
        other = x @ self.tail_weights
        nonlinear = 0.6 * linear + np.sin(2 * other) + 0.7 * linear * other + 0.5 * (x[:, 0] > 0.5)
        return np.asarray(nonlinear / 1.15, np.float64)

    @cached_property
    def thresholds(self) -> Floats:
        """The smallest observed utility of grades 1, 2, .."""
        rng = self._rng(-4)
        X = rng.normal(size=(CALIBRATION_DOCS, self.features)).astype(np.float32)
        observed = self._observed(X, rng)
        fractions = self.relevant * 0.5 ** np.arange(self.grades - 1)
        return np.asarray(np.quantile(observed, 1 - fractions), np.float64)

    # --- generation

    def dataset(self) -> Dataset:
        """Return the whole collection in memory.

        Returns
        -------
        Dataset
            All queries.
        """
        return next(self.blocks(self.queries))

    def blocks(self, size: int = 1000) -> Iterator[Dataset]:
        """Generate the collection block by block: `write_letor(recipe.blocks(), path)` streams it.

        Parameters
        ----------
        size : int, default 1000
            Queries per block.

        Yields
        ------
        Dataset
            The next queries.

        Raises
        ------
        DataError
            If `size` is below 1.
        """
        if size < 1:
            raise DataError(f"size must be at least 1; got {size}.")
        for start in range(0, self.queries, size):
            yield self._block(range(start, min(start + size, self.queries)))

    def _block(self, numbers: range) -> Dataset:
        features, labels, names = [], [], []
        for number in numbers:
            rng = self._rng(number)
            X = rng.normal(size=(self._length(rng), self.features)).astype(np.float32)
            features.append(X)
            labels.append(self._labels(X, rng))
            names += [f"q{number + 1}d{i + 1}" for i in range(len(X))]
        lengths = [len(X) for X in features]
        offsets = offsets_from_lengths(lengths)
        return Dataset(
            np.concatenate(features),
            np.concatenate(labels),
            offsets,
            Ids.from_values(n + 1 for n in numbers),
            Ids.from_values(names),
            None,
            "synthetic",
        )

    def _rng(self, number: int) -> np.random.Generator:
        """Return the random generator of a query, or of another purpose (numbers below 0)."""
        return np.random.default_rng([self.seed, number + 10])

    def _length(self, rng: np.random.Generator) -> int:
        """Draw the number of documents of a query."""
        if isinstance(self.docs, int | np.integer):
            if self.docs < 1:
                raise DataError(f"docs must be at least 1; got {self.docs}.")
            return int(self.docs)
        match = re.fullmatch(r"\s*(\w+)\s*\(([^)]*)\)\s*", str(self.docs))
        if not match or match[1] not in LENGTHS:
            raise DataError(
                f"docs must be a number or one of {', '.join(f'{n}(..)' for n in LENGTHS)}; "
                f"got {self.docs!r}."
            )
        try:
            a, b = [*(float(v) for v in match[2].split(",")), 0.0][:2]
            if match[2].count(",") + 1 != LENGTHS[match[1]] or not (0 < a < 1e9 and 0 <= b < 1e9):
                raise ValueError
            if match[1] == "uniform" and b < a:
                raise ValueError
        except ValueError:
            raise DataError(
                f"docs: {self.docs!r} needs {LENGTHS[match[1]]} positive numbers."
            ) from None
        if match[1] == "uniform":
            return int(rng.integers(max(1, int(a)), int(b) + 1))
        if match[1] == "poisson":
            return max(1, int(rng.poisson(a)))
        if match[1] == "geometric":
            return int(rng.geometric(1 / max(a, 1.0)))
        return max(1, round(float(rng.lognormal(np.log(max(a, 1.0)), b))))

    def _observed(self, X: Array, rng: np.random.Generator) -> Floats:
        """Return the utilities as assessors observe them, with noise."""
        draw = rng.normal if self.errors == "normal" else rng.gumbel
        observed = self.true_utility(X) + self.noise * draw(size=len(X))
        return np.asarray(observed, np.float64)

    def _labels(self, X: Array, rng: np.random.Generator) -> Floats:
        observed = self._observed(X, rng)
        if self.head_fraction is not None:
            observed = self._with_tail(observed, X)
        if self.labels == "order":
            labels = np.empty(len(X))
            labels[np.argsort(-observed)] = np.arange(len(X) - 1, -1, -1)
            return labels
        return np.searchsorted(self.thresholds, observed, side="right").astype(np.float64)

    def _with_tail(self, observed: Floats, X: Array) -> Floats:
        """Replace the utilities below the top by those of the tail's direction."""
        assert self.head_fraction is not None
        size = max(1, round(self.head_fraction * len(observed)))
        top: Ints = np.argsort(-observed)[:size]
        other = np.asarray(X, np.float64) @ self.tail_weights
        mixed: Floats = other - other.max() + observed[top].min() - 1e-3
        mixed[top] = observed[top]
        return mixed
