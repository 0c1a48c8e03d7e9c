"""Weights of the rankers' votes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import Advice, DataError, Floats, MeasureError, warn
from firstpage.data import Column, Dataset, Qrels, Run, match_queries
from firstpage.evaluation.measures.convention import Convention
from firstpage.evaluation.measures.evaluate_systems import EvaluationRequest
from firstpage.evaluation.measures.registry import MeasureLike
from firstpage.evaluation.measures.registry import measure as parse

SUM_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False)
class MeasuredWeights:
    """Weights proportional to each ranker's mean of a measure.

    Attributes
    ----------
    weights : ndarray of shape (n_rankers,)
        The weights, which sum to 1.
    means : ndarray of shape (n_rankers,)
        The means of the measure.
    measure : str
        The measure.
    queries : int
        The number of queries that the means are taken over.
    """

    weights: Floats
    means: Floats
    measure: str
    queries: int


def normalize_weights(weights: Iterable[float] | None, n_rankers: int) -> Floats:
    """Return weights scaled to sum to 1; None and all zeros give equal weights."""
    if weights is None:
        return np.full(n_rankers, 1.0 / max(n_rankers, 1))
    try:
        values = np.array(list(weights), np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"weights must be numbers, one per ranker ({error}).") from error
    if values.shape != (n_rankers,):
        raise DataError(f"there are {values.size} weights for {n_rankers} rankers; give one each.")
    if not np.isfinite(values).all() or (values < 0).any():
        bad = int(np.argmax(~(np.isfinite(values) & (values >= 0))))
        raise DataError(
            f"weight {bad + 1} must be a finite number of at least 0; got {values[bad]}."
        )
    largest = values.max()
    if largest <= 1 and abs(math.fsum(values) - 1) < SUM_TOLERANCE:  # normalized already
        return values
    if largest == 0:
        warn("every ranker has the weight 0; all are weighted equally.")
        return normalize_weights(None, n_rankers)
    values = values / largest  # so that the sum of huge weights does not overflow
    normalized: Floats = values / math.fsum(values)  # which no order of the weights changes
    return normalized


def supervised_weights(
    systems: Sequence[Any],
    truth: Any,
    measure: MeasureLike = "NDCG@10",
    convention: str | Convention = "default",
) -> MeasuredWeights:
    """Return weights proportional to each system's mean of a measure on validation data.

    Parameters
    ----------
    systems : sequence of Run, dict or array_like
        Runs (or {query: {document: score}}) if `truth` is judgments; scores if it is a dataset.
    truth : Qrels, dict or Dataset
        Judgments (or {query: {document: grade}}), or a dataset with labels.  Of the judgments
        those queries count that at least one run has; a run without one of them gets 0 for it.
    measure : str or Measure, default "NDCG@10"
        A measure that is better when higher.  A mean below 0 counts as 0.
    convention : str or Convention, default "default"
        How rankings and judgments are interpreted.

    Returns
    -------
    MeasuredWeights
        The weights, which sum to 1, and the means.

    Raises
    ------
    DataError
        If `systems` is not a sequence, does not fit `truth`, or shares no query with it.
    MeasureError
        If the measure is better when lower.

    References
    ----------
    .. [1] Cheng, Sun, Xie, "TopRank: A Novel Top-k Ranking Method Based on Rank Aggregation", 2014.

    Examples
    --------
    >>> import firstpage as fp
    >>> good, bad = {"q": {"a": 2, "b": 1}}, {"q": {"a": 1, "b": 2}}
    >>> qrels = {"q": {"a": 1, "b": 0}}
    >>> fp.aggregation.supervised_weights([good, bad], qrels, "RR").weights.round(3).tolist()
    [0.667, 0.333]
    """
    value = parse(measure)
    if isinstance(systems, (str, Mapping)) or not isinstance(systems, Sequence) or not systems:
        raise DataError("weights are measured on a list of runs or scores, one per ranker.")
    if value.lower_is_better:
        raise MeasureError(f"{value} is better when lower; weights need one better when higher.")
    if not isinstance(truth, Dataset):
        systems = [Run.from_dict(s) if isinstance(s, Mapping) else s for s in systems]
        qrels = Qrels.from_dict(truth) if isinstance(truth, Mapping) else truth
        truth = judgments_of_runs(systems, qrels)
        systems = [
            s.select_queries(np.flatnonzero(match_queries(s.queries, truth.queries) >= 0))
            for s in systems
        ]
    request = EvaluationRequest({str(value): value}, Convention(convention))
    means = np.array(
        [  # a run without any of these queries has 0
            request.evaluate(s, truth)[str(value)] if len(s) else 0.0 for s in systems
        ]
    )
    return MeasuredWeights(
        normalize_weights(np.maximum(means, 0.0), len(means)),
        means,
        measure if isinstance(measure, str) else str(value),
        len(truth),
    )


def judgments_of_runs(runs: Sequence[Any], qrels: Any) -> Qrels:
    """Return the judgments of the queries that at least one run has."""
    if not isinstance(qrels, Qrels) or not all(isinstance(run, Column) for run in runs):
        raise DataError(
            "weights are measured on runs with judgments (Qrels), or on scores with a Dataset."
        )
    shared = np.zeros(len(qrels), bool)
    for run in runs:
        shared |= match_queries(qrels.queries, run.queries) >= 0
    if not shared.any():
        raise DataError(
            f"the runs and {qrels.source or 'the judgments'} share no query, and weights are "
            "measured on the queries that both have: give judgments of these queries.",
            Advice("Or give runs over the judged ones, one for each, with {}.", "valid"),
        )
    return qrels.select_queries(np.flatnonzero(shared))
