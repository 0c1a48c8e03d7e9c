"""Why a candidate has its score: what each feature added to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.rankers.cascade import Cascade
from firstpage.scorers.linear import LinearScoring
from firstpage.scorers.mlp import MLPScoring
from firstpage.scorers.stumps import StumpsScoring
from firstpage.scorers.trees import LIBRARIES, TreesScoring, refusals, xgboost_or_error
from firstpage.types import Array, Floats

ROWS = 1024  # of a network at a time


@dataclass(frozen=True, eq=False)
class Parts:
    """One row a candidate: base + the sum of its parts is the score, up to rounding.

    Of a cascade they are what the voters say, and do not add up; `base` is None.
    """

    kind: str
    values: Floats
    base: Floats | None


def parts_of(scoring: Any, X: Array) -> Parts:
    """Of scaled features.  Linear: weight x value.  Trees: Shapley values, as the libraries
    compute them.  Stumps: the level that a feature's steps reach.  Networks: the slope at this
    candidate x its distance from the mean of training; the base is what bends leave over."""
    if isinstance(scoring, LinearScoring):
        base = np.full(len(X), scoring.intercept)
        return Parts("weight x value", X * scoring.weights, base)
    if isinstance(scoring, TreesScoring):
        return _trees(scoring, X)
    if isinstance(scoring, StumpsScoring):
        return _stumps(scoring, X)
    if isinstance(scoring, MLPScoring):
        return _network(scoring, X)
    raise AssertionError(f"{type(scoring).__name__} has no parts")


def votes_of(cascade: Cascade, data: Any) -> Parts:
    values = np.column_stack([voter.predict(data) for voter in cascade.voters])
    return Parts("score of a voter", values, None)


def _trees(scoring: TreesScoring, X: Array) -> Parts:
    with refusals(scoring.library):
        booster = LIBRARIES[scoring.library].read(scoring.text)
        if scoring.library == "lightgbm":
            found = booster.predict(X, raw_score=True, pred_contrib=True)
        else:
            found = booster.predict(xgboost_or_error().DMatrix(X), pred_contribs=True)
    found = np.asarray(found, np.float64)
    return Parts("Shapley value", found[:, :-1], found[:, -1])


def _stumps(scoring: StumpsScoring, X: Array) -> Parts:
    values = np.zeros(X.shape)
    for feature, (thresholds, levels) in scoring.functions().items():
        column = X[:, feature].astype(np.float64)
        values[:, feature] = levels[np.searchsorted(thresholds, column, side="left")]
    return Parts("level of steps", values, np.zeros(len(X)))


def _network(scoring: MLPScoring, X: Array) -> Parts:
    values, base = np.empty(X.shape), np.empty(len(X))
    back = scoring.W.T.astype(np.float64)
    for lo in range(0, len(X), ROWS):
        inputs = (X[lo : lo + ROWS] - scoring.mean) / scoring.deviation
        on = (inputs @ scoring.W + scoring.b > 0) * scoring.v.astype(np.float64)
        values[lo : lo + ROWS] = inputs * (on @ back)
        base[lo : lo + ROWS] = on @ scoring.b + scoring.c
    return Parts("value x slope", values, base)
