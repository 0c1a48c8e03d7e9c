"""Coordinate ascent on a measure, with exact line searches over the steps where it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from firstpage.data.truth import Truth
from firstpage.errors import DataError
from firstpage.kernels.losses.breakpoints import measure_breakpoints
from firstpage.losses.measure_forms import DEFAULT, SUPPORTED, measure_form
from firstpage.measures.measure import Measure, rank_lists
from firstpage.solvers.objective import query_ranges
from firstpage.solvers.solver import (
    FRESH_START,
    ProgressCallback,
    Resume,
    SolverResult,
    SolverState,
    never_stop,
)
from firstpage.types import Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features

MAX_PAIRS = 1 << 22  # crossings that are computed at once
GRID = 64  # steps to try where a measure has no form
MIN_GAIN = 1e-9  # of a line search


class MeasuredLines:
    """The weighted mean of a measure as a function of linear weights, and along one of them.

    Measures that are better when lower are negated.

    Attributes
    ----------
    size : int
        The number of weights.
    best : tuple of (array, float)
        The best weights that a search has found so far, and their value.
    """

    best: tuple[Floats, float]

    def __init__(
        self, X: Features, truth: Truth, measure: Measure, k: int | None, weights: Floats
    ) -> None:
        self._X = X if isinstance(X, np.ndarray) else X.tocsc()
        self._truth, self._measure = truth, measure
        self._weights = weights / weights.sum()
        self.size = int(X.shape[1])
        self._form = measure_form(measure, truth, k) if isinstance(measure, SUPPORTED) else None
        if self._form is None and k is not None:
            raise DataError(f"{measure} has no top-k form; leave k out.")
        lengths = np.diff(truth.offsets)
        longest = int(lengths.max(initial=1))
        rows = max(MAX_PAIRS // max(longest, 1), longest)
        self._ranges = query_ranges(truth.offsets, rows)
        pairs = max(longest * (longest - 1) // 2, longest, 1)
        self._capacity = max(
            (int((lengths[a:b] * (lengths[a:b] - 1) // 2).sum()) for a, b in self._ranges),
            default=0,
        )
        if self._form is None:
            return
        crossing, key = np.empty(pairs), np.empty(longest)
        numbers, sorted_pairs, workspace = np.empty((3, pairs), np.int64)
        words, word_workspace = np.empty((2, pairs), np.uint64)
        order, position = np.empty((2, longest), np.int64)
        state, means, parts = np.empty((3, longest + 2))
        self._workspace = (
            crossing, crossing.view(np.uint64), numbers, sorted_pairs, words, word_workspace,
            workspace, key, key.view(np.uint64), order, position, state, means, parts,
        )  # fmt: skip

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
        truth = self._truth
        lists = rank_lists(scores, truth.labels, truth.offsets, truth.queries, DEFAULT)
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
        assert self._form is not None
        form, all_offsets = self._form, self._truth.offsets
        steps, changes = np.empty((2, self._capacity))
        parts: list[tuple[Floats, Floats]] = []
        total = 0.0
        for lo, hi in self._ranges:
            a, b = int(all_offsets[lo]), int(all_offsets[hi])
            values = np.empty(hi - lo)
            count = measure_breakpoints(
                scores[a:b], direction[a:b], form.gains[a:b], all_offsets[lo : hi + 1] - a,
                form.kind, form.discount, form.table, form.scale[lo:hi] * self._weights[lo:hi],
                *self._workspace, steps, changes, values,
            )  # fmt: skip
            parts.append((steps[:count].copy(), changes[:count].copy()))
            total += float(values.sum())
        return (
            np.concatenate([s for s, _ in parts] or [np.empty(0)]),
            np.concatenate([c for _, c in parts] or [np.empty(0)]),
            total,
        )

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
            "restart": 0, "cycle": 0, "first": start, "params": start, "value": -np.inf,
            "best": start, "best_value": -np.inf, "iterations": 0,
        }  # fmt: skip
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
