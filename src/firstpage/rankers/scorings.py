"""Models inside models: a scoring with its scaling in front, and cascades of such stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from firstpage.aggregation.aggregate import aggregate
from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.methods import SupervisedKemeny
from firstpage.data.columns import ColumnMatch
from firstpage.data.dataset import Dataset
from firstpage.data.ids import Ids
from firstpage.data.transforms import MinMax, Standardize, transform_from_dict
from firstpage.errors import DataError
from firstpage.scorers.registry import SCORINGS
from firstpage.scorers.scorer import Contributions, Importances, JsonObject, Scoring, ScoringBase
from firstpage.types import Array, Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features
    from firstpage.data.shards.shards import Shards


def scores_of(scoring: Scoring, data: Dataset, threads: int | None = None) -> Floats:
    """One score per document; some scorings look at a query's documents together."""
    return scoring.predict(data.X, threads, data.offsets)


@dataclass(frozen=True, eq=False)
class Stage:
    """A model inside another model."""

    name: str
    scoring: Scoring
    transform: MinMax | Standardize | None = None
    columns: ColumnMatch | None = None  # of the data that are scored; None: as they are

    def stage_for(self, data: Dataset | Shards) -> Stage:
        """Return itself: its columns are matched already."""
        return self

    def predict(self, data: Dataset, threads: int | None = None) -> Floats:
        data = data if self.columns is None else self.columns.apply(data)
        data = self.transform.apply(data) if self.transform else data
        return scores_of(self.scoring, data, threads)

    def to_dict(self) -> JsonObject:
        return {
            "name": self.name,
            "normalize": None if self.transform is None else self.transform.to_dict(),
            "scorer": self.scoring.to_dict(),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Stage:
        scoring = SCORINGS[stored["scorer"]["kind"]](stored["scorer"])
        held = stored["normalize"]
        return cls(
            str(stored["name"]), scoring, None if held is None else transform_from_dict(held)
        )


@dataclass(frozen=True, eq=False)
class Cascade(ScoringBase):
    """Documents in the order of `first`; the first `depth` of each query in that of the votes."""

    first: Stage
    voters: tuple[Stage, ...]
    weights: Floats
    depth: int
    credit: Literal["paper", "extended"]
    n_features: int
    by_query: ClassVar[bool] = True
    export_kinds: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        return (
            f"Cascade({self.first.name}, then {len(self.voters)} voters on the first {self.depth}; "
            f"{self.n_features} features)"
        )

    @property
    def stages(self) -> Mapping[str, Stage]:
        voters = {f"voter {i}": voter for i, voter in enumerate(self.voters, 1)}
        return {"first": self.first, **voters}

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        """In each query n for the best document, .. 1 for the last."""
        data = _queries(X, offsets)
        if not data.n_docs:
            return np.empty(0)
        base = self.first.predict(data, threads)
        votes = np.stack([voter.predict(data, threads) for voter in self.voters])
        ballots = Ballots.from_scores(votes, data.offsets, base, depth=self.depth)
        method = SupervisedKemeny(credit=self.credit)
        return aggregate(ballots, method, weights=self.weights.tolist()).scores

    def explain(self) -> Importances:
        """Return the weight of each vote."""
        return Importances("weight of the vote", self.weights, self._voter_names())

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return the score of each voter; they do not add up."""
        data = _queries(X, offsets)
        values = np.column_stack([voter.predict(data) for voter in self.voters])
        return Contributions("score of a voter", values, None, self._voter_names())

    def _voter_names(self) -> tuple[str, ...]:
        return tuple(voter.name for voter in self.voters)

    def to_dict(self) -> JsonObject:
        return {
            "kind": "cascade",
            "first": self.first.to_dict(),
            "voters": [voter.to_dict() for voter in self.voters],
            "weights": self.weights.tolist(),
            "depth": self.depth,
            "credit": self.credit,
            "n_features": self.n_features,
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Cascade:
        first = Stage.from_dict(stored["first"])
        voters = tuple(Stage.from_dict(voter) for voter in stored["voters"])
        weights, size = np.array(stored["weights"], np.float64), stored["n_features"]
        if weights.shape != (len(voters),) or not len(voters):
            raise DataError("a cascade has one weight a voter")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise DataError("the weights of a cascade are not numbers from 0 on")
        if any(stage.scoring.n_features != size for stage in (first, *voters)):
            raise DataError("the parts of a cascade have different features")
        depth = stored["depth"]
        if type(depth) is not int or depth < 1 or stored["credit"] not in ("paper", "extended"):
            raise DataError("the depth or the credit of the cascade is wrong")
        return cls(first, voters, weights, depth, stored["credit"], size)


def _queries(X: Features, offsets: Ints | None) -> Dataset:
    """Documents without labels; one query where no boundaries are given."""
    rows = X.shape[0]
    ends = np.array([0, rows]) if offsets is None else offsets
    return Dataset(X, np.zeros(rows), ends, Ids.from_values(range(len(ends) - 1)))


def scoring_from_dict(stored: JsonObject) -> Scoring:
    """Return the scoring of a model file."""
    return {**SCORINGS, "cascade": Cascade.from_dict}[stored["kind"]](stored)
