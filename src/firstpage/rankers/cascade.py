"""Two stages of scoring: one model chooses the candidates, others vote on their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from firstpage.aggregation.aggregate import aggregate
from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.methods import SupervisedKemeny
from firstpage.data.dataset import Dataset
from firstpage.errors import DataError
from firstpage.rankers.scorings import Stage
from firstpage.types import Floats


@dataclass(frozen=True, eq=False)
class Cascade:
    """Documents in the order of `first`; the first `depth` of each query in that of the votes."""

    first: Stage
    voters: tuple[Stage, ...]
    weights: Floats
    depth: int
    credit: Literal["paper", "extended"]
    n_features: int
    coefficients: ClassVar[None] = None

    def __repr__(self) -> str:
        return (
            f"Cascade({self.first.name}, then {len(self.voters)} voters on the first {self.depth}; "
            f"{self.n_features} features)"
        )

    def predict(self, X: Any, threads: int | None = None) -> Floats:
        """All documents as one query."""
        rows = X.shape[0]
        data = Dataset.from_arrays(X, np.zeros(rows), np.zeros(rows, int))
        return self.predict_queries(data, threads)

    def predict_queries(self, data: Dataset, threads: int | None = None) -> Floats:
        """In each query n for the best document, .. 1 for the last."""
        if not data.n_docs:
            return np.empty(0)
        base = self.first.predict(data, threads)
        votes = np.stack([voter.predict(data, threads) for voter in self.voters])
        ballots = Ballots.of_scores(votes, data.offsets, base, depth=self.depth)
        method = SupervisedKemeny(credit=self.credit)
        return aggregate(ballots, method, weights=self.weights.tolist()).scores

    def to_dict(self) -> dict[str, Any]:
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
    def from_dict(cls, stored: dict[str, Any]) -> Cascade:
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
