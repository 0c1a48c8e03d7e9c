"""Stages, which are scorings with their feature scaling, and cascades of stages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints
from firstpage.data import ColumnMatch, Dataset, Ids, Transform, transform_from_dict
from firstpage.learning.models.finite_values import check_finite, check_scores
from firstpage.learning.scorers.registry import SCORINGS
from firstpage.learning.scorers.scorer import Scoring
from firstpage.learning.scorers.scoring_base import (
    Contributions,
    Importances,
    JsonObject,
    ScoringBase,
)

if TYPE_CHECKING:
    from firstpage.data import Features
    from firstpage.data.shards import Shards


def scores_of(scoring: Scoring, data: Dataset, threads: int | None = None) -> Floats:
    """Return one score per document; some scorings need a query's documents together."""
    return scoring.predict(data.X, threads, data.offsets)


def stored_transform(stored: JsonObject | None, n_features: int) -> Transform | None:
    """Return the feature scaling of a model file; raise DataError unless it fits the features."""
    if stored is None:
        return None
    transform = transform_from_dict(stored)
    shift, scale, fill = transform.shift, transform.scale, transform.fill
    needed = [shift, scale] if transform.per == "global" else []
    needed += [] if transform.impute is None else [fill]
    if not all(v is not None and v.shape == (n_features,) and np.isfinite(v).all() for v in needed):
        raise DataError("the scaling of the features is not one finite number per feature")
    if scale is not None and not (scale > 0).all():
        raise DataError("a scale of the features is not above 0")
    return transform


@dataclass(frozen=True, eq=False)
class Stage:
    """A scoring with its feature scaling, as a component of a model."""

    name: str
    scoring: Scoring
    transform: Transform | None = None
    columns: ColumnMatch | None = None  # of the data to score; None: unchanged

    def stage_for(self, data: Dataset | Shards) -> Stage:
        """Return the stage itself, whose columns are matched already."""
        return self

    @property
    def reads_missing(self) -> bool:
        """Whether features may be missing (NaN)."""
        fills = self.transform is not None and self.transform.impute is not None
        return fills or self.scoring.reads_missing

    def predict(self, data: Dataset, threads: int | None = None) -> Floats:
        """Return one score per document."""
        data = data if self.columns is None else self.columns.apply(data)
        check_finite(data, self.reads_missing)
        scaled = self.transform.apply(data) if self.transform else data
        scores = scores_of(self.scoring, scaled, threads)
        check_scores(scores, data, self.name)
        return scores

    def to_dict(self) -> JsonObject:
        """Return the stage as JSON."""
        return {
            "name": self.name,
            "normalize": None if self.transform is None else self.transform.to_dict(),
            "scorer": self.scoring.to_dict(),
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> Stage:
        """Return the stage that `to_dict` has written."""
        scoring = SCORINGS[stored["scorer"]["kind"]](stored["scorer"])
        transform = stored_transform(stored["normalize"], scoring.n_features)
        return cls(str(stored["name"]), scoring, transform)


@dataclass(frozen=True, eq=False)
class VoterCascade(ScoringBase):
    """Documents in the order of `first`; the top `depth` of each query reordered by the voters.

    Attributes
    ----------
    first : Stage
        The stage that chooses the candidates.
    voters : tuple of Stage
        The stages that vote on their order.
    weights : ndarray
        One weight per voter.
    depth : int
        The number of candidates per query.
    credit : {"paper", "extended"}
        The variant of Supervised Kemeny.
    k_agg : int or None
        The number of first positions of a voter's list that give credit; None: half of them.
    n_features : int
        The number of features.
    """

    first: Stage
    voters: tuple[Stage, ...]
    weights: Floats
    depth: int
    credit: Literal["paper", "extended"]
    k_agg: int | None
    n_features: int
    by_query: ClassVar[bool] = True
    export_kinds: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        return (
            f"VoterCascade({self.first.name}, then {len(self.voters)} voters on the first "
            f"{self.depth}; {self.n_features} features)"
        )

    @property
    def stages(self) -> Mapping[str, Stage]:
        """The stages by name: "first", "voter 1", .."""
        voters = {f"voter {i}": voter for i, voter in enumerate(self.voters, 1)}
        return {"first": self.first, **voters}

    @property
    def reads_missing(self) -> bool:
        return all(stage.reads_missing for stage in (self.first, *self.voters))

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        """Return scores that are n for the best of a query's n documents, .., 1 for the last."""
        data = _unlabeled(X, offsets)
        if not data.n_docs:
            return np.empty(0)
        base = self.first.predict(data, threads)
        votes = np.stack([voter.predict(data, threads) for voter in self.voters])
        from firstpage.evaluation.aggregation import (
            Ballots,
            SupervisedKemeny,
            aggregate,  # other models do not need it
        )

        ballots = Ballots.from_scores(votes, data.offsets, base, depth=self.depth)
        method = SupervisedKemeny(credit=self.credit, k_agg=self.k_agg)
        return aggregate(ballots, method, weights=self.weights.tolist()).scores

    def explain(self) -> Importances:
        """Return the weight of each vote."""
        return Importances("weight of the vote", self.weights, self._voter_names())

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return the score of each voter; they do not sum to the score."""
        data = _unlabeled(X, offsets)
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
            "k_agg": self.k_agg,
            "n_features": self.n_features,
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> VoterCascade:
        first = Stage.from_dict(stored["first"])
        voters = tuple(Stage.from_dict(voter) for voter in stored["voters"])
        weights, size = np.array(stored["weights"], np.float64), stored["n_features"]
        if weights.shape != (len(voters),) or not len(voters):
            raise DataError("a cascade has one weight per voter")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise DataError("the weights of a cascade must be finite and at least 0")
        if any(stage.scoring.n_features != size for stage in (first, *voters)):
            raise DataError("the stages of a cascade have different numbers of features")
        depth, k_agg = stored["depth"], stored["k_agg"]
        if type(depth) is not int or depth < 1 or stored["credit"] not in ("paper", "extended"):
            raise DataError("the depth or the credit of the cascade is invalid")
        if k_agg is not None and (type(k_agg) is not int or k_agg < 1):
            raise DataError("k_agg of the cascade is invalid")
        return cls(first, voters, weights, depth, stored["credit"], k_agg, size)


def _unlabeled(X: Features, offsets: Ints | None) -> Dataset:
    """Return documents without labels, as one query where there are no offsets."""
    rows = X.shape[0]
    ends = np.array([0, rows]) if offsets is None else offsets
    return Dataset(X, np.zeros(rows), ends, Ids.from_values(range(len(ends) - 1)))


def scoring_from_dict(stored: JsonObject) -> Scoring:
    """Return the scoring that a model file stores."""
    return {**SCORINGS, "cascade": VoterCascade.from_dict}[stored["kind"]](stored)
