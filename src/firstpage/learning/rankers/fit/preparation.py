"""Turn the arguments of `fit` into training data: checked, weighted, and scaled."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firstpage.core import Array, DataError, Ints, warn
from firstpage.core.engine import Engine
from firstpage.core.kernels import hash_ids
from firstpage.data import Dataset, as_positions
from firstpage.data.preferences import RowPairs
from firstpage.data.shards import LOAD_SHARDS, Shards
from firstpage.learning.rankers.fit.checks import check_categories, check_has_features
from firstpage.learning.rankers.fit.estimator import (
    Documents,
    Estimator,
    Matrix,
    QueryIds,
    Validation,
    grows_trees,
    reads_missing,
)
from firstpage.learning.rankers.fit.estimator import Votes as AnyVotes
from firstpage.learning.rankers.fit.inputs import remember_features, validated, validation_data
from firstpage.learning.rankers.fit.pairs import join_pairs
from firstpage.learning.rankers.fit.parameters import transform_of, truth_order
from firstpage.learning.rankers.fit.training_data import InMemory, with_weights
from firstpage.learning.rankers.sharded.data import IN_MEMORY, ShardedData

OWN_LABELS = (
    "Shards have their own labels and query ids, and no weights; drop y, qid and sample_weight."
)
ENGINE_NEEDS_SHARDS = "engine requires Shards (fp.read_shards); X is in memory."
PAIRS_IN_MEMORY = f"pairs are joined to data in memory, not to shards; {LOAD_SHARDS}."
CONFOUNDED = (
    "positions: documents with equal features do not connect all positions ({}), so {} tells the "
    "effect of a position from that of the features only as far as features overlap between "
    "positions; see fp.clicks.position_overlap."
)
NO_POSITIONS = "{} does not use the positions of documents; LambdaMART does."


def check_arguments(
    ranker: Estimator,
    X: Documents,
    pairs: object,
    engine: object,
    position: object,
    *of_arrays: object,
) -> None:
    """Raise an error for arguments of `fit` that exclude each other, or the ranker."""
    name = type(ranker).__name__
    if position is not None and not ranker._uses_positions:
        raise DataError(NO_POSITIONS.format(name))
    if position is not None and isinstance(X, (Dataset, Shards)):
        raise DataError("a Dataset has positions of its own: data.with_positions(..).")
    if not isinstance(X, Shards):
        if engine is not None:
            raise DataError(ENGINE_NEEDS_SHARDS)
        return
    if pairs is not None:
        raise DataError(PAIRS_IN_MEMORY)
    if not ranker._supports_shards:
        raise DataError(IN_MEMORY.format(name, ranker._shard_alternative))
    if any(argument is not None for argument in of_arrays):
        raise DataError(OWN_LABELS)
    check_has_features(X)


def qid_of_groups(X: Documents, qid: object, group: object) -> Ints:
    """Return a query id per row, given the number of rows of each query."""
    if isinstance(X, (Dataset, Shards)):
        raise DataError(f"a {type(X).__name__} has query ids of its own; drop group.")
    if qid is not None:
        raise DataError("qid and group say the same; give the ids of the rows, or the sizes.")
    sizes = np.asarray(group)
    whole = sizes.dtype.kind in "iu" or (sizes.dtype.kind == "f" and bool((sizes % 1 == 0).all()))
    if sizes.ndim != 1 or not whole or (sizes < 1).any():
        raise DataError("group must be the numbers of rows of the queries, each at least 1.")
    rows = X.shape[0] if hasattr(X, "shape") else len(X)  # type: ignore[arg-type]
    if int(sizes.sum()) != rows:
        hint = " If these are the query ids of the rows, pass qid." if len(sizes) == rows else ""
        raise DataError(
            f"the sizes in group sum to {int(sizes.sum())}, and X has {rows} rows.{hint}"
        )
    return np.repeat(np.arange(len(sizes)), sizes.astype(np.int64))


def _check_overlap(X: Any, positions: Ints, name: str) -> None:
    """Warn where documents with equal features do not connect all positions."""
    from firstpage.clicks import position_overlap  # only with positions: importing takes time

    components = len(set(position_overlap(_row_keys(X), positions).component))
    if components > 1:
        warn(CONFOUNDED.format(f"{components} components", name))


def _row_keys(X: Any) -> Array:
    """Return a number per row of features, equal for equal rows."""
    if not isinstance(X, np.ndarray):  # sparse: products of equal rows are equal
        return np.asarray(X @ np.random.default_rng(0).standard_normal(X.shape[1]))
    rows = np.ascontiguousarray(X)
    starts = np.arange(len(rows), dtype=np.int64) * rows.strides[0]
    keys = np.empty(len(rows), np.uint64)
    hash_ids(rows.reshape(-1).view(np.uint8), starts, starts + rows.strides[0], keys)
    return keys


def from_memory(
    ranker: Estimator,
    X: Dataset | Matrix,
    y: ArrayLike | None,
    qid: QueryIds | None,
    sample_weight: ArrayLike | None,
    position: ArrayLike | None,
) -> InMemory:
    """Return documents with labels as training data."""
    name, data = type(ranker).__name__, validated(ranker, X, y, qid, reset=True)
    if position is not None:
        data = data.with_positions(data.to_row_order(as_positions(position, "position")))
    if not data.n_features:
        check_has_features(data)
    if data.positions is not None and not ranker._uses_positions:
        warn(NO_POSITIONS.format(name))
    elif data.positions is not None:
        _check_overlap(data.X, data.positions, name)
    training = with_weights(data, sample_weight)
    if ranker._weights_by_copying:
        training = training.with_copies(name)
    training = replace(training.without_empty(), convert=truth_order(ranker))
    if ranker.needs_preferences:
        training = training.without_uninformative()
    transform = transform_of(ranker)
    return training if transform is None else training.transformed(transform.fit(training.data))


def from_votes(
    ranker: Estimator,
    X: Dataset | Matrix,
    y: ArrayLike | None,
    qid: QueryIds | None,
    sample_weight: ArrayLike | None,
    pairs: AnyVotes,
    valid: Validation | None,
    labeled: bool,
) -> tuple[InMemory, Dataset | None, RowPairs | None]:
    """Return documents with votes on pairs as training data, validation data, and their votes."""
    if y is not None and not labeled:
        raise DataError(f"{type(ranker).__name__} trains on the pairs alone; drop y.")
    data = validated(ranker, X, y, qid, reset=True, labeled=labeled)
    check_has_features(data)
    checked = None if valid is None else validation_data(ranker, valid, labeled=False)
    if not labeled and not np.isfinite(data.y).all():  # only pairs are read
        data = replace(data, y=np.zeros(data.n_docs))
    training = with_weights(data, sample_weight).without_empty()
    training = replace(training, convert=truth_order(ranker))
    own, of_valid = join_pairs(pairs, training.data, checked)
    training = training.with_pairs(own, labeled)
    transform = transform_of(ranker)
    if transform is not None:
        training = training.transformed(transform.fit(training.data))
    return training, checked, of_valid


def from_shards(ranker: Estimator, shards: Shards, engine: Engine) -> ShardedData:
    """Return shards as training data, after one pass over them."""
    remember_features(ranker, shards)
    check_categories(shards, grows_trees(ranker), type(ranker).__name__)
    transform = transform_of(ranker)
    if transform is not None:
        transform = transform.fit(shards)
    return ShardedData.from_shards(
        shards,
        engine,
        transform,
        truth_order(ranker),
        ranker.needs_preferences,
        reads_missing(ranker),
    )
