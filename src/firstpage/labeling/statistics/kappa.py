"""Agreement of any number of assessors: Fleiss' kappa and Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.labeling.statistics.intervals import Interval, bootstrap
from firstpage.labeling.statistics.records import Labels, Results
from firstpage.labeling.statistics.relations import common_documents, relations

Metric = Literal["nominal", "ordinal", "interval"]
MAX_VALUES = 200  # distinct values, since the coincidences of values are stored per unit


@dataclass(frozen=True, eq=False)
class Ratings:
    """How many assessors gave each value to each unit.

    Parameters
    ----------
    values : array of shape (n_values,)
        The distinct values, ascending.
    counts : array of shape (n_units, n_values)
        Number of assessors per unit and value.
    groups : array of int of shape (n_units,)
        The query of each unit, numbered from 0; bootstrap intervals draw whole queries.
    weight : float, default 1.0
        Weight of every unit.

    Examples
    --------
    >>> from firstpage.labeling.statistics.kappa import Ratings, fleiss_kappa
    >>> ratings = Ratings.from_matrix([[1, 1], [0, 0], [1, 0], [0, 0]])  # units x assessors
    >>> round(fleiss_kappa(ratings).value, 3)
    0.467
    """

    values: Floats
    counts: Floats
    groups: Ints
    weight: float = 1.0

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, groups: ArrayLike | None = None) -> Ratings:
        """Return the ratings of a matrix."""
        table = np.asarray(matrix, np.float64)
        if table.ndim != 2:
            raise DataError(f"ratings must be units x assessors; got {table.ndim} dimensions.")
        unit, assessor = np.nonzero(~np.isnan(table))
        names = np.arange(len(table)) if groups is None else np.asarray(groups)
        if len(names) != len(table):
            raise DataError(
                f"groups must have one entry for each of the {len(table)} units; got {len(names)}."
            )
        return cls._count(unit, table[unit, assessor], names)

    @classmethod
    def from_units(cls, units: Iterable[tuple[str, Iterable[float]]]) -> Ratings:
        """Return the ratings of units."""
        names: list[str] = []
        unit: list[int] = []
        value: list[float] = []
        for query, ratings in units:
            values = list(ratings)
            value += values
            unit += [len(names)] * len(values)
            names.append(query)
        return cls._count(np.array(unit, np.int64), np.array(value, np.float64), np.array(names))

    @classmethod
    def _count(cls, unit: Ints, value: Floats, groups: Array) -> Ratings:
        values, column = np.unique(value, return_inverse=True)
        counts = np.zeros((len(groups), len(values)))
        np.add.at(counts, (unit, column), 1.0)
        number = np.unique(groups, return_inverse=True)[1] if len(groups) else np.zeros(0)
        return cls(values, counts, number.astype(np.int64))

    def paired(self) -> Ratings:
        """Return the units that two or more assessors judged; agreement needs two."""
        rows = self.counts.sum(axis=1) > 1
        groups = np.unique(self.groups[rows], return_inverse=True)[1].astype(np.int64)
        return replace(self, counts=self.counts[rows], groups=groups)

    def symmetrized(self) -> Ratings:
        """Return relations +1, 0, -1 of pairs in both orientations, half a unit each.

        Otherwise expected agreement would depend on the names of documents, by which pairs are
        oriented: where names go from best to worst, everybody always says +1.
        """
        values = np.union1d(self.values, -self.values)
        counts = np.zeros((len(self.counts), len(values)))
        counts[:, np.searchsorted(values, self.values)] = self.counts
        counts, groups = np.concatenate([counts, counts[:, ::-1]]), np.tile(self.groups, 2)
        return Ratings(values, counts, groups, self.weight / 2)

    @property
    def queries(self) -> int:
        """The number of queries."""
        return int(self.groups.max()) + 1 if len(self.groups) else 0

    def sum_by_query(self, rows: Floats) -> Floats:
        """Return the weighted sums of rows per unit, by query."""
        sums = np.zeros((self.queries, *rows.shape[1:]))
        np.add.at(sums, self.groups, rows)
        return self.weight * sums


def fleiss_kappa(
    ratings: Ratings, *, rounds: int = 2000, seed: int = 0, level: float = 0.95
) -> Interval:
    """Return Fleiss' kappa with a bootstrap interval over queries.

    Kappa is (P - Pe) / (1 - Pe): P is the mean over units of the fraction of agreeing pairs of
    assessors, Pe the sum of squared fractions of the values. Units may have different numbers of
    assessors; units with one assessor are left out.

    Parameters
    ----------
    ratings : Ratings
        The ratings.
    rounds : int, default 2000
        Number of bootstrap samples.
    seed : int, default 0
        Seed of the bootstrap.
    level : float, default 0.95
        Confidence level.

    Returns
    -------
    Interval
        Kappa and its interval; NaN where all ratings are equal.

    References
    ----------
    J. L. Fleiss (1971). Measuring Nominal Scale Agreement among Many Raters. Psychological
    Bulletin 76(5).

    Examples
    --------
    >>> from firstpage.labeling.statistics.kappa import Ratings, fleiss_kappa
    >>> round(fleiss_kappa(Ratings.from_matrix([[1, 1], [0, 0], [1, 0], [0, 0]])).value, 3)
    0.467
    """
    known = ratings.paired()
    n = known.counts.sum(axis=1)
    agreeing = (known.counts * (known.counts - 1)).sum(axis=1) / (n * (n - 1))
    agreement = known.sum_by_query(np.stack([agreeing, np.ones_like(n)], axis=1))
    totals = known.sum_by_query(known.counts)

    def statistic(weights: Floats) -> Floats:
        observed, values = weights @ agreement, weights @ totals
        fractions = values / values.sum(axis=1, keepdims=True)
        expected = (fractions**2).sum(axis=1)
        return _one_minus_ratio(1 - observed[:, 0] / observed[:, 1], 1 - expected)

    return bootstrap(statistic, known.queries, rounds, seed, level)


def krippendorff_alpha(
    ratings: Ratings,
    metric: Metric = "nominal",
    *,
    rounds: int = 2000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return Krippendorff's alpha with a bootstrap interval over queries.

    Alpha is 1 - observed / expected disagreement, from the coincidences of values within units.
    Any number of assessors per unit is allowed.

    Parameters
    ----------
    ratings : Ratings
        The ratings.
    metric : {"nominal", "ordinal", "interval"}, default "nominal"
        Squared distance of two values: 0 or 1 (nominal), that of their mid-ranks (ordinal), or
        that of the values (interval).
    rounds : int, default 2000
        Number of bootstrap samples.
    seed : int, default 0
        Seed of the bootstrap.
    level : float, default 0.95
        Confidence level.

    Returns
    -------
    Interval
        Alpha and its interval; NaN where all values are equal.

    Raises
    ------
    DataError
        If the metric is unknown or there are more than 200 distinct values.

    References
    ----------
    K. Krippendorff (2004). Content Analysis: An Introduction to Its Methodology, chapter 11.

    Examples
    --------
    >>> from firstpage.labeling.statistics.kappa import Ratings, krippendorff_alpha
    >>> ratings = Ratings.from_matrix([[1, 1], [0, 0], [1, 0], [0, 0]])
    >>> round(krippendorff_alpha(ratings).value, 3)
    0.533
    """
    if metric not in ("nominal", "ordinal", "interval"):
        raise DataError(f"metric must be nominal, ordinal or interval; got {metric!r}.")
    if len(ratings.values) > MAX_VALUES:
        raise DataError(
            f"alpha compares every two values and allows at most {MAX_VALUES}; got "
            f"{len(ratings.values)}. Round the labels."
        )
    known = ratings.paired()
    n = known.counts
    within = n[:, :, None] * n[:, None, :] - n[:, :, None] * np.eye(n.shape[1])
    coincidences = known.sum_by_query(within / (n.sum(axis=1) - 1)[:, None, None])

    def statistic(weights: Floats) -> Floats:
        matrix = np.tensordot(weights, coincidences, 1)
        per_value = matrix.sum(axis=2)
        total = per_value.sum(axis=1)
        distance = _distances(metric, known.values, per_value)
        observed = (matrix * distance).sum(axis=(1, 2)) * (total - 1)
        expected = (per_value[:, :, None] * per_value[:, None, :] * distance).sum(axis=(1, 2))
        return _one_minus_ratio(observed, expected)

    return bootstrap(statistic, known.queries, rounds, seed, level)


def _distances(metric: Metric, values: Floats, per_value: Floats) -> Floats:
    """Return the squared distances of values: rounds x values x values."""
    if metric == "nominal":
        nominal: Floats = np.broadcast_to(1 - np.eye(len(values)), (1, len(values), len(values)))
        return nominal
    position = values[None] if metric == "interval" else np.cumsum(per_value, 1) - per_value / 2
    return (position[:, :, None] - position[:, None, :]) ** 2


def _one_minus_ratio(numerator: Floats, denominator: Floats) -> Floats:
    """Return 1 - numerator / denominator; NaN where the denominator is 0."""
    positive = denominator > 1e-12
    ratio = np.divide(numerator, denominator, out=np.full_like(numerator, np.nan), where=positive)
    return 1 - ratio


def relation_ratings(results: Results, tool: str) -> Ratings:
    """Return final labels as ratings: a unit is a pair of documents that all assessors labeled."""
    by_query: dict[str, list[Labels]] = {}
    for (query, _, used), labels in results.items():
        if used == tool:
            by_query.setdefault(query, []).append(labels)
    tables = [
        np.stack([relations(labels, common_documents(*group)) for labels in group])
        for group in by_query.values()
    ]
    if not tables:
        return Ratings.from_units([]).symmetrized()
    sizes = [table.shape[1] for table in tables]
    starts = np.cumsum([0, *sizes])
    unit = [
        np.tile(np.arange(n), len(table)) + start
        for table, n, start in zip(tables, sizes, starts, strict=False)
    ]
    value = np.concatenate([table.ravel() for table in tables]).astype(np.float64)
    groups = np.repeat(np.arange(len(tables)), sizes)
    return Ratings._count(np.concatenate(unit), value, groups).symmetrized()
