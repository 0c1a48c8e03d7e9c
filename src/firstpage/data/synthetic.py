"""Collections made from a known utility, at any size.

A document has features x ~ N(0, 1) and a utility u(x), linear or not; what assessors see is
u plus noise.  Labels are grades (cut at fixed levels, so that queries differ in how much
they have) or the full order.  Every query depends on the seed and its number alone: a
collection is the same however it is cut into blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.errors import DataError
from firstpage.types import Array, Floats, Ints

CALIBRATION_DOCS = 20_000  # documents drawn to place the grades' levels
LENGTHS = {
    "uniform": 2,  # least, greatest
    "poisson": 1,  # mean
    "geometric": 1,  # mean
    "lognormal": 2,  # median, sigma
}


@dataclass(frozen=True)
class Synthetic:
    """A recipe; `dataset()` makes it, `blocks()` makes it piece by piece.

    docs      documents a query: a number, or "uniform(5, 200)", "poisson(30)",
              "geometric(20)", "lognormal(100, 0.6)"
    utility   "linear": w.x with unit w; "nonlinear": with products, waves and a threshold
    noise     standard deviation of what assessors add to the utility (which has 1)
    errors    "normal", or "gumbel": then full orders are Plackett-Luce draws from u/noise
    grades    number of labels 0 .. grades-1
    relevant  share of documents with a positive label; half of them reach 2, half of these 3, ..
    labels    "grades", or "order": n-1 .. 0 down the list
    tail      if given, only this share at the top is ordered by u; what lies below follows
              another direction that features do not show on top (Lan et al.'s noisy tails)
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
    tail: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("queries", "features", "grades", "seed"):
            if not isinstance(getattr(self, name), int | np.integer):
                raise DataError(f"{name} must be a whole number; got {getattr(self, name)!r}.")
        for name, least in (("queries", 1), ("features", 1), ("grades", 2)):
            if getattr(self, name) < least:
                raise DataError(f"{name} must be at least {least}; got {getattr(self, name)}.")
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
        if self.tail is not None and not 0 < self.tail < 1:
            raise DataError(f"tail must lie between 0 and 1; got {self.tail}.")
        self._length(self._rng(-1))  # refuses a bad distribution before any work

    # --- the known truth

    @cached_property
    def weights(self) -> Floats:
        """The true direction, of length 1."""
        w: Floats = self._rng(-2).normal(size=self.features)
        return w / float(np.linalg.norm(w))

    @cached_property
    def tail_weights(self) -> Floats:
        """The direction that orders the tail: at right angles to the true one."""
        v: Floats = self._rng(-3).normal(size=self.features)
        v = v - float(v @ self.weights) * self.weights
        return v / max(float(np.linalg.norm(v)), 1e-9)

    def true_utility(self, X: Array) -> Floats:
        """u(x), what the best possible ranker would sort by."""
        x = np.asarray(X, np.float64)
        linear: Floats = x @ self.weights
        if self.utility == "linear":
            return linear
        other = x @ self.tail_weights
        curved = 0.6 * linear + np.sin(2 * other) + 0.7 * linear * other + 0.5 * (x[:, 0] > 0.5)
        return np.asarray(curved / 1.15, np.float64)

    @cached_property
    def thresholds(self) -> Floats:
        """Where the grades begin: a document above levels[g-1] has at least grade g."""
        rng = self._rng(-4)
        X = rng.normal(size=(CALIBRATION_DOCS, self.features)).astype(np.float32)
        seen = self._seen(X, rng)
        share = self.relevant * 0.5 ** np.arange(self.grades - 1)
        return np.asarray(np.quantile(seen, 1 - share), np.float64)

    # --- making it

    def dataset(self) -> Dataset:
        """All of it in memory."""
        parts = list(self.blocks(self.queries))
        return parts[0]

    def blocks(self, size: int = 1000) -> Iterator[Dataset]:
        """The same, `size` queries at a time: `write_letor(recipe.blocks(), path)` streams."""
        if size < 1:
            raise DataError(f"a block has at least 1 query; got {size}.")
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
            np.concatenate(features), np.concatenate(labels), offsets,
            Ids.from_values(n + 1 for n in numbers), Ids.from_values(names), None, "synthetic",
        )  # fmt: skip

    def _rng(self, number: int) -> np.random.Generator:
        """A generator of its own for each query, and for each other need (below 0)."""
        return np.random.default_rng([self.seed, number + 10])

    def _length(self, rng: np.random.Generator) -> int:
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

    def _seen(self, X: Array, rng: np.random.Generator) -> Floats:
        """Utility as an assessor sees it."""
        draw = rng.normal if self.errors == "normal" else rng.gumbel
        seen = self.true_utility(X) + self.noise * draw(size=len(X))
        return np.asarray(seen, np.float64)

    def _labels(self, X: Array, rng: np.random.Generator) -> Floats:
        seen = self._seen(X, rng)
        if self.tail is not None:
            seen = self._with_tail(seen, X)
        if self.labels == "order":
            labels = np.empty(len(X))
            labels[np.argsort(-seen)] = np.arange(len(X) - 1, -1, -1)
            return labels
        return np.searchsorted(self.thresholds, seen, side="right").astype(np.float64)

    def _with_tail(self, seen: Floats, X: Array) -> Floats:
        assert self.tail is not None
        top: Ints = np.argsort(-seen)[: max(1, round(self.tail * len(seen)))]
        other = np.asarray(X, np.float64) @ self.tail_weights
        mixed: Floats = other - other.max() + seen[top].min() - 1e-3
        mixed[top] = seen[top]
        return mixed
