"""Watch a solver: loss, validation measure, the best model so far, progress reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.measures.measure import Measure, convention, rank_lists
from firstpage.types import Floats

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 50
Score = Callable[[Any, Any], Floats | None]
"""(what a solver hands over after an iteration, features) -> scores of these documents."""


@dataclass(frozen=True)
class Step:
    """Where training stands; what a progress gets.  It may return something true to stop.

    loss      NaN where none is known (TopRank, LambdaMART)
    measure   on the validation data; None without
    best      whether no step before measured better
    seconds   since training began; None in `history_`, which is the same whenever it is fitted
    """

    iteration: int
    loss: float
    measure: float | None
    best: bool
    seconds: float | None = field(default=None, compare=False)


@dataclass(eq=False)
class Watcher:
    """Called after each iteration.

    measure   its value on `valid` is recorded, if there is validation data
    keep      keep the parameters that measure best, and stop after `patience` without a better one
    """

    measure: Measure
    valid: Dataset | None
    score: Score
    keep: bool = False
    patience: int = PATIENCE
    progress: Callable[[Step], object] | None = None
    verbose: bool = False
    history: list[Step] = field(default_factory=list)
    best: Step | None = None
    best_params: Any = None
    last_params: Any = None
    _start: float = field(default_factory=time.perf_counter)

    def __call__(self, iteration: int, loss: float, params: Floats | int) -> bool:
        self.last_params = params.copy() if isinstance(params, np.ndarray) else params
        value = self.evaluate(params)
        better = value is not None and (self.best is None or self._beats(value))
        step = Step(iteration, loss, value, better, time.perf_counter() - self._start)
        self.history.append(step)
        if better:
            self.best, self.best_params = step, self.last_params
        if self.verbose:
            self._say(step)
        if self.progress is not None and self.progress(step):
            return True
        if not self.keep or self.best is None:
            return False
        return iteration - self.best.iteration >= self.patience

    def evaluate(self, params: Floats | int) -> float | None:
        """The mean of the measure on the validation data; None without, or if scores overflow."""
        if self.valid is None:
            return None
        how = convention("default")
        data = self.valid
        scores = self.score(params, data.X)
        if scores is None or not np.isfinite(scores).all():
            return None
        lists = rank_lists(scores, data.y, data.offsets, data.queries, how, data.docids)
        return float(self.measure.values(lists, how).mean())

    def _beats(self, value: float) -> bool:
        assert self.best is not None
        assert self.best.measure is not None
        lower = self.measure.lower_is_better
        return value < self.best.measure if lower else value > self.best.measure

    def _say(self, step: Step) -> None:
        measured = "" if step.measure is None else f"  {self.measure} {step.measure:.4f}"
        mark = " *" if step.best else ""
        line = f"{step.iteration:5d}  loss {step.loss:.6f}{measured}{mark}"
        self._console.print(line, style="bold" if step.best else None, markup=False)

    @cached_property
    def _console(self) -> Console:
        """Standard error: one line per iteration, those that measure best in bold."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, soft_wrap=True)
