"""Measures of a user's own, as a module that texts can name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import firstpage as fp
from firstpage.core.types import Floats

ABSENT = 3


@dataclass(frozen=True)
class OwnPrecision(fp.extend.Measure):
    """Precision in the first k ranks, without the mean over ties."""

    level: float = 1.0
    cutoff: int | None = None

    def values(self, lists: fp.extend.RankedLists, convention: fp.Convention) -> Floats:
        k = self.cutoff or 10
        rank = np.arange(len(lists.labels)) - np.repeat(lists.offsets[:-1], lists.lengths)
        hits = (lists.labels >= self.level) & (rank < k)
        return np.add.reduceat(hits, lists.offsets[:-1]) / k


@dataclass(frozen=True)
class LowerIsBetter(OwnPrecision):
    """The negative of it."""

    lower_is_better = True

    def values(self, lists: fp.extend.RankedLists, convention: fp.Convention) -> Floats:
        return -super().values(lists, convention)


@dataclass(frozen=True)
class NamedAsElsewhere(OwnPrecision):
    """One with parameters that ir_measures has too."""

    judged_only: bool = False
    max_rel: float = 1.0
    dcg: str = "none"


def reciprocal_rank(labels: Floats, ideal: Floats) -> float:
    """Return 1 / rank of the first relevant document."""
    relevant = np.flatnonzero(labels >= 1)
    return 1 / (1 + relevant[0]) if len(relevant) else 0.0


def ndcg(labels: Floats, ideal: Floats) -> float:
    """Return NDCG with exponential gains."""

    def dcg(x: Floats) -> float:
        gains = np.exp2(np.nan_to_num(x)) - 1
        return float(gains @ (1 / np.log2(np.arange(2, len(x) + 2))))

    return dcg(labels) / dcg(ideal) if dcg(ideal) else 0.0
