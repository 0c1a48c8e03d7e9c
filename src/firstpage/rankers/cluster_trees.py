"""Trees over shards, grown by LightGBM's own training on a Dask cluster (`DaskLGBMRanker`).

Workers read their shards and keep them in memory; LightGBM connects them with each other, adds up
its histograms, and asks our objective for slopes of the documents that a worker has.  It cannot go
on without one of them, and which worker has which shard shows in the last digits.
"""

from __future__ import annotations

import operator
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from typing import Any

import numpy as np

from firstpage.engine.base import EngineError
from firstpage.engine.cluster import LOST, DaskEngine, library
from firstpage.errors import DataError
from firstpage.losses.base import Loss
from firstpage.rankers.fitting import Fitted, Job
from firstpage.rankers.pieces import Piece, Spec
from firstpage.rankers.spread import Spread
from firstpage.rankers.tree_fitting import fit_boosted
from firstpage.rankers.tree_objective import Objective, as_it_is
from firstpage.scorers.trees import Grown, Trees, lightgbm_or_error, refusals
from firstpage.types import Array, Floats

PATIENCE = 10.0  # seconds for workers to notice that another is gone
NAMES = {"leaves": "num_leaves", "rate": "learning_rate", "min_docs": "min_child_samples"}
Check = Callable[[Floats, Array], None]
"""(labels, lengths of lists) -> nothing, or an error that says what cannot be learned from."""


def fit_cluster_trees(
    job: Job, trees: Trees, objective: Any, options: dict[str, Any], check: Check | None = None
) -> Fitted:
    """Grow trees on the workers, then keep as many as measure best.

    objective   by LightGBM's name, which learns from labels as they are; or a loss of ours
    """
    if isinstance(objective, Loss):
        objective = Objective(str(objective), objective, as_it_is)
    training = job.training
    assert isinstance(training, Spread)
    if not isinstance(training.engine, DaskEngine) or trees.library != "lightgbm":
        raise DataError(
            "over shards trees are grown by LightGBM on a Dask cluster (engine='dask://..'); on "
            "one machine, or by XGBoost, they grow in memory: read the data with fp.read."
        )
    if job.checkpoint is not None:
        raise DataError("LightGBM leaves no checkpoint of a cluster; leave checkpoint out.")
    place = training.engine
    valid = None if job.valid is None else job.valid.X

    def grow(grown: Grown) -> tuple[Any, int]:
        with refusals("lightgbm"), _losses(place), place.client.as_current():
            booster = _grown(place, training, trees, job.seed, objective, options, check)
        return booster, _looked_at(booster, valid, grown)

    return fit_boosted(job, trees, grow, lambda: float("nan"))  # nobody adds the loss up


@contextmanager
def _losses(place: DaskEngine) -> Iterator[None]:
    """Machines that go away in mid-fit, said in our words."""
    try:
        yield
    except LOST as error:
        raise place.lost() from error
    except lightgbm_or_error().basic.LightGBMError as error:
        _disconnect(place)
        if "socket" not in str(error).lower():
            raise
        raise EngineError(
            f"a worker of {place.address} went away, and LightGBM cannot grow trees without it; "
            "fit again."
        ) from error


def _disconnect(place: DaskEngine) -> None:
    """Threads whose LightGBM failed keep its connections, and would fail again: as many tasks as a
    worker has threads, at the same time, tell them to let go."""
    with suppress(Exception):  # there is an error already to be told
        told = [
            place.client.submit(_let_go, n, workers=[worker], pure=False)
            for worker, threads in place.client.nthreads().items()
            for n in range(threads)
        ]
        library().wait(told, timeout=PATIENCE)


def _let_go(number: int) -> None:
    from lightgbm.basic import _LIB, _safe_call

    _safe_call(_LIB.LGBM_NetworkFree())
    time.sleep(0.2)  # so that no thread takes two of these tasks


def _looked_at(booster: Any, valid: Any, grown: Grown) -> int:
    """Tree by tree, now that all are there: how many to keep is told by the validation data."""
    count = int(booster.num_trees())
    scores = None if valid is None else np.zeros(valid.shape[0])
    for tree in range(count):
        if scores is not None:
            scores = scores + booster.predict(
                valid, start_iteration=tree, num_iteration=1, raw_score=True
            )
        if grown(tree + 1, booster, scores):
            return tree + 1
    return count


def _grown(
    place: DaskEngine, training: Spread, trees: Trees, seed: int, objective: Any,
    options: dict[str, Any], check: Check | None,
) -> Any:  # fmt: skip
    """The booster of all shards."""
    lightgbm = lightgbm_or_error()
    named = {theirs: getattr(trees, ours) for ours, theirs in NAMES.items()}
    ranker = lightgbm.DaskLGBMRanker(
        client=place.client, objective=objective, n_estimators=trees.count, random_state=seed,
        deterministic=True, force_row_wise=True, verbosity=-1, **named, **options, **trees.options,
    )  # fmt: skip
    held = _Held(place, training, isinstance(objective, str), check)
    weight = held.column(3) if training.flat else None
    with warnings.catch_warnings(), redirect_stdout(StringIO()):  # it prints what it does
        warnings.filterwarnings(
            "ignore", "Parameter n_jobs will be ignored"
        )  # a default of its own
        ranker.fit(held.features(), held.column(1), group=held.column(2), sample_weight=weight)
    return ranker.booster_


class _Held:
    """Shards in the memory of the workers, as columns that Dask knows."""

    def __init__(
        self, place: DaskEngine, training: Spread, plain: bool, check: Check | None
    ) -> None:
        self._client, self._training = place.client, training
        workers = place.workers()
        self._loaded = [
            self._client.submit(
                loaded, spec, plain, check, workers=[workers[n % len(workers)]],
                allow_other_workers=True, pure=False,
            )
            for n, spec in enumerate(training.specs())
        ]  # fmt: skip
        library().wait(self._loaded)
        self._sizes = self._client.gather(self._client.map(sizes, self._loaded, pure=False))

    def features(self) -> Any:
        """A row a document."""
        import dask.array as da

        shape, kind = self._training.n_features, self._training.shards.dtype
        return da.concatenate([
            da.from_delayed(part, (rows, shape), kind)
            for (rows, _), part in zip(self._sizes, self._field(0), strict=True)
        ])  # fmt: skip

    def column(self, number: int) -> Any:
        """Labels (1), lengths of lists (2) or weights (3)."""
        import dask.array as da

        which = 1 if number == 2 else 0
        return da.concatenate([
            da.from_delayed(part, (size[which],), np.int64 if number == 2 else np.float64)
            for size, part in zip(self._sizes, self._field(number), strict=True)
        ])  # fmt: skip

    def _field(self, number: int) -> list[Any]:
        import dask

        found = self._client.map(operator.itemgetter(number), self._loaded, pure=False)
        return [dask.delayed(one) for one in found]


Loaded = tuple[Any, Floats, Array, Floats]


def loaded(spec: Spec, plain: bool, check: Check | None) -> Loaded:
    """A shard in memory: features, labels, lengths of lists, weights of documents.

    plain   labels as they are, and not as the ranker reads them
    """
    piece = Piece(spec, 1)
    labels = piece.data.y if plain else piece.truth.labels
    if len(np.unique(labels)) != len(np.unique(labels.astype(np.float32))):
        raise DataError(
            f"{piece.data.source}: LightGBM keeps labels in 32 bits, and some of these would be "
            "alike; take coarser ones."
        )
    if check is not None:
        check(labels, piece.data.lengths)
    X: Any = piece.data.X
    if isinstance(X, np.ndarray):
        X = np.array(X)  # not a view of what is mapped
    else:
        from scipy.sparse import csr_matrix

        X = csr_matrix(X)
    weights = np.repeat(piece.shares, piece.data.lengths)
    found = X, np.array(labels), np.asarray(piece.data.lengths), weights
    piece.release()
    return found


def sizes(shard: Loaded) -> tuple[int, int]:
    """Documents and queries."""
    return len(shard[1]), len(shard[2])
