"""Agreement of any number of assessors, with gaps: Fleiss's kappa and Krippendorff's alpha."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from firstpage.errors import DataError
from firstpage.labeling.statistics.intervals import Interval, bootstrap
from firstpage.labeling.statistics.records import Labels, Results
from firstpage.labeling.statistics.relations import common, relations
from firstpage.types import Array, Floats, Ints

Level = Literal["nominal", "ordinal", "interval"]
MOST = 200  # different values, whose coincidences are held for every unit


@dataclass(frozen=True, eq=False)
class Ratings:
    """How many assessors gave each value (columns, ascending) to each unit (rows).

    `groups` numbers the query of each unit from 0 on; intervals draw whole queries.  `weight`
    is what a unit counts.
    """

    values: Floats
    counts: Floats
    groups: Ints
    weight: float = 1.0

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, groups: ArrayLike | None = None) -> Ratings:
        """From units x assessors, NaN where somebody did not judge; each unit its own group."""
        table = np.asarray(matrix, np.float64)
        if table.ndim != 2:
            raise DataError(f"ratings must be units x assessors; got {table.ndim} dimensions.")
        unit, who = np.nonzero(~np.isnan(table))
        given = np.arange(len(table)) if groups is None else np.asarray(groups)
        if len(given) != len(table):
            raise DataError(
                f"groups must name one of each of {len(table)} units; got {len(given)}."
            )
        return cls._counted(unit, table[unit, who], given)

    @classmethod
    def from_units(cls, units: Iterable[tuple[str, Iterable[float]]]) -> Ratings:
        """From (query, the values that one of its units got)."""
        names: list[str] = []
        unit: list[int] = []
        value: list[float] = []
        for query, given in units:
            found = list(given)
            value += found
            unit += [len(names)] * len(found)
            names.append(query)
        return cls._counted(np.array(unit, np.int64), np.array(value, np.float64), np.array(names))

    @classmethod
    def _counted(cls, unit: Ints, value: Floats, groups: Array) -> Ratings:
        values, column = np.unique(value, return_inverse=True)
        counts = np.zeros((len(groups), len(values)))
        np.add.at(counts, (unit, column), 1.0)
        number = np.unique(groups, return_inverse=True)[1] if len(groups) else np.zeros(0)
        return cls(values, counts, number.astype(np.int64))

    def paired(self) -> Ratings:
        """The units that two or more assessors judged; only they can tell of agreement."""
        kept = self.counts.sum(axis=1) > 1
        groups = np.unique(self.groups[kept], return_inverse=True)[1].astype(np.int64)
        return replace(self, counts=self.counts[kept], groups=groups)

    def both_ways(self) -> Ratings:
        """Relations +1, 0, -1 of pairs seen from either document, half a unit each.

        Else the names of documents, by which pairs are written down, would bear on chance: where
        names go from best to worst, everybody always says +1.
        """
        values = np.union1d(self.values, -self.values)
        counts = np.zeros((len(self.counts), len(values)))
        counts[:, np.searchsorted(values, self.values)] = self.counts
        counts, groups = np.concatenate([counts, counts[:, ::-1]]), np.tile(self.groups, 2)
        return Ratings(values, counts, groups, self.weight / 2)

    @property
    def queries(self) -> int:
        return int(self.groups.max()) + 1 if len(self.groups) else 0

    def summed(self, rows: Floats) -> Floats:
        """Sums of unit rows by query."""
        found = np.zeros((self.queries, *rows.shape[1:]))
        np.add.at(found, self.groups, rows)
        return self.weight * found


def fleiss_kappa(
    ratings: Ratings, *, rounds: int = 2000, seed: int = 0, level: float = 0.95
) -> Interval:
    """(P - Pe) / (1 - Pe): agreeing couples of assessors against chance (Fleiss 1971).

    P is the mean over units of the share of agreeing couples, Pe the sum of squared shares of
    the values.  Units may have different numbers of assessors; those with one are left out.
    NaN where all gave the same value everywhere.
    """
    known = ratings.paired()
    n = known.counts.sum(axis=1)
    agreeing = (known.counts * (known.counts - 1)).sum(axis=1) / (n * (n - 1))
    share = known.summed(np.stack([agreeing, np.ones_like(n)], axis=1))
    totals = known.summed(known.counts)

    def statistic(weights: Floats) -> Floats:
        drawn, values = weights @ share, weights @ totals
        shares = values / values.sum(axis=1, keepdims=True)
        chance = (shares**2).sum(axis=1)
        return _one_minus(1 - drawn[:, 0] / drawn[:, 1], 1 - chance)

    return bootstrap(statistic, known.queries, rounds, seed, level)


def krippendorff_alpha(
    ratings: Ratings, metric: Level = "nominal", *,
    rounds: int = 2000, seed: int = 0, level: float = 0.95,
) -> Interval:  # fmt: skip
    """1 - observed / expected disagreement, any number of assessors, gaps allowed.

    Krippendorff 2004, chapter 11: coincidences of values within units, and the squared
    distance of values: 0 or 1 (nominal), of their middle ranks (ordinal), of the values
    themselves (interval).  NaN where all values are the same.
    """
    if metric not in ("nominal", "ordinal", "interval"):
        raise DataError(f"metric must be nominal, ordinal or interval; got {metric!r}.")
    if len(ratings.values) > MOST:
        raise DataError(
            f"alpha compares every two values, at most {MOST} of them; got "
            f"{len(ratings.values)}. Round the labels."
        )
    known = ratings.paired()
    n = known.counts
    inside = n[:, :, None] * n[:, None, :] - n[:, :, None] * np.eye(n.shape[1])
    together = known.summed(inside / (n.sum(axis=1) - 1)[:, None, None])

    def statistic(weights: Floats) -> Floats:
        met = np.tensordot(weights, together, 1)
        per_value = met.sum(axis=2)
        all_ = per_value.sum(axis=1)
        far = _distances(metric, known.values, per_value)
        observed = (met * far).sum(axis=(1, 2)) * (all_ - 1)
        expected = (per_value[:, :, None] * per_value[:, None, :] * far).sum(axis=(1, 2))
        return _one_minus(observed, expected)

    return bootstrap(statistic, known.queries, rounds, seed, level)


def _distances(metric: Level, values: Floats, per_value: Floats) -> Floats:
    """Squared distances of values: rounds x values x values."""
    if metric == "nominal":
        found: Floats = np.broadcast_to(1 - np.eye(len(values)), (1, len(values), len(values)))
        return found
    place = values[None] if metric == "interval" else np.cumsum(per_value, 1) - per_value / 2
    return (place[:, :, None] - place[:, None, :]) ** 2


def _one_minus(over: Floats, under: Floats) -> Floats:
    """1 - over/under, NaN where nothing is below."""
    fine = under > 1e-12
    share = np.divide(over, under, out=np.full_like(over, np.nan), where=fine)
    return 1 - share


def relation_ratings(results: Results, tool: str) -> Ratings:
    """Final labels as preferences: a unit is a pair of documents that all labeled, both ways."""
    people: dict[str, list[Labels]] = {}
    for (query, _, used), labels in results.items():
        if used == tool:
            people.setdefault(query, []).append(labels)
    found = [np.stack([relations(x, common(*all_)) for x in all_]) for all_ in people.values()]
    if not found:
        return Ratings.from_units([]).both_ways()
    sizes = [table.shape[1] for table in found]
    starts = np.cumsum([0, *sizes])
    unit = [
        np.tile(np.arange(n), len(table)) + start
        for table, n, start in zip(found, sizes, starts, strict=False)
    ]
    value = np.concatenate([table.ravel() for table in found]).astype(np.float64)
    groups = np.repeat(np.arange(len(found)), sizes)
    return Ratings._counted(np.concatenate(unit), value, groups).both_ways()
