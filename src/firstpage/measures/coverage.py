"""How far a run and judgments cover each other: what is missing is said, in one line per run."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from firstpage.data.ids import Ids
from firstpage.errors import FirstpageWarning
from firstpage.kernels.hits import hits
from firstpage.measures.lists import Lists

SHOWN = 5  # queries that a warning names
DEPTH = 10  # documents per query that are looked at, where no measure has a cut-off


@dataclass(frozen=True, eq=False)
class Coverage:
    """Queries that only one side has.

    missing   judged, and not in the run; of so many `judged`
    unjudged  in the run, and not judged; of so many `retrieved`
    """

    missing: Ids | list[str]
    judged: int
    unjudged: Ids | list[str]
    retrieved: int


def warn_of_gaps(found: Coverage, lists: Lists, queries: str, name: str, depth: int) -> None:
    """Warn, in one line, of queries and documents that the run or the judgments lack."""
    gaps = []
    if found.missing:
        fate = "count 0" if queries == "judged" else "are left out of the means"
        gaps.append(
            f"{len(found.missing)} of {found.judged} judged queries are not in the run and {fate}: "
            f"{some_of(found.missing)}"
        )
    if found.unjudged:
        gaps.append(
            f"{len(found.unjudged)} of its {found.retrieved} queries are not judged and are left "
            f"out: {some_of(found.unjudged)}"
        )
    if share := unjudged_fraction(lists, depth):
        shown = f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
        gaps.append(f"{shown} of the documents in the top {depth} are unjudged")
    if gaps:
        warnings.warn(f"{name}: {'; '.join(gaps)}.", FirstpageWarning, stacklevel=4)


def unjudged_fraction(lists: Lists, depth: int) -> float:
    """Return the fraction of documents in the first `depth` of all queries without a judgment."""
    shown = np.minimum(lists.lengths, depth)
    total = int(shown.sum())
    if lists.origin is None or not total:
        return 0.0
    judged = np.empty(len(lists))
    hits(lists.labels, lists.block, lists.offsets, -np.inf, shown, judged)
    return max(0.0, 1.0 - float(judged.sum()) / total)


def some_of(queries: Ids | list[str]) -> str:
    """The first few ids."""
    return ", ".join(queries[i] for i in range(min(SHOWN, len(queries)))) + (
        ", .." * (len(queries) > SHOWN)
    )
