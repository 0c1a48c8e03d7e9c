"""A model as targets see it, and what each of them can take of it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.data.transforms import MinMax, Standardize
from firstpage.errors import DataError, FirstpageWarning
from firstpage.exporting.features import Features
from firstpage.exporting.floats import floor32, unscaled
from firstpage.exporting.forest import Forest
from firstpage.exporting.grown import forest_of
from firstpage.rankers.cascade import Cascade
from firstpage.rankers.files import Model
from firstpage.scorers.linear import LinearScoring
from firstpage.scorers.mlp import MLPScoring
from firstpage.types import Floats, Ints

MANY = 1000  # trees, beyond which float32 sums lose more than a millionth


@dataclass(frozen=True, eq=False)
class Subject:
    """What is exported, and under which name."""

    name: str
    features: Features
    scoring: Any
    transform: MinMax | Standardize | None
    ranker: str
    source: str

    @property
    def kind(self) -> str:
        if isinstance(self.scoring, LinearScoring):
            return "linear"
        return "network" if isinstance(self.scoring, MLPScoring) else "trees"

    def for_engine(self, engine: str) -> None:
        """Refuse what an engine that scores one document at a time cannot do."""
        if self.kind == "network":
            raise DataError(
                f"{self.source} is a network, which {engine} cannot score; export it to onnx or "
                "numpy."
            )
        if self.transform is not None and self.transform.per == "query":
            raise DataError(
                f"{self.source} scales features query by query, and {engine} sees one document at "
                "a time; export to onnx or numpy, or train without normalize (or with "
                "normalize='global minmax' or 'global standard')."
            )

    def weights(self) -> tuple[Floats, float]:
        """Of features as they come, scaling over all documents folded in."""
        weights, intercept = self.scoring.coefficients
        if self.transform is None:
            return weights, float(intercept)
        shift, scale = self._scaling()
        folded = weights / scale
        constant = float(intercept - np.dot(folded, shift))
        if not np.isfinite(folded).all() or not np.isfinite(constant):
            raise DataError(f"{self.source}: a weight is infinite once scaling is folded in.")
        return folded, constant

    def forest(self) -> Forest:
        """Trees over features as they come; they split float64 numbers as the model does.  With
        scaling folded in, float32 numbers."""
        found = forest_of(self.scoring, self.source)
        if self.transform is None:
            return found
        shift, scale = self._scaling()

        def change(feature: Ints, threshold: Floats) -> Floats:
            return unscaled(threshold, shift[feature], scale[feature]).astype(np.float64)

        return found.with_thresholds(change)

    def forest32(self) -> Forest:
        """Trees whose thresholds are float32 numbers and split those as the model does.

        The last come first where the model adds in float64: they are the smallest, and float32 sums
        lose least that way.
        """
        found = self.forest().with_thresholds(lambda _, t: floor32(t).astype(np.float64))
        if len(found.trees) > MANY:
            warnings.warn(
                f"{len(found.trees)} trees are added up in float32 there: scores may be off by "
                "more than a millionth.",
                FirstpageWarning,
                stacklevel=4,
            )
        return found if found.single else replace(found, trees=found.trees[::-1])

    def _scaling(self) -> tuple[Floats, Floats]:
        assert self.transform is not None
        shift, scale = self.transform.shift, self.transform.scale
        if shift is None or scale is None or not (np.isfinite(shift) & np.isfinite(scale)).all():
            raise DataError(f"{self.source}: its scaling of features is not known for all of them.")
        return shift, scale


@dataclass(frozen=True)
class Files:
    """What a target makes: the model's file first; and how to bring them to the engine."""

    model: str
    contents: dict[str, bytes]
    how: str


def part_of(model: Model, part: str | None) -> tuple[Any, Any, str]:
    """(scoring, transform, ranker) of a model, or of a part of a cascade."""
    if not isinstance(model.scoring, Cascade):
        if part is not None:
            raise DataError(f"{model.source} has no parts; leave out part={part!r}.")
        return model.scoring, model.transform, model.ranker
    cascade = model.scoring
    stages = {"first": cascade.first}
    stages |= {f"voter {i}": voter for i, voter in enumerate(cascade.voters, 1)}
    if part is None:
        raise DataError(
            f"{model.source} is a {model.ranker}: several models vote on the order, which no "
            "engine can; export one of them: part='first' (--part first), or 'voter 1' .. "
            f"'voter {len(cascade.voters)}'."
        )
    if part not in stages:
        raise DataError(f"{model.source} has no part {part!r}; it has {', '.join(stages)}.")
    stage = stages[part]
    if stage.transform is not None and model.transform is not None:
        raise DataError(f"{model.source}: {part} scales what is already scaled; export it alone.")
    return stage.scoring, stage.transform or model.transform, stage.name


def single_weights(weights: Floats, source: str, engine: str) -> Floats:
    """Weights as float32 has them; refused where it cannot hold them."""
    with np.errstate(over="ignore"):
        found = weights.astype(np.float32)
    largest = float(np.abs(weights).max(initial=0.0))
    if not np.isfinite(found).all() or 0 < largest < 1e-30:
        raise DataError(
            f"{source}: a weight of {largest:g} is beyond the float32 numbers of {engine}; scale "
            "the features before training, or export to onnx, numpy or vespa."
        )
    return found.astype(np.float64)
