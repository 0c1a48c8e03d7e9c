"""Watching a solver: losses, validation measures, the best model so far, progress reports."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.measures.measure import Measure, rank_lists, resolve_convention
from firstpage.types import Floats

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_PATIENCE = 50
Score = Callable[[Any, Any], Floats | None]
"""(parameters after an iteration, features) -> scores of these documents."""


@dataclass(frozen=True)
class Step:
    """The state of training after one iteration, which `progress` functions receive.

    Attributes
    ----------
    iteration : int
        The number of the iteration, from 1.
    loss : float
        The training objective; NaN where it is unknown (TopRank, LambdaMART).
    measure : float or None
        The measure on the validation data; None without validation data.
    best : bool
        Whether it is better than all steps before.
    seconds : float or None
        The time since training began; None in `history_`, so that equal fits have equal histories.

    Examples
    --------
    >>> import firstpage as fp
    >>> steps = []
    >>> ranker = fp.ListNet().fit([[1.0], [2.0]], [0, 1], qid=[1, 1], progress=steps.append)
    >>> steps[0].iteration, steps[0].measure
    (1, None)
    """

    iteration: int
    loss: float
    measure: float | None
    best: bool
    seconds: float | None = field(default=None, compare=False)


@dataclass(eq=False)
class Watcher:
    """Called after each iteration; records the history and decides when to stop.

    Attributes
    ----------
    measure : Measure
        The measure that is recorded on the validation data.
    valid : Dataset or None
        The validation data.
    score : callable
        Returns the scores of the validation documents.
    keep_best : bool
        Keep the parameters with the best measure, and stop after `patience` iterations without
        improvement.
    patience : int
        See `keep_best`.
    progress : callable or None
        Called with each step; training stops where it returns True.
    verbose : bool
        Print each step.
    history : list of Step
        All steps.
    best : Step or None
        The step with the best measure.
    best_params : object
        The parameters of the best step.
    last_params : object
        The parameters of the last step.
    """

    measure: Measure
    valid: Dataset | None
    score: Score
    keep_best: bool = False
    patience: int = DEFAULT_PATIENCE
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
        better = value is not None and (self.best is None or self._improves(value))
        step = Step(iteration, loss, value, better, time.perf_counter() - self._start)
        self.history.append(step)
        if better:
            self.best, self.best_params = step, self.last_params
        if self.verbose:
            self._print(step)
        if self.progress is not None and self.progress(step):
            return True
        if not self.keep_best or self.best is None:
            return False
        return iteration - self.best.iteration >= self.patience

    def evaluate(self, params: Floats | int) -> float | None:
        """Return the mean of the measure on the validation data; None if unknown or not finite."""
        if self.valid is None:
            return None
        default = resolve_convention("default")
        data = self.valid
        scores = self.score(params, data.X)
        if scores is None or not np.isfinite(scores).all():
            return None
        lists = rank_lists(scores, data.y, data.offsets, data.queries, default, data.docids)
        return float(self.measure.values(lists, default).mean())

    def _improves(self, value: float) -> bool:
        assert self.best is not None
        assert self.best.measure is not None
        lower = self.measure.lower_is_better
        return value < self.best.measure if lower else value > self.best.measure

    def _print(self, step: Step) -> None:
        measured = "" if step.measure is None else f"  {self.measure} {step.measure:.4f}"
        mark = " *" if step.best else ""
        line = f"{step.iteration:5d}  loss {step.loss:.6f}{measured}{mark}"
        self._console.print(line, style="bold" if step.best else None, markup=False)

    @cached_property
    def _console(self) -> Console:
        """The console for standard error; lines of the best steps are bold."""
        from rich.console import Console

        return Console(stderr=True, highlight=False, soft_wrap=True)
