"""The objective: the mean loss over queries, plus a penalty, as a function of parameters.

Queries are cut into blocks whose features fit into the CPU's cache; each is scored, its loss is
taken, and the slope is pulled back, before the next is touched: X is read from memory once.
Each block's slope is kept apart and added up in one order, so that the number of threads changes
nothing, not even the last bit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from firstpage.data.truth import Truth
from firstpage.engine.threads import Lanes, resolve
from firstpage.losses.levels import query_sums
from firstpage.losses.loss import Loss, safe_inverse
from firstpage.scorers.scorer import BoundScorer
from firstpage.solvers.score_space import ScoreSpace, unsure, weigher
from firstpage.types import Floats, Ints

BLOCK = 1 << 21  # bytes of features: what a core finds again in its caches
SAMPLE = 20  # rows a parameter, from which the shape of the problem is learned
RUNS = 4
SMALL = 1 << 22  # bytes of features below which threads cost more than they give


class BlockObjective:
    """sum over queries of weight * loss / sum of weights + l2 / 2 * |params|^2.

    total   the sum of weights, where these queries are not all
    """

    def __init__(
        self,
        loss: Loss,
        scorer: BoundScorer,
        truth: Truth,
        row_bytes: int,
        weights: Floats | None = None,
        query_weights: Floats | None = None,
        l2: float = 0.0,
        threads: int | None = None,
        batch: int | None = None,
        total: float | None = None,
    ) -> None:
        self.scorer, self.l2 = scorer, l2
        self.offsets, self._weights = truth.offsets, weights
        shares = np.ones(len(truth)) if query_weights is None else query_weights
        self.shares: Floats = shares / (shares.sum() if total is None else total)
        self._values = np.empty(len(truth))
        self.bounds = _blocks(truth.offsets, row_bytes, scorer.size, batch)
        # Batches are taken one at a time, and need no slope each.
        self._slopes = np.zeros((len(self.bounds) if batch is None else 1, scorer.size))
        self._batched = batch is not None
        small = int(truth.offsets[-1]) * row_bytes < SMALL
        self.target = loss.target(truth, weights)
        self.threads = 1 if small or not scorer.parallel else resolve(threads)

    @cached_property
    def _jobs(self) -> list[list[Callable[[], object]]]:
        """What to run for every block: forward, loss, weights, back.

        Bound when first used: a solver that works in score space needs none of it.
        """
        offsets, count = self.offsets, self.threads
        jobs: dict[int, list[Callable[[], object]]] = {}
        most = max((offsets[hi] - offsets[lo] for lo, hi in self.bounds), default=0)
        for number in range(count):
            # Workspace is shared by the blocks of a lane, which run one after the other.
            scores, grad = np.empty(int(most)), np.empty(int(most))
            for block in range(number, len(self.bounds), count):
                lo, hi = self.bounds[block]
                a, b = int(offsets[lo]), int(offsets[hi])
                s, g, values = scores[: b - a], grad[: b - a], self._values[lo:hi]
                mine = self._slopes[0 if self._batched else block]
                forward, back = self.scorer.bind(a, b, s, g, mine)
                run = self.target.bind(lo, hi, s, values, g)
                weigh = weigher(g, self.shares[lo:hi], np.diff(offsets[lo : hi + 1]))
                jobs[block] = [forward, run, weigh, back]
        return [jobs[block] for block in range(len(self.bounds))]

    @cached_property
    def _lanes(self) -> Lanes:
        count = self.threads
        return Lanes([[run for job in self._jobs[lane::count] for run in job]
                      for lane in range(count)])  # fmt: skip

    @property
    def size(self) -> int:
        return self.scorer.size

    @property
    def noise(self) -> float:
        return self.scorer.noise

    def __call__(self, params: Floats) -> tuple[float, Floats]:
        """Value and slope over all queries."""
        if self._batched:
            found = [self.block(number, params) for number in range(len(self.bounds))]
            mean: Floats = np.mean([slope for _, slope in found], axis=0)
            return float(np.mean([value for value, _ in found])), mean
        self.scorer.load(params)
        self._lanes.run()
        value = float((self._values * self.shares).sum())
        slope: Floats = self._slopes.sum(axis=0)
        return value + self.l2 / 2 * float(params @ params), slope + self.l2 * params

    def score_range(self, params: Floats) -> tuple[float, float]:
        """Return the widest range of scores in a query, and the greatest absolute score."""
        scores = self.scorer.predict(params, self.scorer.X)
        starts = self.offsets[:-1][np.diff(self.offsets) > 0]
        if not len(starts):
            return 0.0, 0.0
        wide = np.maximum.reduceat(scores, starts) - np.minimum.reduceat(scores, starts)
        return float(wide.max(initial=0.0)), float(np.abs(scores).max(initial=0.0))

    def space(self) -> ScoreSpace:
        """The same, seen from the scores."""
        return ScoreSpace(self)

    def conditioner(self) -> Floats | None:
        """The scorer's coordinates in which this is about round, from a sample of the queries."""
        picked = _sample(self.offsets, SAMPLE * self.size)
        total = sum(float(self.shares[lo:hi].sum()) for lo, hi in picked)
        parts = [self.offsets[lo : hi + 1] for lo, hi in picked]
        bends = [self.bend(lo, hi, total) for lo, hi in picked]
        return self.scorer.conditioner(parts, np.concatenate(bends), self.l2)

    def bend(self, lo: int, hi: int, total: float) -> Floats:
        """About the second derivative by each score of the queries lo:hi, of shares in all."""
        ends = self.offsets[lo : hi + 1]
        a, b = int(ends[0]), int(ends[-1])
        weight = np.ones(b - a) if self._weights is None else self._weights[a:b]
        stiffness = self.shares[lo:hi] * self.target.stiffness()[lo:hi]
        bend = stiffness / total * safe_inverse(query_sums(weight, ends - a))
        found: Floats = weight * np.repeat(bend, np.diff(ends))
        return found

    def block(self, number: int, params: Floats) -> tuple[float, Floats]:
        """An estimate of the same from one block; its mean over the blocks is the whole."""
        self.scorer.load(params)
        for job in self._jobs[number]:
            job()
        lo, hi = self.bounds[number]
        times = len(self.bounds)
        value = float((self._values[lo:hi] * self.shares[lo:hi]).sum()) * times
        slope: Floats = self._slopes[0 if self._batched else number] * times
        return value + self.l2 / 2 * float(params @ params), slope + self.l2 * params

    def unsure(self) -> float:
        """By how much the mean loss, where it was looked at last, may be above what was found."""
        return unsure(self.target, self._values, self.shares)


def _sample(offsets: Ints, rows: int) -> list[tuple[int, int]]:
    """A few runs of neighboring queries, at even distances, of about so many rows together."""
    count, all_rows = len(offsets) - 1, int(offsets[-1])
    if all_rows <= rows or count <= RUNS:
        return [(0, count)]
    found = []
    for i in range(RUNS):
        lo = count * i // RUNS
        hi = int(np.searchsorted(offsets, offsets[lo] + rows // RUNS))
        found.append((lo, min(max(hi, lo + 1), count * (i + 1) // RUNS)))
    return found


def _blocks(offsets: Ints, row_bytes: int, size: int, batch: int | None) -> list[tuple[int, int]]:
    """Ranges of queries: of `batch` queries each, or as many as BLOCK bytes hold, at least one.

    Slopes of many parameters must not need more than a tenth of the features' memory.
    """
    count = len(offsets) - 1
    if batch is not None:
        return [(lo, min(lo + batch, count)) for lo in range(0, count, batch)]
    return whole_queries(offsets, max(1, max(BLOCK, 80 * size) // max(row_bytes, 1)))


def whole_queries(offsets: Ints, rows: int) -> list[tuple[int, int]]:
    """Runs of neighboring queries of at most so many rows, but at least one query each."""
    found, lo, count = [], 0, len(offsets) - 1
    while lo < count:
        hi = int(np.searchsorted(offsets, offsets[lo] + rows, side="right")) - 1
        hi = min(max(hi, lo + 1), count)
        found.append((lo, hi))
        lo = hi
    return found
