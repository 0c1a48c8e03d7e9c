"""The protocol that the papers on training share: LETOR's folds, parameters chosen on validation
data, test values query by query.

A work is one ranker on one fold, so that little is lost when a study is stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from firstpage.data.folds import Fold, read_folds
from firstpage.errors import DataError
from firstpage.papers.study.study import Row, Work
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.selection.cross_validation import cross_validate

FOLDS = (1, 2, 3, 4, 5)
# What the numbers of trained rankers come from, beside the study's own modules.
MODULES = (
    "firstpage.papers.study.letor_protocol", "firstpage.rankers", "firstpage.losses",
    "firstpage.solvers", "firstpage.scorers", "firstpage.measures", "firstpage.kernels",
    "firstpage.data",
)  # fmt: skip


@lru_cache(maxsize=2)
def fold(folder: str, number: int) -> Fold:
    """One fold; works of one fold follow each other, so that it is read once."""
    found = {each.number: each for each in read_folds(folder)}
    if number not in found:
        raise DataError(f"{folder}: there is no fold {number}; the papers have five.")
    return found[number]


def over_folds(
    do: Callable[..., list[Row]], params: Mapping[str, Any], needs: str, **how: Any
) -> list[Work]:
    """A work a fold; all that is trained on a fold with one seed sees the same random numbers."""
    return [
        Work(do, {**params, "fold": number}, f"fold {number}", needs=needs, **how)
        for number in FOLDS
    ]


def measured(
    ranker: Ranker,
    on: Fold,
    measures: Sequence[str],
    labels: Mapping[str, Any],
    seed: int,
    convention: str = "letor",
    **how: Any,
) -> list[Row]:
    """Rows of a ranker that is fitted on a fold and measured on its test queries.

    how  options of `cross_validate`: tuned, grid, top_k, ..
    """
    found = cross_validate({"it": ranker}, [on], measures, convention, seeds=[seed], **how)
    return rows_of({m: found.values["it"][m][0] for m in found.measures}, labels)


def rows_of(values: Mapping[str, Any], labels: Mapping[str, Any]) -> list[Row]:
    """A row a measure, from its values by query."""
    return [
        {**labels, "measure": measure, "value": float(np.mean(each)),
         "queries": [round(float(v), 6) for v in each]}
        for measure, each in values.items()
    ]  # fmt: skip


def seed_of(rng: np.random.Generator) -> int:
    """For parts that take a seed and no generator."""
    return int(rng.integers(2**31))
