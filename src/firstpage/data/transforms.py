"""Feature scaling that can be stored with a model: per query or over all documents.

A transform is a frozen value: `MinMax()` scales each query by itself and needs no fitting;
`MinMax(per="global").fit(train)` remembers the training data's range.  `to_dict` and
`transform_from_dict` carry it through a JSON model file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.errors import DataError
from firstpage.registry import lookup
from firstpage.types import Array, Floats, Ints

BLOCK_ROWS = 1 << 16  # fitted and applied this many rows at a time, for data larger than memory
Per = Literal["query", "global"]


class DatasetSequence(Protocol):
    """Data in parts, as a list of them or a folder of shards has them."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Dataset: ...


@dataclass(frozen=True, eq=False)
class _Scaling:
    """Shared: values become (value - shift) / scale, column by column; NaN stays NaN."""

    per: Per = "query"
    shift: Floats | None = None
    scale: Floats | None = None
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.per not in ("query", "global"):
            raise DataError(f"per must be 'query' or 'global'; got {self.per!r}.")

    def __repr__(self) -> str:
        fitted = "" if self.shift is None else f", fitted to {len(self.shift)} features"
        return f"{type(self).__name__}(per={self.per!r}{fitted})"

    def fit(self, data: Dataset | DatasetSequence) -> Self:
        """With the numbers of this data, or of all its parts; per query there is nothing to
        remember."""
        if self.per == "query":
            return self
        parts: DatasetSequence = [data] if isinstance(data, Dataset) else data
        shift, spread = self._over_all(lambda: _blocks(parts, self.name))
        return replace(self, shift=shift, scale=_no_zero(spread))

    def apply(self, data: Dataset, out: Array | None = None) -> Dataset:
        """The data with scaled features, written to `out` if given; the type of numbers stays."""
        return data.with_features(
            self.transform(_dense(data, self.name), data.offsets, out), data.feature_names
        )

    def transform(self, X: Array, offsets: Ints, out: Array | None = None) -> Array:
        """Scale an array whose rows are grouped by `offsets`."""
        out = np.empty(X.shape, X.dtype) if out is None else out
        if self.per == "global":
            if self.shift is None or self.scale is None:
                raise DataError(
                    f"{self.name} over all documents must be fitted first: .fit(train)."
                )
            if len(self.shift) != X.shape[1]:
                raise DataError(
                    f"{self.name} was fitted to {len(self.shift)} features; these data have "
                    f"{X.shape[1]}."
                )
            for lo in range(0, len(X), BLOCK_ROWS):
                out[lo : lo + BLOCK_ROWS] = (X[lo : lo + BLOCK_ROWS] - self.shift) / self.scale
            return out
        for lo, hi in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            if hi > lo:
                rows = X[lo:hi].astype(np.float64)
                shift, spread = self._statistics(rows)
                out[lo:hi] = (rows - shift) / _no_zero(spread)
        return out

    def to_dict(self) -> dict[str, Any]:
        """As JSON can hold it."""
        found: dict[str, Any] = {"transform": self.name, "per": self.per}
        if self.shift is not None and self.scale is not None:
            found |= {"shift": self.shift.tolist(), "scale": self.scale.tolist()}
        return found

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def _over_all(self, blocks: Callable[[], Iterator[Floats]]) -> tuple[Floats, Floats]:
        raise AssertionError("a subclass says how")

    def _statistics(self, rows: Floats) -> tuple[Floats, Floats]:
        """(what to subtract, what to divide by) of some rows."""
        raise AssertionError("a subclass says how")


class MinMax(_Scaling):
    """To [0, 1]: smallest value 0, greatest 1.  A constant feature becomes 0."""

    name = "minmax"

    def _statistics(self, rows: Floats) -> tuple[Floats, Floats]:
        low, high = _quiet(np.fmin.reduce, rows), _quiet(np.fmax.reduce, rows)
        return low, high - low

    def _over_all(self, blocks: Callable[[], Iterator[Floats]]) -> tuple[Floats, Floats]:
        low, high = np.array(np.nan), np.array(np.nan)
        for rows in blocks():
            low = np.fmin(low, _quiet(np.fmin.reduce, rows))
            high = np.fmax(high, _quiet(np.fmax.reduce, rows))
        return low, high - low


class Standardize(_Scaling):
    """To mean 0 and standard deviation 1 (of the population).  A constant feature becomes 0."""

    name = "standardize"

    def _statistics(self, rows: Floats) -> tuple[Floats, Floats]:
        count = np.maximum(np.count_nonzero(~np.isnan(rows), axis=0), 1)
        mean = np.nansum(rows, axis=0) / count
        return mean, np.sqrt(np.nansum((rows - mean) ** 2, axis=0) / count)

    def _over_all(self, blocks: Callable[[], Iterator[Floats]]) -> tuple[Floats, Floats]:
        # Two passes: the sum of squares around the true mean keeps all digits.
        count, total, squares = np.array(0.0), np.array(0.0), np.array(0.0)
        for rows in blocks():
            count = count + np.count_nonzero(~np.isnan(rows), axis=0)
            total = total + np.nansum(rows, axis=0)
        count = np.maximum(count, 1)
        mean = total / count
        for rows in blocks():
            squares = squares + np.nansum((rows - mean) ** 2, axis=0)
        return mean, np.sqrt(squares / count)


def _blocks(parts: DatasetSequence, who: str) -> Iterator[Floats]:
    """The features of all parts, some rows at a time, in float64."""
    for number in range(len(parts)):
        X = _dense(parts[number], who)
        for lo in range(0, max(len(X), 1), BLOCK_ROWS):
            yield X[lo : lo + BLOCK_ROWS].astype(np.float64)


TRANSFORMS: dict[str, type[_Scaling]] = {"minmax": MinMax, "standardize": Standardize}


def transform_from_dict(stored: dict[str, Any]) -> MinMax | Standardize:
    """The transform that `to_dict` wrote."""
    kind = lookup(str(stored.get("transform")), TRANSFORMS, "transform")
    numbers = {
        key: np.array(stored[key], np.float64) for key in ("shift", "scale") if key in stored
    }
    return kind(per=stored.get("per", "query"), **numbers)  # type: ignore[return-value]


def _quiet(reduce: Any, rows: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        found: Floats = reduce(rows, axis=0)
    return found


def _no_zero(spread: Floats) -> Floats:
    """Divisors: a feature without spread is only shifted."""
    return np.where(spread > 0, spread, 1.0)


def _dense(data: Dataset, name: str) -> Array:
    if not isinstance(data.X, np.ndarray):
        raise DataError(
            f"{name} would fill a sparse matrix; use data.dense() first, if it fits into memory."
        )
    return data.X
