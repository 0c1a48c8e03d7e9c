"""LightGBM's own LambdaMART behind our interface, to compare with."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from firstpage.engine.threads import resolve
from firstpage.errors import DataError
from firstpage.rankers.base import Ranker
from firstpage.rankers.fitting import Fitted, Job, fit_boosted
from firstpage.scorers.parts import scorer as scorer_of
from firstpage.scorers.trees import Grown, LightGBM, Trees, lightgbm_or_error, refusals
from firstpage.types import Floats

MOST = 30  # LightGBM has gains 2^label - 1 for labels up to this


@dataclass(eq=False, repr=False)
class LambdaMART(Ranker):
    """Boosted trees on LightGBM's lambdarank objective (Burges 2010).

    k is its truncation level (LightGBM's default, 30, if None).  Labels must be whole numbers from
    0 to 30, and lists have at most 10,000 documents: limits of LightGBM, not of our objectives.
    """

    _paper = "Burges, MSR-TR-2010-82; LightGBM"
    _about = "LightGBM's lambdarank, for comparison"
    _grid: ClassVar = {"scorer": [Trees(rate=rate) for rate in (0.03, 0.1)]}

    _: KW_ONLY
    scorer: Any = "trees"

    def _learn(self, job: Job) -> Fitted:
        trees = scorer_of(self.scorer)
        if not isinstance(trees, Trees) or trees.library != "lightgbm":
            raise DataError("LambdaMART grows trees of LightGBM: scorer='trees(..)'.")
        lightgbm = lightgbm_or_error()
        data, training = job.training.data, job.training
        _check(data.y, data.lengths)
        params = {
            **trees.parameters(job.seed, resolve(job.threads)),
            "objective": "lambdarank",
            "metric": "none",  # its own would ask the validation data for queries
            "lambdarank_truncation_level": self.k or 30,
        }
        weight = training.weights
        if training.query_weights is not None:
            each = np.repeat(training.query_weights, data.lengths)
            weight = each if weight is None else weight * each
        valid = None if job.valid is None else job.valid.X

        def grow(grown: Grown) -> tuple[Any, int]:
            full = lightgbm.Dataset(
                data.X, data.y.astype(int), group=data.lengths, weight=weight, params=params,
                free_raw_data=False,
            )  # fmt: skip
            with refusals("lightgbm"):
                booster = lightgbm.Booster(params, full)
                return LightGBM.boost(booster, full, valid, trees.count, grown, {})

        return fit_boosted(job, trees, grow, lambda: 0.0)  # lambdarank has no loss to show


def _check(y: Floats, lengths: Any) -> None:
    if (y != np.round(y)).any() or (y < 0).any() or (y > MOST).any():
        raise DataError(
            f"LightGBM's lambdarank takes whole labels from 0 to {MOST}; these are not. Our own "
            "objectives take any: ListMLE(scorer='trees')."
        )
    if int(lengths.max(initial=0)) > 10_000:
        raise DataError(
            f"LightGBM's lambdarank takes lists of up to 10,000 documents, and one has "
            f"{int(lengths.max())}. Our own objectives take any: ListMLE(scorer='trees')."
        )
