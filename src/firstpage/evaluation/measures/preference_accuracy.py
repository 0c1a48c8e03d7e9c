"""pair_accuracy(): how often a ranking agrees with votes on pairs of documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from firstpage.core import Bools, DataError, Floats, Table, Tabular, warn
from firstpage.core.kernels.losses import voted_agreement
from firstpage.data import Column, Dataset, Documents, Ids, Run, join_documents, match_queries
from firstpage.data.preferences import PreferencePairs, RowPairs
from firstpage.evaluation.measures.significance import BOOTSTRAP_ROUNDS, bootstrap

NAME = "PairAccuracy"


@dataclass(frozen=True, eq=False)
class PairAccuracyResult(Tabular):
    """The result of `fp.pair_accuracy`: the accuracy over all votes, and per query.

    As a data frame (`to_pandas`, `to_polars`) it has one row per query: its id, the accuracy, and
    the weight of its votes.

    Attributes
    ----------
    value : float
        The weight of the votes that the ranking agrees with, divided by the weight of all votes.
    queries : Ids
        The ids of the queries with votes that prefer a document.
    values : ndarray of shape (n_queries,)
        The accuracy of each query.
    weights : ndarray of shape (n_queries,)
        The weight of the votes of each query.
    interval : tuple of float or None
        The 95 % bootstrap interval of `value` over queries; None without ``ci=True``.
    name : str
        Name of the system.

    Examples
    --------
    >>> import firstpage as fp
    >>> pairs = fp.PreferencePairs.from_arrays(["q", "q"], ["a", "b"], ["b", "c"], weight=[3, 1])
    >>> accuracy = fp.pair_accuracy({"q": {"a": 2.0, "b": 1.0, "c": 1.0}}, pairs)
    >>> accuracy.value, accuracy.weights.tolist()
    (0.875, [4.0])
    """

    value: float
    queries: Ids
    values: Floats
    weights: Floats
    interval: tuple[float, float] | None = None
    name: str = ""

    def __float__(self) -> float:
        return self.value

    def to_dict(self) -> dict[str, Any]:
        """Return the accuracy, the numbers of queries and votes, and the interval.

        Returns
        -------
        dict
            The content of `firstpage evaluate --pairs --json`.
        """
        summary: dict[str, Any] = {
            "measures": {NAME: self.value},
            "queries": len(self.queries),
            "votes": float(self.weights.sum()),
        }
        if self.interval is not None:
            summary["ci"] = {NAME: list(self.interval)}
        return summary

    def __str__(self) -> str:
        ci = "" if self.interval is None else "  [{:.4f}, {:.4f}]".format(*self.interval)
        votes = f"{self.weights.sum():,g} votes of {len(self.queries):,} queries"
        return f"{votes}\n{NAME}  {self.value:.4f}{ci}"

    __repr__ = __str__

    def _frame_columns(self) -> dict[str, Any]:
        """Return the query ids, their accuracies and the weights of their votes."""
        names = [str(query) for query in self.queries]
        return {"query": names, NAME: self.values, "votes": self.weights}

    def summary_table(self) -> Table:
        """Return the accuracy, with its interval where it was computed."""
        head, row = ["measure", "mean"], [NAME, f"{self.value:.4f}"]
        if self.interval is not None:
            head.append("95 % interval")
            row.append("[{:.4f}, {:.4f}]".format(*self.interval))
        return Table(head, [row], str(self).partition("\n")[0])


def pair_accuracy(
    system: Any,
    pairs: PreferencePairs,
    data: Dataset | None = None,
    *,
    ci: bool = False,
    seed: int = 0,
    name: str = "",
) -> PairAccuracyResult:
    """Return how often a ranking agrees with votes on pairs of documents.

    A vote is agreed with if the preferred document has the greater score; equal scores count half.
    Votes count with their weights; votes that neither document is better do not count.  The
    accuracy is over all votes, so that queries with many votes count more.

    Documents that a run lacks are ranked below those that it has, and tie with each other.  Votes
    on documents that `data` lacks are left out.  A `FirstpageWarning` counts both.

    Parameters
    ----------
    system : array-like of float, Run or dict
        Scores, one per document of `data`; or, without `data`, a `Run` or
        {query: {document: score}}.
    pairs : PreferencePairs
        The votes, from `read_pairs`.  They should not be those that the ranking was trained on.
    data : Dataset, optional
        The documents that are scored, with document ids.
    ci : bool, default False
        Whether to compute a 95 % bootstrap confidence interval over queries.
    seed : int, default 0
        Seed of the bootstrap.
    name : str, optional
        Name of the system, used in warnings and reports.

    Returns
    -------
    PairAccuracyResult
        The accuracy over all votes, and per query.

    Raises
    ------
    DataError
        If no vote is on documents of the ranking, no vote prefers a document, or a score is NaN.

    Examples
    --------
    >>> import firstpage as fp
    >>> pairs = fp.PreferencePairs.from_arrays(["q", "q", "r"], list("abx"), list("bcy"))
    >>> data = fp.Dataset.from_arrays(
    ...     [[3.0], [1.0], [2.0], [1.0], [1.0]], [0] * 5, list("qqqrr"), list("abcxy")
    ... )
    >>> fp.pair_accuracy(data.X[:, 0], pairs, data)
    3 votes of 2 queries
    PairAccuracy  0.5000
    >>> fp.pair_accuracy({"q": {"a": 2, "b": 1, "c": 0}, "r": {"x": 1, "y": 0}}, pairs).value
    1.0
    """
    if not isinstance(pairs, PreferencePairs):
        raise DataError(
            f"pairs must be PreferencePairs (fp.read_pairs); got {type(pairs).__name__}."
        )
    if data is None:
        heights, counted = _heights_in_run(system, pairs, name)
    else:
        heights, counted = _heights_in_data(system, pairs, data)
    votes = RowPairs.from_votes(
        pairs.offsets,
        pairs.preferred[counted],
        pairs.other[counted],
        pairs.weight[counted],
        pairs.tied[counted],
    )
    agreed, total = np.empty((2, len(pairs.queries)))
    voted_agreement(
        scores=heights,
        offsets=pairs.offsets,
        pair_offsets=votes.offsets,
        left=votes.left,
        right=votes.right,
        left_weight=votes.left_weight,
        right_weight=votes.right_weight,
        agreed=agreed,
        total=total,
    )
    voted = total > 0
    if not voted.any():
        raise DataError(f"{pairs.source}: no vote of positive weight prefers a document.")
    agreed, total = agreed[voted], total[voted]
    interval = None
    if ci:
        interval = bootstrap(
            lambda w: (w @ agreed) / (w @ total), len(total), BOOTSTRAP_ROUNDS, seed
        )
    value = float(agreed.sum() / total.sum())
    return PairAccuracyResult(
        value, pairs.queries[np.flatnonzero(voted)], agreed / total, total, interval, name
    )


def _heights_in_run(system: Any, pairs: PreferencePairs, name: str) -> tuple[Floats, Bools]:
    """Return numbers that order the documents of the pairs as a run does, and the votes to count.

    A number is 0 for documents that the run lacks.
    """
    run = Run.from_dict(system) if isinstance(system, Mapping) else system
    if not isinstance(run, Column):
        raise DataError(
            "without data, pairs go with a run: a Run, or {query: {document: score}}; got "
            f"{type(system).__name__}. Plain scores go with data=, a Dataset with document ids."
        )
    partner = match_queries(pairs.queries, run.queries)
    rows = join_documents(cast("Documents", pairs), cast("Documents", run), partner)
    ranked = rows >= 0
    missing = ~ranked[pairs.preferred] | ~ranked[pairs.other]
    label = name or run.source or run.name or "the run"
    if not ranked.any():
        raise DataError(f"{pairs.source}: none of its documents is in {label}.")
    if missing.any():
        warn(
            f"{label}: {int(missing.sum()):,} of {len(pairs):,} votes of {pairs.source} are on "
            "documents that it lacks, which are ranked last."
        )
    heights = np.zeros(len(rows))
    heights[ranked] = 1.0 + np.unique(run.values[rows[ranked]], return_inverse=True)[1]
    return heights, np.ones(len(pairs), bool)


def _heights_in_data(system: Any, pairs: PreferencePairs, data: Dataset) -> tuple[Floats, Bools]:
    """Return numbers that order the documents of the pairs by their scores, and the votes to count:
    those on documents of the data."""
    try:
        scores = np.asarray(system, np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"with data, the system is an array of scores; got {type(system).__name__}."
        ) from None
    if scores.shape != (data.n_docs,):
        raise DataError(f"there are {scores.size:,} scores for {data.n_docs:,} documents of data.")
    if np.isnan(scores).any():
        raise DataError(f"the score of row {int(np.argmax(np.isnan(scores))) + 1} is NaN.")
    heights = np.zeros(len(pairs.docids))
    preferred, other = pairs.rows_in(data)
    counted = (preferred >= 0) & (other >= 0)
    note = pairs.unmatched(counted, [data.source])
    if note is not None:
        warn(note)
    order = np.unique(scores, return_inverse=True)[1]
    for documents, rows in ((pairs.preferred, preferred), (pairs.other, other)):
        heights[documents[counted]] = order[rows[counted]]
    return heights, counted
