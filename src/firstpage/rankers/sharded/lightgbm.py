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
from typing import Any, NamedTuple

import numpy as np

from firstpage.engine.dask_cluster import LOST, DaskEngine, library
from firstpage.engine.engine import EngineError
from firstpage.engine.threads import resolve
from firstpage.errors import DataError
from firstpage.losses.loss import Loss
from firstpage.rankers.fit.request import FitRequest, FitResult
from firstpage.rankers.sharded.data import Spread
from firstpage.rankers.sharded.shard import Piece, Spec
from firstpage.rankers.trees.fit import fit_boosted
from firstpage.rankers.trees.objective import Objective, as_it_is
from firstpage.scorers.trees import Grown, Trees, lightgbm_or_error, refusals
from firstpage.types import Array, Floats

Check = Callable[[Floats, Array], None]
"""(labels, lengths of lists) -> nothing, or an error that says what cannot be learned from."""


class Loaded(NamedTuple):
    """A shard in memory; `lengths` are those of the lists, weights those of documents."""

    features: Any
    labels: Floats
    lengths: Array
    weights: Floats


class Columns:
    """Every shard read by a worker, and kept there as long as this is.

    plain   labels as they are, and not as the ranker reads them
    """

    def __init__(
        self, place: DaskEngine, training: Spread, plain: bool, check: Check | None
    ) -> None:
        self._client, self._training = place.client, training
        workers = place.workers()
        found = [
            self._client.submit(
                loaded, spec, plain, check, workers=[workers[n % len(workers)]],
                allow_other_workers=True, pure=False,
            )
            for n, spec in enumerate(training.specs())
        ]  # fmt: skip
        library().wait(found)
        sizes = self._client.gather(self._client.map(sizes_of, found, pure=False))
        self._parts = [(part, size) for part, size in zip(found, sizes, strict=True) if size[0]]

    def features(self) -> Any:
        """A row a document."""
        import dask.array as da

        width, kind = self._training.n_features, self._training.shards.dtype
        return da.concatenate([
            da.from_delayed(part, (rows, width), kind) for part, (rows, _) in self._each("features")
        ])  # fmt: skip

    def column(self, name: str) -> Any:
        """`labels`, `lengths` or `weights`."""
        import dask.array as da

        which, kind = (1, np.int64) if name == "lengths" else (0, np.float64)
        return da.concatenate([
            da.from_delayed(part, (size[which],), kind) for part, size in self._each(name)
        ])  # fmt: skip

    def _each(self, name: str) -> list[tuple[Any, tuple[int, int]]]:
        import dask

        parts, sizes = zip(*self._parts, strict=True)
        found = self._client.map(operator.attrgetter(name), parts, pure=False)
        return [(dask.delayed(one), size) for one, size in zip(found, sizes, strict=True)]


def loaded(spec: Spec, plain: bool, check: Check | None) -> Loaded:
    """On a worker: read a shard, scaled, without empty queries."""
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
    found = Loaded(X, np.array(labels), np.asarray(piece.data.lengths), weights)
    piece.release()
    return found


def sizes_of(shard: Loaded) -> tuple[int, int]:
    """Documents and queries."""
    return len(shard.labels), len(shard.lengths)


PATIENCE = 60.0  # seconds for workers to let go of one that is gone


def fit_cluster_trees(
    request: FitRequest,
    trees: Trees,
    objective: Any,
    options: dict[str, Any],
    check: Check | None = None,
) -> FitResult:
    """Grow trees on the workers, then keep as many as measure best.

    objective   by LightGBM's name, which learns from labels as they are; or a loss of ours
    """
    if isinstance(objective, Loss):
        objective = Objective(str(objective), objective, as_it_is)
    training = request.training
    assert isinstance(training, Spread)
    assert isinstance(training.engine, DaskEngine)  # see `check_trees`
    if request.checkpoint is not None:
        raise DataError("LightGBM leaves no checkpoint of a cluster; leave checkpoint out.")
    place = training.engine
    valid = None if request.valid is None else request.valid.X

    def grow(grown: Grown) -> tuple[Any, int]:
        with refusals("lightgbm"), _losses(place), place.client.as_current():
            booster = _grown(place, training, trees, request.seed, objective, options, check)
        return booster, _looked_at(booster, valid, grown, resolve(request.threads))

    return fit_boosted(request, trees, grow, lambda: float("nan"))  # nobody adds the loss up


@contextmanager
def _losses(place: DaskEngine) -> Iterator[None]:
    """Machines that go away in mid-fit, said in our words."""
    try:
        yield
    except LOST as error:
        raise place.lost() from error
    except ImportError as error:
        raise EngineError(
            f"a worker of {place.address} lacks what trees need ({error}); install "
            "firstpage[trees] there."
        ) from error
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
    client = place.client
    with suppress(Exception):  # there is an error already to be told
        told = [
            (worker, client.submit(_let_go, n, workers=[worker], pure=False))
            for worker, threads in client.nthreads().items()
            for n in range(threads)
        ]
        until = time.monotonic() + PATIENCE
        while told and time.monotonic() < until:
            time.sleep(0.1)
            there = client.nthreads()  # who went away in the meantime is not waited for
            told = [(w, one) for w, one in told if w in there and not one.done()]


def _let_go(number: int) -> None:
    from lightgbm.basic import _LIB, _safe_call

    _safe_call(_LIB.LGBM_NetworkFree())
    time.sleep(0.2)  # so that no thread takes two of these tasks


def _looked_at(booster: Any, valid: Any, grown: Grown, threads: int) -> int:
    """Tree by tree, now that all are there: how many to keep is told by the validation data."""
    count = int(booster.num_trees())
    scores = None if valid is None else np.zeros(valid.shape[0])
    for tree in range(count):
        if scores is not None:
            scores = scores + booster.predict(
                valid, start_iteration=tree, num_iteration=1, raw_score=True, num_threads=threads
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
    asked = {
        "n_estimators": trees.count, "num_leaves": trees.leaves, "learning_rate": trees.rate,
        "min_child_samples": trees.min_docs, "random_state": seed, "deterministic": True,
        "force_row_wise": True, "verbosity": -1, **options, **trees.options,
    }  # fmt: skip
    ranker = lightgbm.DaskLGBMRanker(client=place.client, objective=objective, **asked)
    held = Columns(place, training, isinstance(objective, str), check)
    weight = held.column("weights") if training.flat else None
    with warnings.catch_warnings(), redirect_stdout(StringIO()):  # it prints what it does
        warnings.filterwarnings("ignore", "Parameter n_jobs will be ignored")  # nobody gave one
        ranker.fit(
            held.features(), held.column("labels"), group=held.column("lengths"),
            sample_weight=weight,
        )  # fmt: skip
    return ranker.booster_
