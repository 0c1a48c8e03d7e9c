"""Coordinate ascent on a measure, with exact line searches over the steps where it changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar, TypedDict

import numpy as np

from firstpage.core import DataError, Floats, Ints, Words
from firstpage.core.engine import Lanes, resolve
from firstpage.core.kernels.losses import measure_breakpoints
from firstpage.data import Truth, offsets_from_lengths
from firstpage.evaluation.measures import Measure, rank_lists
from firstpage.learning.losses.measure_forms import DEFAULT, measure_form
from firstpage.learning.solvers.objective import query_ranges
from firstpage.learning.solvers.solver import (
    FRESH_START,
    ProgressCallback,
    Resume,
    SolverResult,
    SolverState,
    never_stop,
)

if TYPE_CHECKING:
    from firstpage.data import Features

BLOCK_PAIRS = 1 << 16  # crossings of a block of queries, which one thread computes
MAX_PAIRS = 1 << 26  # of which all threads together have workspaces
GRID = 64  # steps to try where a measure has no form
MIN_GAIN = 1e-9  # of a line search


class _LineWorkspace(TypedDict):
    """The arrays that one thread needs to search the lines of some queries."""

    crossing: Floats
    crossing_bits: Words
    pairs: Ints
    sorted_pairs: Ints
    words: Words
    word_workspace: Words
    workspace: Ints
    key: Floats
    key_bits: Words
    order: Ints
    position: Ints
    state: Floats
    means: Floats
    parts: Floats
    steps: Floats
    changes: Floats


def _workspace(longest: int, capacity: int) -> _LineWorkspace:
    pairs = max(longest * (longest - 1) // 2, longest, 1)
    crossing, key = np.empty(pairs), np.empty(longest)
    return {
        "crossing": crossing,
        "crossing_bits": crossing.view(np.uint64),
        "pairs": np.empty(pairs, np.int64),
        "sorted_pairs": np.empty(pairs, np.int64),
        "words": np.empty(pairs, np.uint64),
        "word_workspace": np.empty(pairs, np.uint64),
        "workspace": np.empty(pairs, np.int64),
        "key": key,
        "key_bits": key.view(np.uint64),
        "order": np.empty(longest, np.int64),
        "position": np.empty(longest, np.int64),
        "state": np.empty(longest + 2),
        "means": np.empty(longest + 2),
        "parts": np.empty(longest + 2),
        "steps": np.empty(capacity),
        "changes": np.empty(capacity),
    }


class MeasuredLines:
    """The weighted mean of a measure as a function of linear weights, and along one of them.

    Measures that are better when lower are negated.  Blocks of queries are searched by several
    threads.  The blocks, and the order in which their results are joined, do not depend on the
    number of threads.

    Attributes
    ----------
    size : int
        The number of weights.
    best : tuple of (array, float)
        The best weights that a search has found so far, and their value.
    """

    best: tuple[Floats, float]

    def __init__(
        self,
        X: Features,
        truth: Truth,
        measure: Measure,
        k: int | None,
        weights: Floats,
        threads: int | None = 1,
    ) -> None:
        self._X = X if isinstance(X, np.ndarray) else X.tocsc()
        self._truth, self._measure = truth, measure
        self._weights = weights / weights.sum()
        self.size = int(X.shape[1])
        self._form = measure_form(measure, truth, k) if measure.has_rank_form else None
        if self._form is None and k is not None:
            raise DataError(f"{measure} has no top-k form; leave k out.")
        if self._form is not None:
            self._open_lanes(resolve(threads))

    def _open_lanes(self, threads: int) -> None:
        """Divide the queries into blocks of about BLOCK_PAIRS pairs, and the blocks into lanes."""
        offsets = self._truth.offsets
        lengths = np.diff(offsets)
        pairs = offsets_from_lengths(lengths * (lengths - 1) // 2)
        self._blocks = query_ranges(pairs, BLOCK_PAIRS)
        capacity = max((int(pairs[hi] - pairs[lo]) for lo, hi in self._blocks), default=0)
        self._scores = self._direction = np.empty(0)
        self._values = np.empty(len(lengths))
        self._found = [(np.empty(0), np.empty(0))] * len(self._blocks)
        longest = int(lengths.max(initial=1))
        count = max(1, min(threads, len(self._blocks), MAX_PAIRS // max(1, longest**2)))
        lanes = []
        for lane in range(count):
            workspace = _workspace(longest, capacity)
            blocks = range(lane, len(self._blocks), count)
            lanes.append([partial(self._search, block, workspace) for block in blocks])
        self._lanes = Lanes(lanes)

    @property
    def informative(self) -> bool:
        """Whether the measure of some query depends on the order of its documents."""
        if self._form is not None:
            return bool(self._form.gain_range(self._truth.offsets).any())
        filled = np.diff(self._truth.offsets) > 0
        starts, labels = self._truth.offsets[:-1][filled], self._truth.labels
        if not len(starts):
            return False
        high, low = np.maximum.reduceat(labels, starts), np.minimum.reduceat(labels, starts)
        return bool((high > low).any())

    def column(self, feature: int) -> Floats:
        """Return one feature of all documents."""
        if isinstance(self._X, np.ndarray):
            return np.ascontiguousarray(self._X[:, feature], np.float64)
        return np.asarray(self._X[:, [feature]].toarray(), np.float64).ravel()

    def scores(self, params: Floats) -> Floats:
        """Return the scores of all documents."""
        total = np.zeros(int(self._truth.offsets[-1]))
        for feature in np.flatnonzero(params).tolist():
            total += params[feature] * self.column(feature)
        return total

    def value(self, scores: Floats) -> float:
        """Return the mean of the measure; ties have the mean over all their orders."""
        if self._form is not None:
            return self._along(scores, np.zeros_like(scores))[2]
        lists = rank_lists(scores, self._truth, DEFAULT, needs=self._measure.needs(DEFAULT))
        mean = float(self._measure.values(lists, DEFAULT) @ self._weights)
        return -mean if self._measure.lower_is_better else mean

    def best_step(self, scores: Floats, direction: Floats) -> float:
        """Return the step along a line with the greatest value, in the middle of its interval; 0
        where no step is possible."""
        if self._form is None:
            return self._best_of_grid(scores, direction)
        steps, changes, first = self._along(scores, direction)
        if not len(steps):
            return 0.0
        order = np.argsort(steps, kind="stable")
        steps = steps[order]
        values = first + np.concatenate([[0.0], np.cumsum(changes[order])])
        left, right = _interval_ends(steps)
        width = np.minimum(right - left, 2 * np.maximum(np.abs(left), np.abs(right)))
        good = (values >= values[right > left].max() - MIN_GAIN) & (right > left)
        best = int(np.argmax(np.where(good, width, -1.0)))
        return float(left[best] + 0.5 * (right[best] - left[best]))

    def _along(self, scores: Floats, direction: Floats) -> tuple[Floats, Floats, float]:
        """Return the steps at which the mean changes, the changes, and the mean before them."""
        self._scores, self._direction = scores, direction
        self._lanes.run()
        return (
            np.concatenate([steps for steps, _ in self._found] or [np.empty(0)]),
            np.concatenate([changes for _, changes in self._found] or [np.empty(0)]),
            float(self._values.sum()),
        )

    def _search(self, block: int, workspace: _LineWorkspace) -> None:
        """Find the steps at which the measures of the queries of a block change."""
        assert self._form is not None
        form, (lo, hi) = self._form, self._blocks[block]
        a, b = self._truth.offsets[lo], self._truth.offsets[hi]
        count = measure_breakpoints(
            scores=self._scores[a:b],
            direction=self._direction[a:b],
            gains=form.gains[a:b],
            offsets=self._truth.offsets[lo : hi + 1] - a,
            kind=form.kind,
            discount=form.discount,
            table=form.table,
            weight=form.scale[lo:hi] * self._weights[lo:hi],
            **workspace,
            first_values=self._values[lo:hi],
        )
        self._found[block] = workspace["steps"][:count].copy(), workspace["changes"][:count].copy()

    def _best_of_grid(self, scores: Floats, direction: Floats) -> float:
        """Return the best of some steps between crossings of documents with different labels."""
        offsets: Ints = self._truth.offsets
        labels, crossings = self._truth.labels, [np.empty(0)]
        for lo, hi in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
            upper = np.triu_indices(hi - lo, 1)
            u, v = upper[0] + lo, upper[1] + lo
            moving = (labels[u] != labels[v]) & (direction[u] != direction[v])
            u, v = u[moving], v[moving]
            crossings.append((scores[v] - scores[u]) / (direction[u] - direction[v]))
        steps = np.unique(np.concatenate(crossings))
        steps = steps[np.isfinite(steps)]
        if not len(steps):
            return 0.0
        left, right = _interval_ends(steps)
        middle = left + 0.5 * (right - left)
        tried = middle[np.unique(np.linspace(0, len(middle) - 1, GRID).astype(int))]
        values = [self.value(scores + step * direction) for step in tried.tolist()]
        return float(tried[int(np.argmax(values))])


def _interval_ends(steps: Floats) -> tuple[Floats, Floats]:
    """Return the ends of the intervals between sorted steps; outer ones are as long as their step,
    at least 1."""
    low, high = steps[0] - max(1.0, abs(steps[0])), steps[-1] + max(1.0, abs(steps[-1]))
    return np.concatenate([[low], steps]), np.concatenate([steps, [high]])


@dataclass(frozen=True)
class CoordinateSearch:
    """Coordinate ascent with restarts: an iteration visits all weights in a random order.

    A start ends when an iteration improves the measure by less than `tol`.
    """

    restarts: int
    max_iter: int
    tol: float
    seed: int
    batch: ClassVar[None] = None
    resumable: ClassVar[bool] = True

    def minimize(
        self,
        objective: MeasuredLines,
        start: Floats,
        progress: ProgressCallback = never_stop,
        resume: Resume = FRESH_START,
    ) -> SolverResult:
        """Maximize the mean measure; values are reported with the opposite sign."""
        state: SolverState = resume.state or {
            "restart": 0,
            "cycle": 0,
            "first": start,
            "params": start,
            "value": -np.inf,
            "best": start,
            "best_value": -np.inf,
            "iterations": 0,
        }
        state = dict(state)
        done = resume.iterations  # the state may be one iteration ahead
        if resume.report_state is not None:
            resume.report_state(lambda: dict(state))
        while state["restart"] <= self.restarts:
            restart, cycle = int(state["restart"]), int(state["cycle"])
            rng = np.random.default_rng([self.seed, restart, cycle])
            if cycle == 0:
                noise = np.ones(objective.size) if restart == 0 else rng.normal(size=objective.size)
                state["params"] = state["first"] * noise
                state["value"] = objective.value(objective.scores(state["params"]))
            params, value = self._cycle(objective, state["params"], rng)
            improved = value - state["value"]
            state.update(params=params, value=value, iterations=state["iterations"] + 1)
            if value > state["best_value"]:
                state.update(best=params, best_value=value)
            objective.best = state["best"], float(state["best_value"])
            if improved < self.tol or cycle + 1 == self.max_iter:
                state.update(restart=restart + 1, cycle=0)
            else:
                state["cycle"] = cycle + 1
            if progress(int(state["iterations"]) - done, -value, params):
                return self._result(state, done, "stopped early", False)
        return self._result(state, done, "no weight improves the measure", True)

    def _cycle(
        self, objective: MeasuredLines, params: Floats, rng: np.random.Generator
    ) -> tuple[Floats, float]:
        """Return the parameters after a line search along each of them, of sum 1 in absolute
        values, on which the order does not depend."""
        params = params.copy()
        scores = objective.scores(params)
        value = objective.value(scores)
        for feature in rng.permutation(objective.size).tolist():
            column = objective.column(feature)
            step = objective.best_step(scores, column)
            moved = scores + step * column
            if step != 0.0 and (reached := objective.value(moved)) > value + MIN_GAIN:
                params[feature] += step
                scores, value = moved, reached
        length = float(np.abs(params).sum())
        return (params / length if length > 0 else params), value

    def _result(self, state: SolverState, done: int, reason: str, converged: bool) -> SolverResult:
        iterations = int(state["iterations"]) - done
        return SolverResult(
            state["best"], -float(state["best_value"]), iterations, reason, converged
        )
