"""How trees grow on training data in memory: along the gradients of a loss, or by lambdarank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.errors import DataError
from firstpage.rankers.trees.objective import Gradients
from firstpage.scorers.trees import Grown, LightGBM, Trees, lightgbm_or_error, refusals
from firstpage.types import Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features

MAX_LABEL = 30  # LightGBM has gains 2^label - 1 for labels up to this
MAX_LIST = 10_000  # documents of a query
Booster = Any
"""Trees of LightGBM or XGBoost, which have no types."""
Parameters = dict[str, Any]
"""Of LightGBM, as it calls them."""


@dataclass(frozen=True, eq=False)
class GrowthOptions:
    """valid: the features of the validation documents."""

    valid: Features | None
    seed: int
    threads: int


class Growth(Protocol):
    """Trees that are to grow."""

    def grow(self, grown: Grown) -> tuple[Booster, int]:
        """Return the booster and how many trees it has; `grown` is called after every tree."""
        ...

    def loss(self) -> float:
        """The mean training loss after the last tree; NaN where it is not known."""
        ...


@dataclass(frozen=True, eq=False)
class LossGrowth:
    """Along the gradients of a loss."""

    trees: Trees
    X: Features
    gradients: Gradients
    options: GrowthOptions

    def grow(self, grown: Grown) -> tuple[Booster, int]:
        options = self.options
        return self.trees.grow(
            self.X, self.gradients, options.valid, grown, options.seed, options.threads
        )

    def loss(self) -> float:
        return self.gradients.mean_loss()


@dataclass(frozen=True)
class LambdaRank:
    """LightGBM's lambdarank.

    gains        of the labels 0, 1, ..; None: 2^label - 1
    """

    truncation: int
    gains: tuple[float, ...] | None

    def parameters(self) -> Parameters:
        found: Parameters = {"lambdarank_truncation_level": self.truncation}
        return found if self.gains is None else {**found, "label_gain": list(self.gains)}

    def check(self, y: Floats, lengths: Ints) -> None:
        """Refuse labels and lists that LightGBM cannot learn from."""
        gains = self.gains
        if gains is not None and y.max(initial=0.0) >= len(gains):
            raise DataError(
                f"gain has gains of the labels 0 to {len(gains) - 1}, and the data hold a label "
                f"{y.max():g}; give one for every label."
            )
        most = MAX_LABEL if gains is None else len(gains) - 1
        if (y != np.round(y)).any() or (y < 0).any() or (y > most).any():
            raise DataError(
                f"LightGBM's lambdarank takes whole labels from 0 to {most}; these are not. Our "
                "own objectives take any: ListMLE(scorer='trees')."
            )
        if int(lengths.max(initial=0)) > MAX_LIST:
            raise DataError(
                f"LightGBM's lambdarank takes lists of up to 10,000 documents, and one has "
                f"{int(lengths.max())}. Our own objectives take any: ListMLE(scorer='trees')."
            )


@dataclass(frozen=True, eq=False)
class LambdaRankGrowth:
    """By lambdarank, of data in memory."""

    trees: Trees
    data: Dataset
    weight: Floats | None
    rank: LambdaRank
    options: GrowthOptions

    def grow(self, grown: Grown) -> tuple[Booster, int]:
        lightgbm, data, options = lightgbm_or_error(), self.data, self.options
        params = {
            **self.trees.parameters(options.seed, options.threads),
            "objective": "lambdarank",
            "metric": "none",  # its own would ask the validation data for queries
            **self.rank.parameters(),
        }
        full = lightgbm.Dataset(
            data.X, data.y.astype(int), group=data.lengths, weight=self.weight, params=params,
            free_raw_data=False,
        )  # fmt: skip
        with refusals("lightgbm"):
            booster = lightgbm.Booster(params, full)
            return LightGBM.boost(booster, full, options.valid, self.trees.count, grown, {})

    def loss(self) -> float:
        """Lambdarank has none."""
        return float("nan")
