"""Feature scaling and imputation that can be stored with a model.

A transform is an immutable value: `MinMax()` scales each query by itself and needs no fitting;
`MinMax(per="global").fit(train)` stores the range of the training data.  `to_dict` and
`transform_from_dict` carry it through a JSON model file.  Missing values (NaN) are ignored by the
statistics and stay missing; with `impute`, they are filled before anything is scaled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints, lookup
from firstpage.data.categories import feature_name, listed_features
from firstpage.data.dataset import Dataset

BLOCK_ROWS = 1 << 16  # rows per step of fitting and scaling, for data larger than memory
Per = Literal["query", "global"]
MAX_ROUNDING = 1e-6  # relative error of a mean over up to a billion rows, at most
MEDIAN_BYTES = 1 << 28  # of the columns whose medians are computed at once
NO_VALUES = (
    "{} has no values in the training data, so impute={!r} cannot fill it; drop the feature, or "
    "use impute='zero' or a number."
)


def check_impute(value: object) -> None:
    """Raise an error for an invalid `impute`."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, (bool, np.bool_)):
        if np.isfinite(value):
            return
    elif value in ("median", "mean", "zero"):
        return
    raise DataError(f"impute must be 'median', 'mean', 'zero' or a number; got {value!r}.")


class DatasetSequence(Protocol):
    """A sequence of datasets, such as a list or a folder of shards."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Dataset: ...


@dataclass(frozen=True, eq=False)
class _Scaling:
    """Base of the transforms: (value - shift) / scale per column; NaN is filled or stays NaN."""

    per: Per = "query"
    shift: Floats | None = None
    scale: Floats | None = None
    impute: str | float | None = None
    fill: Floats | None = None
    name: ClassVar[str] = ""

    def __post_init__(self) -> None:
        if self.per not in ("query", "global"):
            raise DataError(f"per must be 'query' or 'global'; got {self.per!r}.")
        if self.impute is not None:
            check_impute(self.impute)

    def __repr__(self) -> str:
        fitted = "" if self.shift is None else f", fitted to {len(self.shift)} features"
        return f"{type(self).__name__}(per={self.per!r}{fitted})"

    def fit(self, data: Dataset | DatasetSequence) -> Self:
        """Return the transform with the statistics of the data.

        Parameters
        ----------
        data : Dataset or sequence of Dataset
            The training data, such as a dataset or `Shards`.

        Returns
        -------
        transform
            A fitted copy; this object itself if it scales per query and does not impute, which
            needs no statistics.

        Raises
        ------
        DataError
            If the features are sparse.
        """
        datasets: DatasetSequence = [data] if isinstance(data, Dataset) else data
        fitted = self
        if self.impute is not None:
            fitted = replace(self, fill=_fill_values(datasets, self.impute))
        if self.per == "query":
            return fitted
        blocks = lambda: _blocks(datasets, self.name, fitted.fill)  # noqa: E731
        with np.errstate(over="ignore", invalid="ignore"):
            shift, scale = self._global_statistics(blocks)
        shift = np.where(np.isnan(shift), 0.0, shift)  # of a feature without values
        return replace(fitted, shift=shift, scale=_divisors(scale))

    def apply(self, data: Dataset, out: Array | None = None) -> Dataset:
        """Return the data with scaled features.

        Parameters
        ----------
        data : Dataset
            Data with dense features.
        out : ndarray of shape (n_docs, n_features), optional
            Where to write the features.

        Returns
        -------
        Dataset
            Features of the same dtype.

        Raises
        ------
        DataError
            If the transform must be fitted first, was fitted to another number of features, or
            the features are sparse.
        """
        if data.categories:
            names = listed_features(data, data.categories)
            raise DataError(
                f"{data.source}: {names} holds categories, which {self.name} cannot change; leave "
                "normalize and impute out: trees need neither."
            )
        return data.with_features(
            self.transform(_dense_features(data, self.name), data.offsets, out), data.feature_names
        )

    def transform(self, X: Array, offsets: Ints, out: Array | None = None) -> Array:
        """Return the scaled features of documents grouped by query.

        Parameters
        ----------
        X : ndarray of shape (n_docs, n_features)
            Features.
        offsets : ndarray of shape (n_queries + 1,)
            Query `q` owns the rows `offsets[q]:offsets[q + 1]`.
        out : ndarray of shape (n_docs, n_features), optional
            Where to write the result.

        Returns
        -------
        ndarray of shape (n_docs, n_features)
            `out`, or a new array of the dtype of `X`.

        Raises
        ------
        DataError
            If the transform must be fitted first, or was fitted to another number of features.
        """
        out = np.empty(X.shape, X.dtype) if out is None else out
        if self.impute is not None and (self.fill is None or len(self.fill) != X.shape[1]):
            fitted = 0 if self.fill is None else len(self.fill)
            raise DataError(f"impute was fitted to {fitted} features; the data have {X.shape[1]}.")
        if self.per == "global":
            if self.shift is None or self.scale is None:
                raise DataError(
                    f"{self.name} over all documents must be fitted first: .fit(train)."
                )
            if len(self.shift) != X.shape[1]:
                raise DataError(
                    f"{self.name} was fitted to {len(self.shift)} features; the data have "
                    f"{X.shape[1]}."
                )
            for lo in range(0, len(X), BLOCK_ROWS):
                rows = _filled(X[lo : lo + BLOCK_ROWS], self.fill)
                out[lo : lo + BLOCK_ROWS] = (rows - self.shift) / self.scale
            return out
        for lo, hi in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            if hi > lo:
                rows = _filled(X[lo:hi].astype(np.float64), self.fill)
                with np.errstate(over="ignore", invalid="ignore"):
                    shift, scale = self._statistics(rows)
                divisors = _divisors(scale)
                out[lo:hi] = (rows - shift) / divisors
        return out

    def to_dict(self) -> dict[str, Any]:
        """Return the transform as JSON-serializable values.

        Returns
        -------
        dict
            What `transform_from_dict` reads.
        """
        stored: dict[str, Any] = {"transform": self.name, "per": self.per}
        if self.shift is not None and self.scale is not None:
            stored |= {"shift": self.shift.tolist(), "scale": self.scale.tolist()}
        if self.impute is not None and self.fill is not None:
            stored |= {"impute": self.impute, "fill": self.fill.tolist()}
        return stored

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def _global_statistics(self, blocks: Callable[[], Iterator[Floats]]) -> tuple[Floats, Floats]:
        """Return the shift and the scale of all rows; each call of `blocks` yields them again."""
        raise NotImplementedError

    def _statistics(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the shift and the scale of these rows."""
        raise NotImplementedError


class MinMax(_Scaling):
    """Scale features to [0, 1]; a constant feature becomes 0.

    Parameters
    ----------
    per : {"query", "global"}, default "query"
        Scale each query by its own statistics, or all documents by those of the training data.
    shift, scale : ndarray of shape (n_features,), optional
        Statistics of a fitted global transform; `fit` sets them.
    impute : {"median", "mean", "zero"} or float, optional
        Fill missing values before scaling; None leaves them missing.
    fill : ndarray of shape (n_features,), optional
        The values that fill; `fit` sets them.

    Raises
    ------
    DataError
        If `per` or `impute` is invalid.

    Examples
    --------
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays([[1.0], [3.0], [5.0]], [0, 1, 2], ["q", "q", "q"])
    >>> fp.MinMax().apply(data).X.ravel().tolist()
    [0.0, 0.5, 1.0]
    >>> fp.MinMax(per="global").fit(data)
    MinMax(per='global', fitted to 1 features)
    """

    name = "minmax"

    def _statistics(self, rows: Floats) -> tuple[Floats, Floats]:
        low, high = _quiet(np.fmin.reduce, rows), _quiet(np.fmax.reduce, rows)
        return low, high - low

    def _global_statistics(self, blocks: Callable[[], Iterator[Floats]]) -> tuple[Floats, Floats]:
        low, high = _extremes(blocks)
        return low, high - low


class Standardize(_Scaling):
    """Scale features to mean 0 and (population) standard deviation 1; a constant one becomes 0.

    Parameters
    ----------
    per : {"query", "global"}, default "query"
        Scale each query by its own statistics, or all documents by those of the training data.
    shift, scale : ndarray of shape (n_features,), optional
        Statistics of a fitted global transform; `fit` sets them.
    impute : {"median", "mean", "zero"} or float, optional
        Fill missing values before scaling; None leaves them missing.
    fill : ndarray of shape (n_features,), optional
        The values that fill; `fit` sets them.

    Raises
    ------
    DataError
        If `per` or `impute` is invalid.

    Examples
    --------
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays([[1.0], [3.0], [5.0]], [0, 1, 2], ["q", "q", "q"])
    >>> fp.Standardize().apply(data).X.ravel().round(3).tolist()
    [-1.225, 0.0, 1.225]
    """

    name = "standardize"

    def _statistics(self, rows: Floats) -> tuple[Floats, Floats]:
        count = np.maximum(np.count_nonzero(~np.isnan(rows), axis=0), 1)
        mean = np.nansum(rows, axis=0) / count
        deviation = np.sqrt(np.nansum((rows - mean) ** 2, axis=0) / count)
        return _exact_constants(lambda: iter((rows,)), mean, deviation)

    def _global_statistics(self, blocks: Callable[[], Iterator[Floats]]) -> tuple[Floats, Floats]:
        # Two passes: squares around the exact mean lose no digits.
        count, total, squares = np.array(0.0), np.array(0.0), np.array(0.0)
        for rows in blocks():
            count = count + np.count_nonzero(~np.isnan(rows), axis=0)
            total = total + np.nansum(rows, axis=0)
        count = np.maximum(count, 1)
        mean = total / count
        for rows in blocks():
            squares = squares + np.nansum((rows - mean) ** 2, axis=0)
        return _exact_constants(blocks, mean, np.sqrt(squares / count))


@dataclass(frozen=True, eq=False)
class Impute(_Scaling):
    """Fill missing values, and scale nothing.

    Parameters
    ----------
    impute : {"median", "mean", "zero"} or float, default "median"
        What fills a missing value: a statistic of the feature over the training documents that
        have it, 0, or a number.
    fill : ndarray of shape (n_features,), optional
        The values that fill; `fit` sets them.
    """

    per: Per = "global"
    impute: str | float | None = "median"
    name: ClassVar[str] = "impute"

    def _global_statistics(self, blocks: Callable[[], Iterator[Floats]]) -> tuple[Floats, Floats]:
        width = next(iter(blocks())).shape[1]
        return np.zeros(width), np.ones(width)


def _blocks(datasets: DatasetSequence, name: str, fill: Floats | None = None) -> Iterator[Floats]:
    """Yield all rows in blocks, in float64, with missing values filled."""
    for number in range(len(datasets)):
        X = _dense_features(datasets[number], name)
        for lo in range(0, max(len(X), 1), BLOCK_ROWS):
            yield _filled(X[lo : lo + BLOCK_ROWS].astype(np.float64), fill)


def _filled(rows: Array, fill: Floats | None) -> Array:
    return rows if fill is None else np.where(np.isnan(rows), fill, rows)


def _fill_values(datasets: DatasetSequence, impute: str | float) -> Floats:
    """Return the value that fills each feature."""
    first = datasets[0]
    _dense_features(first, "impute")
    width = first.n_features
    if not isinstance(impute, str):
        return np.full(width, float(impute))
    if impute == "zero":
        return np.zeros(width)
    if impute == "mean":
        count, total = np.zeros(width), np.zeros(width)
        for rows in _blocks(datasets, "impute"):
            count += np.count_nonzero(~np.isnan(rows), axis=0)
            total += np.nansum(rows, axis=0)
        fill = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    else:
        fill = _medians(datasets, width)
    if np.isnan(fill).any():
        column = int(np.argmax(np.isnan(fill)))
        where = f"{first.source}: {feature_name(first, column)}"
        raise DataError(NO_VALUES.format(where, impute))
    return fill


def _medians(datasets: DatasetSequence, width: int) -> Floats:
    """Return the median of the known values of each feature, some columns at a time."""
    documents = sum(datasets[number].n_docs for number in range(len(datasets)))
    step = max(1, MEDIAN_BYTES // (8 * max(documents, 1)))
    fill = np.full(width, np.nan)
    for lo in range(0, width, step):
        columns = np.concatenate([rows[:, lo : lo + step] for rows in _blocks(datasets, "impute")])
        for at in range(columns.shape[1]):
            known = columns[:, at][~np.isnan(columns[:, at])]
            if len(known):
                fill[lo + at] = np.median(known)
    return fill


TRANSFORMS: dict[str, type[_Scaling]] = {
    "minmax": MinMax,
    "standardize": Standardize,
    "impute": Impute,
}
Transform = MinMax | Standardize | Impute


def transform_from_dict(stored: dict[str, Any]) -> Transform:
    """Return the transform that `to_dict` wrote."""
    cls = lookup(str(stored.get("transform")), TRANSFORMS, "transform")
    statistics = {
        key: np.array(stored[key], np.float64)
        for key in ("shift", "scale", "fill")
        if key in stored
    }
    impute = stored.get("impute")
    return cls(per=stored.get("per", "query"), impute=impute, **statistics)  # type: ignore[return-value]


def _extremes(blocks: Callable[[], Iterator[Floats]]) -> tuple[Floats, Floats]:
    """Return the least and the greatest value per column; NaN for a column without values."""
    low, high = np.array(np.nan), np.array(np.nan)
    for rows in blocks():
        low = np.fmin(low, _quiet(np.fmin.reduce, rows))
        high = np.fmax(high, _quiet(np.fmax.reduce, rows))
    return low, high


def _exact_constants(
    blocks: Callable[[], Iterator[Floats]], mean: Floats, deviation: Floats
) -> tuple[Floats, Floats]:
    """Return both with deviation 0 for constant columns, whose mean was perhaps rounded."""
    doubtful = (deviation > 0) & (deviation < MAX_ROUNDING * np.abs(mean))
    if not doubtful.any():
        return mean, deviation
    low, high = _extremes(blocks)
    constant = low == high
    return np.where(constant, low, mean), np.where(constant, 0.0, deviation)


def _quiet(reduce: Any, rows: Floats) -> Floats:
    """Reduce over the rows without warnings about NaN."""
    with np.errstate(invalid="ignore"):
        reduced: Floats = reduce(rows, axis=0)
    return reduced


def _divisors(scale: Floats) -> Floats:
    """Return the divisors of features: a constant one, of scale 0, is only shifted."""
    check_scale(scale)
    return np.where(scale > 0, scale, 1.0)


def check_scale(scale: Floats) -> None:
    """Raise an error for a feature whose scale overflows."""
    if np.isinf(scale).any():
        column = int(np.argmax(np.isinf(scale)))
        raise DataError(
            f"the feature in column {column} (counted from 0) is so large that its range exceeds "
            "the largest number; divide it first."
        )


def _dense_features(data: Dataset, name: str) -> Array:
    if not isinstance(data.X, np.ndarray):
        raise DataError(
            f"{name} would make a sparse matrix dense; use data.dense() first, if it fits into "
            "memory."
        )
    return data.X
