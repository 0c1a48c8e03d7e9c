"""How much each ranker's vote weighs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.formats.trec import Column, Qrels, Run
from firstpage.data.groups import offsets_from_lengths, query_rows
from firstpage.data.joins import match_queries
from firstpage.errors import DataError, FirstpageWarning, MeasureError
from firstpage.measures.evaluate import evaluate
from firstpage.measures.registry import Named
from firstpage.measures.registry import measure as parse
from firstpage.types import Bools, Floats

SUM_TOLERANCE = 1e-12
AnyColumn = TypeVar("AnyColumn", bound=Column)


@dataclass(frozen=True, eq=False)
class MeasuredWeights:
    """Weights that sum to 1, and the means they are proportional to, over so many queries."""

    weights: Floats
    means: Floats
    measure: str
    queries: int


def normalize_weights(weights: Iterable[float] | None, rankers: int) -> Floats:
    """Weights that sum to 1; None, or nothing but zeros, weighs all alike."""
    if weights is None:
        return np.full(rankers, 1.0 / rankers)
    try:
        given = np.array(list(weights), np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"weights must be numbers, one a ranker ({error}).") from error
    if given.shape != (rankers,):
        raise DataError(f"there are {given.size} weights for {rankers} rankers; give one each.")
    if not np.isfinite(given).all() or (given < 0).any():
        bad = int(np.argmax(~(np.isfinite(given) & (given >= 0))))
        raise DataError(f"weight {bad + 1} must be a number from 0 on; got {given[bad]}.")
    largest = given.max()
    if (
        largest <= 1 and abs(given.sum() - 1) < SUM_TOLERANCE
    ):  # they are what this function gave before
        return given
    if largest == 0:
        warnings.warn(
            "every ranking has the weight 0; all weigh alike.", FirstpageWarning, stacklevel=3
        )
        return normalize_weights(None, rankers)
    given = given / largest  # so that even the greatest numbers can be added
    shares: Floats = given / given.sum()
    return shares


def supervised_weights(
    systems: Sequence[Any],
    truth: Any,
    measure: Named = "NDCG@10",
    **how: Any,
) -> MeasuredWeights:
    """Weights proportional to each system's mean of a measure on validation data.

    `systems` are runs with judgments (Qrels) as `truth`, or scores with a Dataset.  Of the
    judgments those queries count that at least one run has; a run without one of them gets 0 for
    it.  A mean below 0 weighs nothing.  `how` goes to `evaluate` (convention, ties, rel, ..).
    """
    value = parse(measure)
    if isinstance(systems, (str, Mapping)) or not isinstance(systems, Sequence) or not systems:
        raise DataError("weights are measured of a list of runs or scores, one a ranker.")
    if value.lower_is_better:
        raise MeasureError(f"{value} is better when lower; weights need a measure that rises.")
    if not isinstance(truth, Dataset):
        systems = [Run.from_dict(s) if isinstance(s, Mapping) else s for s in systems]
        truth = _shared(systems, Qrels.from_dict(truth) if isinstance(truth, Mapping) else truth)
        systems = [_restricted(s, match_queries(s.queries, truth.queries) >= 0) for s in systems]
    means = np.array([evaluate(s, truth, measures=[value], **how)[str(value)] for s in systems])
    return MeasuredWeights(
        normalize_weights(np.maximum(means, 0.0), len(means)),
        means,
        measure if isinstance(measure, str) else str(value),
        len(truth),
    )


def _shared(runs: Sequence[Any], qrels: Any) -> Column:
    """The judgments of the queries that some run has."""
    if not isinstance(qrels, Column) or not all(isinstance(run, Column) for run in runs):
        raise DataError(
            "weights are measured on runs with judgments (Qrels), or scores with a Dataset."
        )
    there = np.zeros(len(qrels), bool)
    for run in runs:
        there |= match_queries(qrels.queries, run.queries) >= 0
    if not there.any():
        raise DataError(
            f"the runs and {qrels.source or 'the judgments'} share no query, and weights are "
            "measured on the queries that both have: give judgments of these queries, or runs over "
            "the judged ones (valid=, --valid-run), one for each."
        )
    return _restricted(qrels, there)


def _restricted(column: AnyColumn, chosen: Bools) -> AnyColumn:
    """Return the chosen queries of a run or of judgments."""
    picked = np.flatnonzero(chosen)
    rows = query_rows(column.offsets, picked)
    lengths = np.diff(column.offsets)[picked]
    offsets = offsets_from_lengths(lengths)
    return replace(
        column, queries=column.queries[picked], offsets=offsets, docids=column.docids[rows],
        values=column.values[rows],
    )  # fmt: skip
