"""LightGBM's own LambdaMART behind our interface, to compare with."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from firstpage.data.preferences.utility import Source, Utility
from firstpage.engine.engine import Engine
from firstpage.engine.threads import resolve
from firstpage.errors import DataError
from firstpage.rankers.fit.request import FitRequest, FitResult
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.sharded.data import Spread, check_trees
from firstpage.rankers.trees.fit import fit_boosted
from firstpage.scorers.registry import scorer as scorer_of
from firstpage.scorers.trees import Grown, LightGBM, Trees, lightgbm_or_error, refusals
from firstpage.types import Floats

MOST = 30  # LightGBM has gains 2^label - 1 for labels up to this
LABELS = 10_000  # more gains than that nobody means


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
    _spreads: ClassVar[bool] = True
    _grid: ClassVar = {"scorer": [Trees(rate=rate) for rate in (0.03, 0.1)]}

    _: KW_ONLY
    scorer: Any = "trees"
    gain: Any = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        gains_of(self.gain)

    def _check_place(self, place: Engine) -> None:
        check_trees(place, scorer_of(self.scorer))

    def _params(
        self, trees: Trees, request: FitRequest, gains: list[float] | None
    ) -> dict[str, Any]:
        return {
            **trees.parameters(request.seed, resolve(request.threads)),
            "objective": "lambdarank",
            "metric": "none",  # its own would ask the validation data for queries
            **self._options(gains),
        }

    def _options(self, gains: list[float] | None) -> dict[str, Any]:
        found: dict[str, Any] = {"lambdarank_truncation_level": self.k or 30}
        return found if gains is None else {**found, "label_gain": gains}

    def _learn(self, request: FitRequest) -> FitResult:
        trees = scorer_of(self.scorer)
        if not isinstance(trees, Trees) or trees.library != "lightgbm":
            raise DataError("LambdaMART grows trees of LightGBM: scorer='trees(..)'.")
        gains = gains_of(self.gain)
        found = self._grown(request, trees, gains)
        if gains is not None:
            found.record["label_gain"] = gains  # a measure file may be gone later
        return found

    def _grown(self, request: FitRequest, trees: Trees, gains: list[float] | None) -> FitResult:
        if isinstance(request.training, Spread):
            from firstpage.rankers.sharded.lightgbm import fit_cluster_trees

            check = partial(_check, gains=gains)
            return fit_cluster_trees(request, trees, "lambdarank", self._options(gains), check)
        lightgbm = lightgbm_or_error()
        training = request.training
        data = training.data
        _check(data.y, data.lengths, gains)
        params = self._params(trees, request, gains)
        weight = training.weights
        if training.query_weights is not None:
            each = np.repeat(training.query_weights, data.lengths)
            weight = each if weight is None else weight * each
        valid = None if request.valid is None else request.valid.X

        def grow(grown: Grown) -> tuple[Any, int]:
            full = lightgbm.Dataset(
                data.X, data.y.astype(int), group=data.lengths, weight=weight, params=params,
                free_raw_data=False,
            )  # fmt: skip
            with refusals("lightgbm"):
                booster = lightgbm.Booster(params, full)
                return LightGBM.boost(booster, full, valid, trees.count, grown, {})

        return fit_boosted(request, trees, grow, lambda: np.nan)  # lambdarank has no loss


def gains_of(gain: Any) -> list[float] | None:
    """LightGBM's `label_gain`, from any of the forms of `gain`."""
    if gain is None:
        return None
    if isinstance(gain, (str, os.PathLike)):
        source = Source.parse(gain) if isinstance(gain, str) else Source(os.fspath(gain))
        gain = source.read()
    if isinstance(gain, Utility):
        best = gain.grades[-1]
        if best > LABELS:
            raise DataError(f"gain: LightGBM takes labels up to {LABELS}, and a grade is {best}.")
        gain = gain.label_gain(2.0 ** min(best, MOST) - 1.0 if best > 0 else 1.0)
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


def _check(y: Floats, lengths: Any, gains: list[float] | None) -> None:
    if gains is not None and y.max(initial=0.0) >= len(gains):
        raise DataError(
            f"gain has gains of the labels 0 to {len(gains) - 1}, and the data hold a label "
            f"{y.max():g}; give one for every label."
        )
    most = MOST if gains is None else len(gains) - 1
    if (y != np.round(y)).any() or (y < 0).any() or (y > most).any():
        raise DataError(
            f"LightGBM's lambdarank takes whole labels from 0 to {most}; these are not. Our own "
            "objectives take any: ListMLE(scorer='trees')."
        )
    if int(lengths.max(initial=0)) > 10_000:
        raise DataError(
            f"LightGBM's lambdarank takes lists of up to 10,000 documents, and one has "
            f"{int(lengths.max())}. Our own objectives take any: ListMLE(scorer='trees')."
        )
