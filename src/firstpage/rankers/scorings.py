"""What model files hold, by kind; and a scoring with the scaling of features in front of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from firstpage.data.columns import ColumnMatch
from firstpage.data.dataset import Dataset
from firstpage.data.transforms import MinMax, Standardize, transform_from_dict
from firstpage.scorers.linear import LinearScoring
from firstpage.scorers.mlp import MLPScoring
from firstpage.scorers.scorer import Scoring
from firstpage.scorers.stumps import StumpsScoring
from firstpage.scorers.trees import TreesScoring
from firstpage.types import Floats

SCORINGS: dict[str, Any] = {
    "linear": LinearScoring, "mlp": MLPScoring, "trees": TreesScoring, "stumps": StumpsScoring,
}  # fmt: skip


def scores_of(scoring: Any, data: Dataset, threads: int | None = None) -> Floats:
    """One score per document; some scorings look at a query's documents together."""
    by_query = getattr(scoring, "predict_queries", None)
    found: Floats
    found = scoring.predict(data.X, threads) if by_query is None else by_query(data, threads)
    return found


@dataclass(frozen=True, eq=False)
class Stage:
    """A model inside another model."""

    name: str
    scoring: Scoring
    transform: MinMax | Standardize | None = None
    columns: ColumnMatch | None = None  # of the data that are scored; None: as they are

    def stage_for(self, data: Any) -> Stage:
        """Return itself: its columns are matched already."""
        return self

    def predict(self, data: Dataset, threads: int | None = None) -> Floats:
        data = data if self.columns is None else self.columns.apply(data)
        data = self.transform.apply(data) if self.transform else data
        return scores_of(self.scoring, data, threads)

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "normalize": None if self.transform is None else self.transform.to_dict(),
            "scorer": self.scoring.to_dict(),
        }

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Stage:
        scoring = SCORINGS[stored["scorer"]["kind"]].from_dict(stored["scorer"])
        held = stored["normalize"]
        return cls(
            str(stored["name"]), scoring, None if held is None else transform_from_dict(held)
        )
