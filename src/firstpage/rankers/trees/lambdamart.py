"""LightGBM's own LambdaMART behind our interface, to compare with."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from firstpage.data.preferences.utility import MeasureSource, Utility
from firstpage.engine.engine import Engine
from firstpage.errors import DataError
from firstpage.rankers.fit.fit import fit_trees, growth_options
from firstpage.rankers.fit.request import FitRequest, FitResult
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.sharded.data import check_trees
from firstpage.rankers.trees.growth import MAX_LABEL, LambdaRank, Objective
from firstpage.scorers.registry import scorer as scorer_of
from firstpage.scorers.trees import Trees

LABELS = 10_000  # gains at most


@dataclass(eq=False, repr=False)
class LambdaMART(Ranker):
    """Boosted trees on LightGBM's lambdarank objective (Burges 2010).

    k is its truncation level (LightGBM's default, 30, if None).  Labels must be whole numbers from
    0 to 30, and lists have at most 10,000 documents: limits of LightGBM, not of our objectives.

    gain       of the labels 0, 1, ..: numbers, a Utility, or a measure file ("measure.json"), whose
               gains are taken; None: 2^label - 1
    """

    _paper = "Burges, MSR-TR-2010-82; LightGBM"
    _about = "LightGBM's lambdarank, for comparison"
    _sharded: ClassVar[bool] = True
    _grid: ClassVar = {"scorer": [Trees(rate=rate) for rate in (0.03, 0.1)]}

    _: KW_ONLY
    scorer: Any = "trees"
    gain: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        gains_of(self.gain)

    def _check_engine(self, engine: Engine) -> None:
        check_trees(engine, self._trees())

    def _trees(self) -> Trees:
        trees = scorer_of(self.scorer)
        if not trees.additive or trees.library != "lightgbm":
            raise DataError("LambdaMART grows trees of LightGBM: scorer='trees(..)'.")
        return trees

    def _learn(self, request: FitRequest) -> FitResult:
        trees = self._trees()
        gains = gains_of(self.gain)
        rank = LambdaRank(self.k or 30, None if gains is None else tuple(gains))
        growth = request.training.lambdarank_growth(trees, rank, growth_options(request))
        found = fit_trees(request, trees, growth)
        if gains is not None:
            found.record["label_gain"] = gains  # a measure file may be gone later
        return found

    def _tree_objective(self) -> Objective:
        raise DataError("lambdarank is LightGBM's own: {'objective': 'lambdarank'}.")


def gains_of(gain: object) -> list[float] | None:
    """LightGBM's `label_gain`, from any of the forms of `gain`."""
    if gain is None:
        return None
    if isinstance(gain, (str, os.PathLike)):
        source = (
            MeasureSource.parse(gain) if isinstance(gain, str) else MeasureSource(os.fspath(gain))
        )
        gain = source.read()
    if isinstance(gain, Utility):
        best = gain.grades[-1]
        if best > LABELS:
            raise DataError(f"gain: LightGBM takes labels up to {LABELS}, and a grade is {best}.")
        gain = gain.label_gain(2.0 ** min(best, MAX_LABEL) - 1.0 if best > 0 else 1.0)
    try:
        found = np.asarray(gain, np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 1 or len(found) < 2 or not np.isfinite(found).all():
        raise DataError(
            "gain must be numbers for the labels 0, 1, .., a Utility or a measure file; got "
            f"{gain!r}."
        )
    if found[0] < 0 or (np.diff(found) < 0).any() or found[0] == found[-1]:
        raise DataError(f"gain must rise from 0 or above; got {found.tolist()}.")
    return [float(value) for value in found]
