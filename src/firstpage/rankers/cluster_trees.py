"""Trees over shards, grown by LightGBM's own training on a Dask cluster (`DaskLGBMRanker`).

Workers read their shards and keep them in memory; LightGBM connects them with each other, adds up
its histograms, and asks our objective for slopes of the documents that a worker has.  It cannot go
on without one of them, and which worker has which shard shows in the last digits.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from typing import Any

import numpy as np

from firstpage.engine.base import EngineError
from firstpage.engine.cluster import LOST, DaskEngine
from firstpage.engine.threads import resolve
from firstpage.errors import DataError
from firstpage.losses.base import Loss
from firstpage.rankers.cluster_columns import Check, Columns
from firstpage.rankers.fitting import Fitted, Job
from firstpage.rankers.spread import Spread
from firstpage.rankers.tree_fitting import fit_boosted
from firstpage.rankers.tree_objective import Objective, as_it_is
from firstpage.scorers.trees import Grown, Trees, lightgbm_or_error, refusals

PATIENCE = 60.0  # seconds for workers to let go of one that is gone


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
    assert isinstance(training.engine, DaskEngine)  # see `check_trees`
    if job.checkpoint is not None:
        raise DataError("LightGBM leaves no checkpoint of a cluster; leave checkpoint out.")
    place = training.engine
    valid = None if job.valid is None else job.valid.X

    def grow(grown: Grown) -> tuple[Any, int]:
        with refusals("lightgbm"), _losses(place), place.client.as_current():
            booster = _grown(place, training, trees, job.seed, objective, options, check)
        return booster, _looked_at(booster, valid, grown, resolve(job.threads))

    return fit_boosted(job, trees, grow, lambda: float("nan"))  # nobody adds the loss up


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
