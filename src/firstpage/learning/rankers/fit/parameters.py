"""Check the parameters of a ranker, and turn them into its procedure, truth and scaling."""

from __future__ import annotations

from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from firstpage.core import DataError, check_number, lookup
from firstpage.data import TRANSFORMS, Impute, Per, Transform, Truth, check_impute
from firstpage.learning.rankers.fit.composition import Procedure
from firstpage.learning.rankers.fit.estimator import Estimator, LearnsFrom, grows_trees
from firstpage.learning.rankers.fit.pair_measures import any_measure
from firstpage.learning.rankers.fit.training_data import Convert

NORMALIZERS: dict[str, tuple[str, Per]] = {
    "minmax": ("minmax", "query"), "standard": ("standardize", "query"),
    "standardize": ("standardize", "query"), "global minmax": ("minmax", "global"),
    "global standard": ("standardize", "global"),
}  # fmt: skip


def composition_of(ranker: Estimator, learns_from: LearnsFrom = "labels") -> Procedure:
    """Return how a ranker learns; raise an error for an invalid parameter."""
    name = type(ranker).__name__
    for number in ("k", "patience", "threads"):
        if getattr(ranker, number) is not None:
            check_number(ranker, number, 1, integer=True)
    check_number(ranker, "seed", 0, integer=True)
    parameters: Any = ranker
    for field in fields(parameters):
        value = getattr(ranker, field.name)
        if field.type == "bool" and not isinstance(value, (bool, np.bool_)):
            raise DataError(f"{field.name} must be true or false; got {value!r}.")
    if ranker.ties not in ("share", "random", "resample"):
        raise DataError(f"ties must be 'share', 'random' or 'resample'; got {ranker.ties!r}.")
    if ranker.ties == "random":
        _check_orders(ranker)
    if learns_from == "votes" and not ranker._learns_from_votes:
        raise DataError(f"{name} needs labels; RankNet, RankSVM and FocusedNet train on pairs.")
    trees = grows_trees(ranker)
    procedure: Procedure = ranker.compose(
        "trees" if trees and learns_from == "labels" else learns_from
    )
    if ranker.ties == "resample":
        resampled = procedure.resampled(name, ranker.k, ranker.seed)
        procedure = resampled if learns_from == "labels" else procedure
        _check_orders(ranker)
    if ranker.warm_start and trees:
        raise DataError("trees cannot continue an earlier fit: warm_start must be false.")
    if ranker.impute is not None:
        check_impute(ranker.impute)
    any_measure(ranker.validation_measure())
    return procedure


def _check_orders(ranker: Estimator) -> None:
    """Raise an error unless the ranker learns from an order of equal labels."""
    if ranker.k is None and not ranker._orders_all:
        raise DataError(
            f"ties={ranker.ties!r} orders equal labels of the top k; give {type(ranker).__name__} "
            "k, or leave ties out."
        )


def truth_order(ranker: Estimator) -> Convert:
    """Return the function from the truth of data to the truth that a ranker trains on.

    With ties="random", it puts equal labels into a random order.
    """
    return partial(_ordered, ties=ranker.ties, k=ranker.k, seed=ranker.seed)


def _ordered(truth: Truth, ties: str, k: int | None, seed: int) -> Truth:
    if ties != "random":
        return truth
    return truth.full_order(seed) if k is None else truth.top_k(k, seed)


def transform_of(ranker: Estimator) -> Transform | None:
    """Return the scaling of `normalize` and the imputation of `impute`, not fitted."""
    if ranker.normalize in (None, "none"):
        return None if ranker.impute is None else Impute(impute=ranker.impute)
    name, per = lookup(str(ranker.normalize), NORMALIZERS, "normalization")
    return TRANSFORMS[name](per, impute=ranker.impute)  # type: ignore[return-value]
