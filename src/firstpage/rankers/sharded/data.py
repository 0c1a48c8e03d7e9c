"""Training data in shards: what `Training` is to rankers, worked on by an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.ids import Ids
from firstpage.data.shards.shards import Shards
from firstpage.data.transforms import MinMax, Standardize
from firstpage.data.truth import Truth
from firstpage.engine.engine import Engine, Make, Parts
from firstpage.errors import DataError
from firstpage.losses.loss import Loss
from firstpage.rankers.sharded.shard import Spec, Survey, Surveyor, objective_part
from firstpage.scorers.linear import Linear
from firstpage.solvers.sharded.objective import SpreadObjective
from firstpage.types import Floats

ON_A_CLUSTER = (
    "over shards trees are grown by LightGBM on a Dask cluster (engine='dask://..'); on one "
    "machine, or by XGBoost, they grow in memory: read the data with fp.read."
)
IN_MEMORY = "{} trains on data in memory, not on shards; read them with fp.read, or take {}."


@dataclass(frozen=True, eq=False)
class Spread:
    """Documents in shards, all queries alike.

    flat      whether queries without a preference weigh nothing
    by_docs   whether queries weigh by the number of their documents
    """

    shards: Shards
    engine: Engine
    transform: MinMax | Standardize | None
    convert: Callable[[Truth], Truth]
    surveys: tuple[Survey, ...]
    flat: bool
    by_docs: bool = False
    jobs: list[Parts] = field(default_factory=list)

    @classmethod
    def of(
        cls,
        shards: Shards,
        engine: Engine,
        transform: MinMax | Standardize | None,
        convert: Callable[[Truth], Truth],
        prefers: bool,
    ) -> Spread:
        """Look through all shards once: their features must be finite."""
        specs = [Spec(shards.alone(n), transform, convert, False) for n in range(len(shards))]
        parts = engine.parts(Surveyor, specs)
        try:
            surveys = tuple(parts.each("survey"))
        finally:
            parts.close()
        if not sum(s.documents for s in surveys):
            raise DataError(f"{shards.source} has no documents to learn from.")
        # Queries that prefer nothing to anything weigh nothing, unless there are no others.
        flat = prefers and 0 < sum(s.telling for s in surveys) < sum(s.queries for s in surveys)
        return cls(shards, engine, transform, convert, surveys, flat)

    @property
    def n_features(self) -> int:
        return self.shards.n_features

    @property
    def total(self) -> float:
        """What all queries weigh."""
        if self.by_docs:
            return float(
                sum(s.telling_documents if self.flat else s.documents for s in self.surveys)
            )
        return float(sum(s.telling if self.flat else s.queries for s in self.surveys))

    def by_documents(self) -> Spread:
        """The same, with queries that weigh by the number of their documents."""
        return replace(self, by_docs=True)

    def varies(self) -> bool:
        return any(survey.varies for survey in self.surveys)

    def fingerprint(self) -> dict[str, Any]:
        return self.shards.fingerprint()

    def specs(self, **more: Any) -> list[Spec]:
        """What a machine needs to know of each shard."""
        return [
            Spec(
                self.shards.alone(n), self.transform, self.convert, self.flat, self.by_docs,
                self.total, **more,
            )
            for n in range(len(self.shards))
        ]  # fmt: skip

    def parts(self, make: Make, **more: Any) -> Parts:
        """A part for each shard; closed with all others at the end of the fit."""
        found = self.engine.parts(make, self.specs(**more))
        self.jobs.append(found)
        return found

    def close(self) -> None:
        while self.jobs:
            self.jobs.pop().close()

    def nothing(self) -> Dataset:
        """No documents, of as many features."""
        kind, shape = np.dtype(self.shards.dtype), (0, self.n_features)
        X: Any = np.empty(shape, kind)
        if self.shards.is_sparse:
            from scipy.sparse import csr_array

            X = csr_array(shape, dtype=kind)
        return Dataset(X, np.empty(0), np.zeros(1, np.int64), Ids.of([]))

    # --- what fitting asks for

    def fitting(self, scorer: Any) -> Any:
        """The scorer set up on no documents, as many features wide."""
        if not isinstance(scorer, Linear):
            name = type(scorer).__name__.lower()
            raise DataError(IN_MEMORY.format(f"scorer={name!r}", "scorer='linear'"))
        return scorer.fitting(self.nothing().X)

    def objective(
        self, loss: Loss, scorer: Any, fitting: Any, truth: Truth | None, l2: float,
        threads: int | None, batch: int | None,
    ) -> SpreadObjective:  # fmt: skip
        if batch is not None:
            raise DataError(
                "this solver goes from query to query, which needs data in memory; over shards "
                "take 'lbfgs', 'gd' or 'cutting plane'."
            )
        loss.target(self.nothing().truth)  # says what there is to say of the loss, once
        counts = [(s.queries, s.documents) for s in self.surveys]
        parts = self.parts(objective_part, loss=loss, scorer=scorer)
        return SpreadObjective(parts, fitting, counts, l2)

    def spread(self, objective: Any, fitting: Any, params: Floats) -> tuple[float, float]:
        found: tuple[float, float] = objective.spread(params)
        return found


def check_trees(engine: Engine, trees: Any) -> None:
    """Trees are grown from shards by a library that has a way of its own, on a cluster."""
    if not hasattr(engine, "client") or getattr(trees, "library", "lightgbm") != "lightgbm":
        raise DataError(ON_A_CLUSTER)
