"""LambdaMART of LightGBM and of XGBoost as a ranker, for comparison."""

from __future__ import annotations

import os
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from firstpage.core import DataError
from firstpage.core.engine import Engine
from firstpage.data.preferences import MeasureSource, Utility
from firstpage.learning.losses.base import Loss
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.fit.composition import Procedure
from firstpage.learning.rankers.fit.estimator import Grid, LearnsFrom
from firstpage.learning.rankers.fit.fit import fit_trees, growth_options
from firstpage.learning.rankers.fit.request import FitRequest, FitResult
from firstpage.learning.rankers.sharded.data import check_trees
from firstpage.learning.rankers.trees.growth import (
    MAX_LABEL,
    LambdaRankOptions,
    tree_grid,
)
from firstpage.learning.scorers.registry import scorer as scorer_of
from firstpage.learning.scorers.trees import Trees

MAX_GRADE = 10_000  # the largest label with a gain


@dataclass(eq=False, repr=False)
class LambdaMART(Ranker):
    """Boosted trees with the objective lambdarank of LightGBM, or rank:ndcg of XGBoost.

    `k` is the truncation level (the default of the library, 30 or 32, if None).  Labels must be
    integers from 0 to 30, and lists have at most 10,000 documents: limits of LightGBM.

    Clicks depend on the position at which a document was shown.  With positions (`position` of
    `fit`, or `Dataset.with_positions`), the position bias is estimated together with the trees:
    by `position` of LightGBM, or by `lambdarank_unbiased` of XGBoost.  Scores do not depend on
    positions.  A warning says where documents with equal features do not connect all positions:
    the effect of a position is then not identified by documents that moved.

    Parameters
    ----------
    scorer : str or Trees, default "trees(count=300, leaves=31, rate=0.1)"
        Trees, with parameters as in "trees(count=300, rate=0.05)" or "trees(library=xgboost)".
    gain : list of float, Utility or path, optional
        The gains of the labels 0, 1, ..: numbers, a Utility, or a measure file such as
        "measure.json", whose gains are used.  None stands for 2^label - 1.

    References
    ----------
    Burges, "From RankNet to LambdaRank to LambdaMART: an overview", MSR-TR-2010-82.

    Examples
    --------
    >>> import firstpage as fp
    >>> X, y, qid = [[float(i)] for i in range(40)], [i // 20 for i in range(40)], [7] * 40
    >>> ranker = fp.LambdaMART(scorer="trees(count=3, min_docs=5)").fit(X, y, qid=qid)
    >>> low, high = ranker.predict([[5.0], [35.0]])
    >>> bool(high > low)
    True
    """

    _paper = "Burges, MSR-TR-2010-82; LightGBM"
    _about = "lambdarank of LightGBM or XGBoost, for comparison"
    _supports_shards: ClassVar[bool] = True
    _uses_positions: ClassVar[bool] = True

    _: KW_ONLY
    scorer: Any = "trees(count=300, leaves=31, rate=0.1)"
    gain: Any = None

    def compose(self, learns_from: LearnsFrom = "labels") -> LambdaTrees:
        if self.ties == "random":
            raise DataError(
                "LambdaMART maximizes a measure of the labels as they are; ties='random' has no "
                "effect on it. Leave ties out."
            )
        trees, gains = scorer_of(self.scorer), gains_of(self.gain)
        if not trees.additive:
            raise DataError("LambdaMART grows trees: scorer='trees(..)'.")
        if trees.library != "lightgbm" and gains is not None:
            raise DataError("gain is an option of LightGBM; XGBoost's gains are 2^label - 1.")
        if trees.randomized:
            raise DataError(
                "LightGBM's lambdarank has one forest, no noise and all queries; leave forests, "
                "noise and query_fraction out, or use LambdaRank(scorer='trees(..)')."
            )
        default = 30 if trees.library == "lightgbm" else 32
        rank = LambdaRankOptions(self.k or default, None if gains is None else tuple(gains))
        return LambdaTrees(trees, rank)


@dataclass(frozen=True, eq=False)
class LambdaTrees(Procedure):
    """Trees that are grown by lambdarank of LightGBM, or by rank:ndcg of XGBoost."""

    trees: Trees
    rank: LambdaRankOptions

    def fit(self, request: FitRequest) -> FitResult:
        options = growth_options(request)
        growth = request.training.lambdarank_growth(self.trees, self.rank, options)
        result = fit_trees(request, growth)
        if self.rank.gains is not None:  # the measure file may be deleted later
            result.record["label_gain"] = list(self.rank.gains)
        return result

    def check_engine(self, engine: Engine) -> None:
        check_trees(engine, self.trees)

    def tree_loss(self, name: str) -> Loss:
        raise DataError("lambdarank is LightGBM's own: {'objective': 'lambdarank'}.")

    def grid(self, of_paper: Grid) -> Grid:
        return tree_grid(self.trees)


def gains_of(gain: object) -> list[float] | None:
    """Return LightGBM's `label_gain` for any form of the parameter `gain`."""
    if gain is None:
        return None
    if isinstance(gain, (str, os.PathLike)):
        source = (
            MeasureSource.parse(gain) if isinstance(gain, str) else MeasureSource(os.fspath(gain))
        )
        if source.form == "weights":
            raise DataError("gain needs the gains of a measure file: use form=gains, or no form.")
        gain = source.read()
    if isinstance(gain, Utility):
        best = gain.grades[-1]
        if best > MAX_GRADE:
            raise DataError(f"gain: LightGBM takes labels up to {MAX_GRADE}, not {best}.")
        gain = gain.label_gain(2.0 ** min(best, MAX_LABEL) - 1.0 if best > 0 else 1.0)
    try:
        values = np.asarray(gain, np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.ndim != 1 or len(values) < 2 or not np.isfinite(values).all():
        raise DataError(
            "gain must be numbers for the labels 0, 1, .., a Utility or a measure file; got "
            f"{gain!r}."
        )
    if values[0] < 0 or (np.diff(values) < 0).any() or values[0] == values[-1]:
        raise DataError(f"gain must rise from 0 or above; got {values.tolist()}.")
    return [float(value) for value in values]
