"""Simulated assessors who agree as those of Niu et al. 2012 did: a fixture for studies.

Each sees the common utility of a document with noise of their own, and each draws the lines
between grades a little higher or lower.  With the defaults, 50 documents and k = 10 two of
them agree on about .75 of all pairs by top-k results and .89 without ties (the paper's .745 and
.897), and on .64 and .89 by five grades.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firstpage.errors import DataError
from firstpage.labeling.statistics.records import Labels
from firstpage.labeling.statistics.relations import top_labels
from firstpage.types import Floats


@dataclass(frozen=True)
class Crowd:
    """How people see: `noise` is the sd of a utility (itself of sd 1), `jitter` that of the lines.

    `lines` between grades are quantiles of a query's utilities.
    """

    noise: float = 0.5
    jitter: float = 0.35
    lines: tuple[float, ...] = (0.5, 0.7, 0.85, 0.95)

    def __post_init__(self) -> None:
        if self.noise < 0 or self.jitter < 0:
            raise DataError("noise and jitter must be numbers from 0 on.")
        if list(self.lines) != sorted(self.lines) or not all(0 <= x <= 1 for x in self.lines):
            raise DataError(f"lines must ascend between 0 and 1; got {self.lines}.")

    def seen(self, utility: Floats, rng: np.random.Generator) -> Floats:
        """One person's view of the documents."""
        return utility + self.noise * rng.standard_normal(len(utility))

    def grades(self, utility: Floats, rng: np.random.Generator) -> Floats:
        """One person's grades, 0 the worst; the lines move together."""
        lines = np.quantile(utility, self.lines) + self.jitter * rng.standard_normal()
        return np.digitize(self.seen(utility, rng), lines).astype(np.float64)


def simulated_results(
    queries: int = 50, documents: int = 50, k: int = 10, assessors: int = 2, *,
    crowd: Crowd | None = None, tools: Sequence[str] = ("pairs", "grades"), seed: int = 0,
) -> dict[tuple[str, str, str], Labels]:  # fmt: skip
    """Final results of every assessor on every query: top-k labels ("pairs") and grades."""
    odd = set(tools) - {"pairs", "grades"}
    if odd:
        raise DataError(f"tools must be pairs and grades; got {min(odd)!r}.")
    view = Crowd() if crowd is None else crowd
    rng = np.random.default_rng(seed)
    found: dict[tuple[str, str, str], Labels] = {}
    names = [f"d{i:0{len(str(documents - 1))}}" for i in range(documents)]
    for q in range(queries):
        utility = rng.standard_normal(documents)
        for a in range(assessors):
            if "pairs" in tools:
                best = np.argsort(-view.seen(utility, rng))[:k]
                found[f"q{q}", f"u{a}", "pairs"] = top_labels([names[i] for i in best], names, k)
            if "grades" in tools:
                grades = view.grades(utility, rng).tolist()
                found[f"q{q}", f"u{a}", "grades"] = dict(zip(names, grades, strict=True))
    return found
