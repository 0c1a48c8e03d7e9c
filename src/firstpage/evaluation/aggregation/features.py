"""Features of documents for learned fusion: what each ranker says, and what they agree on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from firstpage.core import DataError, Floats
from firstpage.core.kernels.voting import ABSENT
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.fusion import ISR, RRF, Borda
from firstpage.evaluation.aggregation.normalization import normalized_scores
from firstpage.evaluation.aggregation.score_fusion import CombMED, CombMNZ, CombSUM

FAMILIES = ("presence", "rank", "score", "agreement")
"""The groups of features: per ranker whether it lists the document, functions of its rank, and its
normalized score; and per document how many rankers agree on it."""
RANK_CONSTANTS = (0.0, 10.0)  # c of the features 1 / (c + rank), relative to rank 1


def check_families(families: object) -> tuple[str, ...]:
    """Return the names of feature families; refuse unknown ones and an empty list."""
    words = families.split(",") if isinstance(families, str) else families
    names = tuple(str(word).strip() for word in words) if isinstance(words, (list, tuple)) else ()
    unknown = [name for name in names if name not in FAMILIES]
    if not names or unknown:
        problem = f"got {unknown[0]!r}" if unknown else f"got {families!r}"
        raise DataError(f"features must be some of {', '.join(FAMILIES)}; {problem}.")
    return names


def fusion_features(
    ballots: Ballots, families: tuple[str, ...] = FAMILIES
) -> tuple[Floats, tuple[str, ...]]:
    """Return one row of features per candidate, in base order, and the names of the columns.

    No feature depends on the numbering of the rankers, and none on judgments.
    """
    names, columns = zip(*_columns(ballots, families), strict=True)
    return np.ascontiguousarray(np.stack(columns, axis=1)), names


def _columns(ballots: Ballots, families: tuple[str, ...]) -> Iterator[tuple[str, Floats]]:
    listed = ballots.positions != ABSENT
    ranks = np.where(listed, ballots.positions, 0) + 1.0
    if "presence" in families:
        for name, row in zip(ballots.names, listed, strict=True):
            yield f"{name}: listed", row.astype(np.float64)
    if "rank" in families:
        for c in RANK_CONSTANTS:
            terms = np.where(listed, (c + 1.0) / (c + ranks), 0.0)
            for name, row in zip(ballots.names, terms, strict=True):
                yield f"{name}: 1/({c:g}+rank)", row
    if "score" in families:
        table = np.nan_to_num(normalized_scores(ballots, "min-max", "the family score"))
        for name, row in zip(ballots.names, table, strict=True):
            yield f"{name}: score", row
    if "agreement" in families:
        yield from _agreement(ballots)


def _agreement(ballots: Ballots) -> Iterator[tuple[str, Floats]]:
    """Yield what the rankers together say on each document."""
    listed = ballots.positions != ABSENT
    votes = listed.mean(axis=0)
    yield "lists", votes
    yield (
        "lists, of the most in the query",
        votes / np.maximum(_query_maximum(ballots, votes), 1e-9),
    )
    for method in (RRF(), ISR(), Borda(), CombSUM("rank"), CombMNZ("rank"), CombMED("rank")):
        points = method.points(ballots) / ballots.n_rankers
        if isinstance(method, Borda):
            points = points / np.repeat(np.maximum(ballots.lengths, 1), ballots.lengths)
        scale = np.maximum(_query_maximum(ballots, points), 1e-9)
        yield str(method), points / scale
    yield "best rank", _best_rank(ballots)


def _best_rank(ballots: Ballots) -> Floats:
    """Return 1 / the best rank of each candidate in any list; 0 if there is none."""
    best = ballots.positions.min(axis=0)
    return np.where(best == ABSENT, 0.0, 1.0 / (best + 1.0))


def _query_maximum(ballots: Ballots, values: Floats) -> Floats:
    """Return the greatest value of each candidate's query."""
    filled = ballots.lengths > 0
    if not filled.any():
        return values
    greatest = np.maximum.reduceat(values, ballots.offsets[:-1][filled])
    return np.repeat(greatest, ballots.lengths[filled])
