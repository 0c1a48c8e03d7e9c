"""Normalizations of scores: they make the scores of different systems comparable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from firstpage.core import DataError, Floats, lookup
from firstpage.core.kernels import fusion as kernel

if TYPE_CHECKING:
    from firstpage.evaluation.aggregation.ballots import Ballots

NORMALIZATIONS: dict[str, int] = {
    "none": 0, "min-max": kernel.MIN_MAX, "max": kernel.MAX, "sum": kernel.SUM, "z": kernel.Z,
    "rank": kernel.RANK, "borda": kernel.BORDA,
}  # fmt: skip
ALIASES = {"zmuv": "z", "z-score": "z"}


def parse_normalization(name: str) -> str:
    """Return the listed name of a normalization, from any spelling of it."""
    known = {**{key: key for key in NORMALIZATIONS}, **ALIASES}
    return lookup(str(name), known, "normalization")


def normalized_scores(ballots: Ballots, normalization: str, method: str) -> Floats:
    """Return the rankers' normalized scores of the candidates; NaN where one is not listed.

    `method` is for the errors: ballots without scores can be normalized by rank alone.
    """
    kind = NORMALIZATIONS[normalization]
    out = np.empty(ballots.positions.shape)
    if kind >= kernel.RANK:
        borda, ignore = int(kind == kernel.BORDA), int(ballots.missing == "ignore")
        kernel.normalize_ranks(ballots.positions, ballots.offsets, borda, ignore, out)
        return out
    scores = ballots.scores
    if scores is None:
        raise DataError(
            f"{method} adds up scores, and these ballots have ranks alone; give runs with "
            "scores, use normalize='rank' or 'borda', or a method by rank such as RRF."
        )
    infinite = np.isinf(scores).any() if kind == 0 else False
    ranker = -1 if kind == 0 else kernel.normalize_scores(scores, ballots.offsets, kind, out)
    if infinite or ranker < -1:
        raise DataError(f"{method} needs finite scores: {_place(ballots, scores)}.")
    if ranker >= 0:
        raise DataError(
            f"{ballots.names[ranker]}: a query has no score above 0, by which normalize='max' "
            "divides; use 'min-max' or 'z'."
        )
    return scores if kind == 0 else out


def _place(ballots: Ballots, scores: Floats) -> str:
    """Return which score is infinite, for the error; sums of finite ones may be, too."""
    infinite = np.argwhere(np.isinf(scores))
    if not len(infinite):
        return "their sum is infinite"
    ranker, column = infinite[0].tolist()
    query = int(np.searchsorted(ballots.offsets, column, side="right")) - 1
    return f"a score of {ballots.names[ranker]} in query {ballots.queries[query]!r} is infinite"
