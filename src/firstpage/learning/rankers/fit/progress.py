"""The course of a fit: its steps, progress reports, the best model so far, and the training record.

Model files contain the record, and the fitted attributes are read from it, after `fit` and after
`load`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property, partial
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from firstpage import __version__
from firstpage.core import DataError, Floats
from firstpage.data import Dataset
from firstpage.data.preferences import RowPairs
from firstpage.learning.losses.measure_forms import MeasureOfScores
from firstpage.learning.rankers.fit.pair_measures import AnyMeasure, PairMeasure, truth_of_pairs

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_PATIENCE = 50
Record = dict[str, Any]
"""A record of a model file, as JSON."""
NO_GAP = "gap_ is NaN: there is no bound of the optimum of this ranker."
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
    """Called after each iteration; records the history and decides when to stop."""

    measure: AnyMeasure
    valid: Dataset | None
    score: Score  # of the validation documents
    keep_best: bool = False  # and stop after `patience` iterations without improvement
    patience: int = DEFAULT_PATIENCE
    progress: Callable[[Step], object] | None = None  # training stops where it returns True
    verbose: bool = False  # print each step
    history: list[Step] = field(default_factory=list)
    best: Step | None = None
    best_params: Any = None
    last_params: Any = None
    valid_pairs: RowPairs | None = None  # votes on validation documents, for measures of pairs
    _start: float = field(default_factory=time.perf_counter)

    def __call__(
        self, iteration: int, loss: float, params: Floats | int, improved: bool | None = None
    ) -> bool:
        """Record an iteration; return whether to stop.

        It is the best so far if its measure is better than all before, or if `improved` says so;
        where that is False, the scores are those of the iteration before.
        """
        self.last_params = params.copy() if isinstance(params, np.ndarray) else params
        value = self.history[-1].measure if improved is False else self.evaluate(params)
        best = None if self.best is None else self.best.measure
        better = value is not None and (
            self.improves(value, best) if improved is None else improved
        )
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
        """Return the mean of the measure on the validation data; None if it is not finite."""
        if self.valid is None:
            return None
        scores = self.score(params, self.valid.X)
        return None if scores is None else self.mean(scores)

    def mean(self, scores: Floats) -> float | None:
        """Return the mean of the measure on the validation data; None if it is not finite."""
        mean = self._measured(scores) if np.isfinite(scores).all() else math.nan
        return None if math.isnan(mean) else mean

    @cached_property
    def _measured(self) -> Callable[[Floats], float]:
        """The mean of the measure as a function of the scores, prepared once."""
        assert self.valid is not None
        if not isinstance(self.measure, PairMeasure):
            values = MeasureOfScores(self.measure, self.valid.truth).values
            return lambda scores: float(values(scores).mean())
        assert self.valid_pairs is not None
        truth = truth_of_pairs(self.valid, self.valid_pairs)
        if math.isnan(self.measure.mean(np.zeros(self.valid.n_docs), truth)):
            raise DataError(
                f"{self.measure} has no value on the validation data: their votes are ties; "
                "set measure='PairLogLoss', or leave the validation data out."
            )
        return partial(self.measure.mean, truth=truth)

    def improves(self, value: float, best: float | None) -> bool:
        """Return whether a value of the measure is better than the best one, if there is one."""
        if best is None:
            return True
        return value < best if self.measure.lower_is_better else value > best

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


@cache
def versions() -> dict[str, str]:
    """Return the versions of the packages that a fit may use."""
    versions_by_package = {"firstpage": __version__}
    for package in ("numpy", "scipy", "lightgbm", "xgboost-cpu", "torch"):
        with suppress(PackageNotFoundError):
            versions_by_package[package] = version(package)
    return versions_by_package


def fit_record(
    iterations: int,
    objective: float,
    converged: bool,
    interrupted: bool,
    best: Step | None,
    history: list[Step],
    gap: float | None,
    gap_note: str | None = None,
) -> Record:
    """Return the course of a fit as JSON, from which `fitted_attributes` reads.

    `gap_note` says why the gap is unknown.  Seconds are omitted, so that equal fits write equal
    files.
    """
    score = best.measure if best else (history[-1].measure if history else None)
    return {
        "score": _number_to_json(score),
        "iterations": int(iterations),
        "best_iteration": best.iteration if best else None,
        "objective": _loss_to_json(objective),
        "gap": _number_to_json(gap),
        "gap_note": (gap_note or NO_GAP) if gap is None else None,
        "converged": bool(converged),
        "interrupted": bool(interrupted),
        "curve": [
            [s.iteration, _loss_to_json(s.loss), _number_to_json(s.measure)] for s in history
        ],
        "improved": [row for row, s in enumerate(history) if s.best],  # rows of the curve
    }


def fitted_attributes(record: Record) -> Record:
    """Return the fitted attributes of a record; records of older files lack some."""
    return {
        name: read(*(record[key] for key in keys))
        for name, (keys, read) in ATTRIBUTES.items()
        if record.keys() >= set(keys)
    }


def _number_to_json(value: float | None) -> float | str | None:
    """Return a number as JSON: NaN and infinities as strings."""
    if value is None:
        return None
    return float(value) if math.isfinite(value) else str(float(value))


def _loss_to_json(value: float) -> float | str | None:
    """Return a loss as JSON: NaN, which means unknown, as null."""
    return _number_to_json(None if math.isnan(value) else value)


def _number(stored: float | str | None) -> float | None:
    return None if stored is None else float(stored)


def _loss(stored: float | str | None) -> float:
    return math.nan if stored is None else float(stored)


def _history(curve: list[list[float]], improved: list[int]) -> list[Step]:
    best = set(improved)
    return [
        Step(int(iteration), _loss(loss), _number(measure), row in best)
        for row, (iteration, loss, measure) in enumerate(curve)
    ]


ATTRIBUTES: dict[str, tuple[tuple[str, ...], Callable[..., Any]]] = {
    # by name: the keys of the record, and the function of their values
    "n_iter_": (("iterations",), int),
    "objective_": (("objective",), _loss),
    "converged_": (("converged",), bool),
    "interrupted_": (("interrupted",), bool),
    "best_iteration_": (("best_iteration",), lambda number: number),
    "best_score_": (("score",), _number),
    "gap_": (("gap",), _loss),
    "gap_note_": (("gap_note",), lambda text: text),
    "history_": (("curve", "improved"), _history),
}
