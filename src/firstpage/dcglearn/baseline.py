"""Is a learned measure better than DCG?  On pairs that it has not learned from."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from firstpage.data.preferences.utility import KINDS, Form, Utility
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.validation import cross_validated, folds, hits
from firstpage.errors import DataError
from firstpage.measures.significance import bootstrap
from firstpage.types import Floats, Ints

ROUNDS, LEVEL = 1000, 0.95  # of the bootstrap over queries
MAX_NESTED = 2000  # pairs up to which C is chosen again inside each fold
NAMES = {"exp": "DCG with gains 2^grade - 1", "linear": "DCG with the grade as gain"}
Verdict = Literal["better", "not better", "unknown"]


@dataclass(frozen=True)
class Comparison:
    """A learned measure and DCG, on the same held-out pairs.

    learned   fraction of the held-out preferences that the learned measure agrees with
    dcg       the same of DCG with the gains that do better here, `kind`
    interval  lower and upper end (95 %) of learned less dcg, over queries drawn again
    pairs     held-out preferences

    NaN where nothing could be held out.
    """

    learned: float
    dcg: float
    kind: str
    interval: tuple[float, float]
    pairs: int

    @property
    def verdict(self) -> Verdict:
        """Return "better" only where the whole interval is above 0."""
        if not np.isfinite(self.learned):
            return "unknown"
        return "better" if self.interval[0] > 0 else "not better"

    def __str__(self) -> str:
        if self.verdict == "unknown":
            return (
                "it is not known whether this measure is better than DCG: no preferences of "
                "several queries are there to hold out."
            )
        low, high = self.interval
        worse = "worse than" if high < 0 else "not shown to be better than"
        word = "better than" if self.verdict == "better" else worse
        return (
            f"on {self.pairs} preferences held out this measure is {word} {NAMES[self.kind]}: it "
            f"agrees with {self.learned:.1%} of them, DCG with {self.dcg:.1%} (difference "
            f"{100 * (self.learned - self.dcg):+.1f} points, {LEVEL:.0%} interval "
            f"{100 * low:+.1f} to {100 * high:+.1f})."
        )

    def to_dict(self) -> dict[str, Any]:
        """What a program reads; null for what is not known."""
        known = self.verdict != "unknown"
        numbers = {
            "learned": self.learned, "dcg": self.dcg, "gains": self.kind,
            "interval": list(self.interval), "level": LEVEL,
        }  # fmt: skip
        return {
            "verdict": self.verdict, "pairs": self.pairs, "text": str(self),
            **{name: value if known else None for name, value in numbers.items()},
        }  # fmt: skip


def against_dcg(learner: DCGLearn, form: Form = "gains") -> Comparison:
    """Return how a learned measure and DCG agree with pairs that neither was learned from.

    Each fold's measure is learned from the others; up to 2,000 pairs its C is chosen by them
    alone, above that it is the one that was chosen for all.
    """
    pairs = learner.pairs_
    _, group = np.unique(learner.groups_, return_inverse=True)
    scores = np.full(len(pairs), np.nan)
    with suppress(DataError):  # one query
        for train, held in folds(learner.groups_, learner.folds, learner.seed):
            if (pairs.kind[train] > 0).any():
                scores[held] = hits(pairs[held], _table(learner, train, form))
    counted = (pairs.kind > 0) & np.isfinite(scores)
    if not counted.any():
        return Comparison(math.nan, math.nan, KINDS[0], (math.nan, math.nan), 0)
    usual = {
        kind: hits(pairs, Utility.standard(kind, learner.grades_, learner.places_).table())
        for kind in KINDS
    }
    weight = pairs.weight * counted
    means = {kind: float(weight @ found / weight.sum()) for kind, found in usual.items()}
    kind = max(means, key=lambda name: means[name])
    apart = np.where(counted, scores - usual[kind], 0.0)
    learned = float(weight @ np.where(counted, scores, 0.0) / weight.sum())
    queries = int(group.max()) + 1
    over, under = (np.bincount(group, values, queries) for values in (weight * apart, weight))

    def mean(drawn: Floats) -> Floats:
        total = drawn @ under
        return np.divide(drawn @ over, total, out=np.full(len(drawn), np.nan), where=total > 0)

    interval = bootstrap(mean, queries, ROUNDS, learner.seed, LEVEL)
    return Comparison(learned, means[kind], kind, interval, int(counted.sum()))


def _table(learner: DCGLearn, train: Ints, form: Form) -> Floats:
    """Return the weights learned from some of the pairs."""
    pairs, cost = learner.pairs_[train], learner.C_
    if learner.path_ is not None and len(learner.pairs_) <= MAX_NESTED:
        with suppress(DataError):  # the rest of one query: nothing to choose by
            cost = cross_validated(
                learner.recipe_, pairs, learner.groups_[train], learner.path_.costs, learner.folds,
                learner.seed,
            ).best  # fmt: skip
    return learner.recipe_.table(pairs, cost, form=form)
