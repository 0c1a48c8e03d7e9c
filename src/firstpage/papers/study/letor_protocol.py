"""The protocol shared by the papers on training: LETOR's folds, parameters chosen on validation
data, test values per query.

An experiment trains one ranker on one fold, so that an interruption loses little.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from firstpage.core import DataError
from firstpage.data import Fold, read_folds
from firstpage.learning.rankers import Ranker, cross_validate
from firstpage.papers.study.study import Experiment, Row

FOLDS = (1, 2, 3, 4, 5)
# What computes the numbers of trained rankers, besides the modules of the study itself.
MODULES = (
    "firstpage.papers.study.letor_protocol", "firstpage.learning.rankers",
    "firstpage.learning.losses", "firstpage.learning.solvers", "firstpage.learning.scorers",
    "firstpage.evaluation.measures", "firstpage.core.kernels", "firstpage.data",
)  # fmt: skip


@lru_cache(maxsize=2)
def load_fold(folder: str, number: int) -> Fold:
    """Return one fold; experiments of a fold run one after the other, so that it is read once."""
    folds = {fold.number: fold for fold in read_folds(folder)}
    if number not in folds:
        raise DataError(f"{folder}: there is no fold {number}; the papers use five folds.")
    return folds[number]


def fold_experiments(
    function: Callable[..., list[Row]], params: Mapping[str, Any], dataset: str, **options: Any
) -> list[Experiment]:
    """Return an experiment per fold; those of one fold share their random numbers."""
    return [
        Experiment(
            function, {**params, "fold": number}, f"fold {number}", dataset=dataset, **options
        )
        for number in FOLDS
    ]


def evaluate_on_fold(
    ranker: Ranker,
    fold: Fold,
    measures: Sequence[str],
    labels: Mapping[str, Any],
    seed: int,
    convention: str = "letor",
    **options: Any,
) -> list[Row]:
    """Return the rows of a ranker that is fitted on a fold and measured on its test queries.

    `options` are passed to `cross_validate`: tuned, grid, top_k, ...
    """
    result = cross_validate(
        {"ranker": ranker}, [fold], measures, convention, seeds=[seed], **options
    )
    return measure_rows({m: result.values["ranker"][m][0] for m in result.measures}, labels)


def measure_rows(values: Mapping[str, Any], labels: Mapping[str, Any]) -> list[Row]:
    """Return a row per measure, from its values per query."""
    return [
        {
            **labels,
            "measure": measure,
            "value": float(np.mean(query_values)),
            "queries": [round(float(v), 6) for v in query_values],
        }
        for measure, query_values in values.items()
    ]


def draw_seed(rng: np.random.Generator) -> int:
    """Return a random seed, for code that takes a seed instead of a generator."""
    return int(rng.integers(2**31))
