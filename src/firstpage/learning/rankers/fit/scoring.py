"""The mean of a measure of a fitted ranker, on labels or on votes on pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from firstpage.core import DataError
from firstpage.core.engine import LocalEngine
from firstpage.data import Dataset
from firstpage.data.shards import Shards
from firstpage.evaluation.measures import evaluate
from firstpage.learning.rankers.fit.checks import check_labels, group_by_query
from firstpage.learning.rankers.fit.estimator import Documents, Estimator, QueryIds, Votes
from firstpage.learning.rankers.fit.inputs import PASS_QID
from firstpage.learning.rankers.fit.pair_measures import (
    NEEDS_PAIRS,
    AnyMeasure,
    PairMeasure,
    pair_measure,
    truth_of_pairs,
)
from firstpage.learning.rankers.fit.pairs import join_pairs
from firstpage.learning.rankers.fit.preparation import OWN_LABELS
from firstpage.learning.rankers.fit.training_data import with_weights


def mean_measure(
    ranker: Estimator,
    measure: AnyMeasure,
    X: Documents,
    y: ArrayLike | None = None,
    qid: QueryIds | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Return the mean of any measure over the queries, negated if lower is better."""
    if isinstance(measure, PairMeasure):
        raise DataError(NEEDS_PAIRS.format(measure))
    if isinstance(X, Shards):
        if y is not None or qid is not None or sample_weight is not None:
            raise DataError(OWN_LABELS)
        engine = LocalEngine(ranker.threads)
        mean = float(evaluate(ranker, X, measures=measure, engine=engine).values[0].mean())
        return -mean if measure.lower_is_better else mean
    if isinstance(X, Dataset) and y is not None:
        raise DataError("a Dataset has labels of its own; drop y.")
    scores = ranker.predict(X, qid=qid)
    trained_queries = ranker.training_.get("data", {}).get("queries")
    if qid is None and not isinstance(X, Dataset) and trained_queries != 1:
        raise DataError(f"score needs the query id of all {len(scores)} rows: {PASS_QID}")
    if isinstance(X, Dataset):
        data = replace(X, query_weights=None, row_order=None)  # weights are for training
    else:
        rows = len(scores)
        data = group_by_query(np.zeros((rows, 1)), check_labels(y, rows), qid, None)
        scores = scores if data.row_order is None else scores[data.row_order]
    values = evaluate(scores, data, measures=measure).values[0]
    weights = with_weights(data, sample_weight).query_weights
    mean = float(np.average(values, weights=weights))
    return -mean if measure.lower_is_better else mean


def mean_of_votes(
    ranker: Estimator, X: Documents, y: object, sample_weight: object, pairs: Votes
) -> float:
    """Return the mean of the measure over votes on pairs, negated if lower is better."""
    measure = pair_measure(ranker.validation_measure())
    if not isinstance(X, Dataset) or y is not None or sample_weight is not None:
        raise DataError("with pairs, score takes a Dataset, without y and sample_weight.")
    rows, _ = join_pairs(pairs, X, None)
    mean = measure.mean(ranker.predict(X), truth_of_pairs(X, rows))
    return -mean if measure.lower_is_better else mean
