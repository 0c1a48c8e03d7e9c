"""Sample size: how many queries and judgments a comparison needs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats, MeasureError, Table, Tabular, warn
from firstpage.data import Column, Run, sort_groups
from firstpage.evaluation.comparison.compare_systems import compare
from firstpage.evaluation.comparison.comparison import Comparison
from firstpage.evaluation.measures.convention import Convention
from firstpage.evaluation.measures.registry import MeasureLike
from firstpage.evaluation.measures.significance import (
    MIN_VARYING,
    count_varying,
    mean_pseudo_values,
    paired_differences,
)
from firstpage.evaluation.measures.sources import as_column, named_systems
from firstpage.evaluation.planning.power import check_probability, power_of_shift, required_queries

CAREFUL = 0.8  # confidence of the upper limit of the standard deviation
DEFAULT_DIFFERENCES = (0.005, 0.01, 0.02, 0.05)
DEFAULT_DEPTH = 10


@dataclass(frozen=True)
class PlanRow:
    """The queries that one difference takes.

    Attributes
    ----------
    measure : str
        Text of the measure.
    difference : float
        True difference of the means that the test should detect.
    deviation : float
        Standard deviation of the differences per query.
    correlation : float
        Correlation of the two systems over the queries.
    queries : int
        Number of queries that give the power.
    careful_queries : int or None
        The same for the upper limit (confidence 80 %) of the deviation that few pilot queries
        leave open; None where the deviation is given.
    power_now : float or None
        Power with the pilot queries themselves.
    judgments : int or None
        Judgments for `queries` queries, at the pool size of the runs.
    """

    measure: str
    difference: float
    deviation: float
    correlation: float
    queries: int
    careful_queries: int | None
    power_now: float | None
    judgments: int | None


@dataclass(frozen=True)
class Plan(Tabular):
    """The result of `fp.planning.plan`: queries and judgments by difference.

    Attributes
    ----------
    rows : tuple of PlanRow
        One per measure and difference.
    power, alpha : float
        Power and level of the two-sided test.
    comparisons : int
        Number of comparisons that share the level.
    pilot : int or None
        Number of pilot queries.
    pool_size : float or None
        Mean number of different documents in the first `depth` ranks of the runs.
    depth : int
        Depth of the pool.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.planning.plan(differences=[0.02], deviation=0.2, correlation=0.8).rows[0].queries
    316
    """

    rows: tuple[PlanRow, ...]
    power: float
    alpha: float
    comparisons: int
    pilot: int | None
    pool_size: float | None
    depth: int

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as a dictionary.

        Returns
        -------
        dict
            The content of `firstpage plan --json`.
        """
        settings = {name: value for name, value in vars(self).items() if name != "rows"}
        return {**settings, "rows": [dict(vars(row)) for row in self.rows]}

    def _frame_columns(self) -> dict[str, Any]:
        names = list(PlanRow.__dataclass_fields__)
        return {name: [getattr(row, name) for row in self.rows] for name in names}

    def summary_table(self) -> Table:
        head = ["measure", "difference", "deviation", "correlation", "queries"]
        optional = {
            "careful": "careful_queries",
            "power now": "power_now",
            "judgments": "judgments",
        }
        shown = {
            title: name
            for title, name in optional.items()
            if any(getattr(row, name) is not None for row in self.rows)
        }
        rows = [
            [
                row.measure,
                f"{row.difference:g}",
                f"{row.deviation:.4f}",
                f"{row.correlation:.2f}",
                f"{row.queries:,}",
                *(_cell(getattr(row, name)) for name in shown.values()),
            ]
            for row in self.rows
        ]
        shared = f", {self.comparisons} comparisons (Bonferroni)" if self.comparisons > 1 else ""
        title = f"power {self.power:g}, two-sided paired t-test, alpha {self.alpha:g}{shared}"
        note = ""
        if self.pilot is not None:
            note = (
                f"deviation and correlation from {self.pilot:,} queries; careful: queries if the "
                "deviation is at its upper limit (confidence 80 %)"
            )
        if self.pool_size is not None:
            note += f"; {self.pool_size:.1f} documents per query in the pool of depth {self.depth}"
        return Table([*head, *shown], rows, title, note)

    def __str__(self) -> str:
        return self.summary_table().text()

    __repr__ = __str__


def plan(
    systems: Mapping[str, Any] | Iterable[Any] | None = None,
    truth: Any = None,
    *,
    measures: MeasureLike | Iterable[MeasureLike] = "NDCG@10",
    differences: Sequence[float] = DEFAULT_DIFFERENCES,
    deviation: float | None = None,
    correlation: float = 0.0,
    power: float = 0.8,
    alpha: float = 0.05,
    comparisons: int = 1,
    depth: int = DEFAULT_DEPTH,
    qid: Any = None,
    docid: Any = None,
    convention: str | Convention = "default",
    k: int | None = None,
    weights: Mapping[str, float] | None = None,
) -> Plan:
    """Return how many queries, and judgments, a comparison of two systems needs.

    The standard deviation of the differences per query decides.  It is estimated from two or more
    systems on pilot queries (the pair that differs most counts, which is the careful choice), or
    computed from the deviation of one system's values and the correlation of two systems.

    Parameters
    ----------
    systems : dict, iterable or str, optional
        Two or more systems on pilot queries, as in `compare`.
    truth : optional
        Judgments of the pilot queries, as in `compare`.
    measures : str, Measure or iterable of these, default "NDCG@10"
        Measures to plan for.
    differences : sequence of float
        True differences of the means that should be detected.
    deviation : float, optional
        Standard deviation of one system's values over queries, where there are no systems.
    correlation : float, default 0.0
        Correlation of the values of the two systems over queries, where there are no systems.
    power : float, default 0.8
        Probability that the difference is found.
    alpha : float, default 0.05
        Level of the two-sided paired t-test.
    comparisons : int, default 1
        Number of comparisons among which the level is divided (Bonferroni).
    depth : int, default 10
        Depth of the pool: judgments are counted for the first `depth` documents of every run.
    qid, docid : array-like, optional
        Query id and document id of each document, where the systems are plain arrays.
    convention : str or Convention, default "default"
        How rankings and judgments are interpreted.
    k : int, optional
        Depth of a top-k truth into which graded labels are converted first.
    weights : dict of str to float, optional
        Weight of each query in the means and tests, by query id.

    Returns
    -------
    Plan
        One row per measure and difference.

    Raises
    ------
    DataError
        If there are neither two systems nor a deviation.
    MeasureError
        If a probability or a difference is not valid.

    References
    ----------
    Sakai, Statistical Reform in Information Retrieval?, SIGIR Forum 2014 (power and sample sizes).

    Examples
    --------
    >>> import firstpage as fp
    >>> print(fp.planning.plan(differences=[0.05], deviation=0.3, correlation=0.5))
    power 0.8, two-sided paired t-test, alpha 0.05
    measure  difference  deviation  correlation  queries
    ───────  ──────────  ─────────  ───────────  ───────
    NDCG@10  0.05           0.3000         0.50      285
    """
    check_probability("power", power)
    check_probability("alpha", alpha)
    if comparisons < 1:
        raise MeasureError(f"comparisons must be at least 1; got {comparisons}.")
    level = alpha / comparisons
    if systems is None:
        if deviation is None or not deviation > 0 or not -1 <= correlation < 1:
            raise DataError(
                "give two systems with judgments, or a positive deviation of a system's values "
                "with a correlation from -1 to below 1."
            )
        spread = deviation * math.sqrt(2 * (1 - correlation))
        text = str(measures)
        rows = [
            PlanRow(
                text,
                d,
                spread,
                correlation,
                required_queries(d, spread, level, power),
                None,
                None,
                None,
            )
            for d in differences
        ]
        return Plan(tuple(rows), power, alpha, comparisons, None, None, depth)
    if truth is None:
        raise DataError("the systems need judgments: plan(systems, truth).")
    if deviation is not None:
        raise DataError("the systems give the deviation; leave out deviation=.")
    named = named_systems(systems)
    comparison = compare(
        named,
        truth,
        qid=qid,
        docid=docid,
        measures=measures,
        convention=convention,
        k=k,
        ci=False,
        weights=weights,
    )
    pool_size = pool_documents(list(named.values()), depth)
    rows = [
        row
        for text in comparison.texts
        for row in _planned_rows(comparison, text, differences, level, power, pool_size)
    ]
    return Plan(tuple(rows), power, alpha, comparisons, len(comparison.queries), pool_size, depth)


def _planned_rows(
    comparison: Comparison,
    text: str,
    differences: Sequence[float],
    level: float,
    power: float,
    pool_size: float | None,
) -> list[PlanRow]:
    """Return a row per difference, for the pair of systems with the largest deviation."""
    values = comparison.values(text)
    queries = values.shape[1]
    if queries < 3:
        raise DataError(f"{queries} pilot queries are too few; a plan needs at least 3.")
    pairs = [(a, b) for a in range(len(values)) for b in range(a)]
    differences_of = [paired_differences(values[a], values[b]) for a, b in pairs]
    weights = comparison.weights
    deviations = [float(mean_pseudo_values(d, weights).std(ddof=1)) for d in differences_of]
    deviation, largest = max(deviations), int(np.argmax(deviations))
    a, b = pairs[largest]
    varying = count_varying(differences_of[largest])
    if not varying:
        raise DataError(f"the differences in {text} are the same on all pilot queries.")
    if varying < MIN_VARYING:
        warn(
            f"the differences in {text} vary on {varying} of {queries} pilot queries; below "
            f"{MIN_VARYING} their deviation is unreliable, also where the plan is careful."
        )
    upper = upper_deviation(deviation, queries)
    rows = []
    for difference in differences:
        needed = required_queries(difference, deviation, level, power)
        shift = difference / deviation * math.sqrt(queries)
        rows.append(
            PlanRow(
                text,
                difference,
                deviation,
                _correlation(values[a], values[b], weights),
                needed,
                required_queries(difference, upper, level, power),
                power_of_shift(shift, queries, level),
                None if pool_size is None else math.ceil(needed * pool_size),
            )
        )
    return rows


def upper_deviation(deviation: float, queries: int, confidence: float = CAREFUL) -> float:
    """Return the upper confidence limit of a standard deviation, for normal differences."""
    from scipy.special import chdtri  # of the upper tail

    return deviation * math.sqrt((queries - 1) / float(chdtri(queries - 1, confidence)))


def _correlation(a: Floats, b: Floats, weights: Floats | None) -> float:
    covariance = np.cov(a, b, aweights=weights)
    scale = math.sqrt(covariance[0, 0] * covariance[1, 1])
    return float(covariance[0, 1] / scale) if scale > 0 else 0.0


def pool_documents(systems: Sequence[Any], depth: int) -> float | None:
    """Return the mean number of different documents in the first ranks of runs; None for scores.

    Dictionaries and data frames count as runs.  Ties are cut in the order of the input.
    """
    if not all(isinstance(s, (Column, Mapping)) or hasattr(type(s), "columns") for s in systems):
        return None
    runs = [as_column(s, Run) for s in systems]
    pools: dict[str, set[int]] = {}
    for run in runs:
        order = sort_groups(run.values, run.offsets)[0]
        hashes = run.docids.hashes[order]
        for q, query in enumerate(run.queries):
            lo, hi = int(run.offsets[q]), int(run.offsets[q + 1])
            pools.setdefault(query, set()).update(hashes[lo : min(hi, lo + depth)].tolist())
    return float(np.mean([len(pool) for pool in pools.values()]))


def _cell(value: float | int | None) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.2f}"
