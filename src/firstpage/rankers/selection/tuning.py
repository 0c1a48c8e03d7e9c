"""Choose parameters on validation data: the papers' grids, or Optuna; every trial is kept."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from firstpage.data.dataset import Dataset
from firstpage.errors import DataError, missing_dependency
from firstpage.measures.registry import measure as parse_measure
from firstpage.rankers.fit.fit import Diverged
from firstpage.rankers.ranker import Grid, Ranker

if TYPE_CHECKING:
    from optuna import Trial as OptunaTrial

TRIALS = 30
Parameters = dict[str, Any]
"""A setting: values by parameter."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One setting, and how it did."""

    parameters: Parameters
    score: float
    iterations: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best ranker, fitted, and all trials in the order in which they ran."""

    best: Ranker
    parameters: Parameters
    score: float
    trials: list[Trial]
    measure: str
    interrupted: bool = False

    def __repr__(self) -> str:
        chosen = ", ".join(f"{name}={value}" for name, value in self.parameters.items())
        return (
            f"Tuned({chosen}: {self.measure} {self.score:.4f}, the best of {len(self.trials)} "
            f"trial{'s' * (len(self.trials) != 1)}{', interrupted' * self.interrupted})"
        )

    def table(self) -> list[Parameters]:
        """One row a trial."""
        return [
            {
                **t.parameters,
                self.measure: t.score,
                "iterations": t.iterations,
                "seconds": t.seconds,
            }
            for t in self.trials
        ]


def tune(
    ranker: Ranker,
    train: Dataset,
    valid: Dataset,
    grid: Mapping[str, Sequence[Any]] | None = None,
    method: str = "grid",
    trials: int = TRIALS,
    progress: Callable[[int, int, Trial], object] | None = None,
) -> Tuned:
    """Fit one ranker a setting, and keep the one that measures best on the validation data.

    grid      values by parameter; None: the papers'
    method    "grid": every combination; "optuna": `trials` of them, chosen as it goes
    progress  called with (number, of how many, trial) after each
    """
    search = _checked(ranker, grid, method, trials)
    if not isinstance(train, Dataset) or not isinstance(valid, Dataset):
        raise DataError("tune takes two Datasets: Dataset.from_arrays(X, y, qid) makes one.")
    total = trials if method == "optuna" else int(np.prod([len(v) for v in search.values()]))
    tried = _Trials(ranker, train, valid, total, progress)
    interrupted = False
    try:
        if method == "optuna":
            _optuna(search, trials, ranker.seed, tried.attempt)
        else:
            for parameters in _combinations(search):
                tried.attempt(parameters)
    except KeyboardInterrupt:
        if tried.best is None:
            raise
        interrupted = True
    if tried.best is None:
        assert tried.failed is not None
        raise tried.failed
    return Tuned(
        tried.best, tried.parameters, tried.shown(tried.score), tried.done, str(ranker.measure),
        interrupted,
    )  # fmt: skip


class _Trials:
    """Settings as they are tried, and the best of them."""

    def __init__(
        self, ranker: Ranker, train: Dataset, valid: Dataset, total: int, progress: Any
    ) -> None:
        self.ranker, self.train, self.valid = ranker, train, valid
        self.total, self.progress = total, progress
        self.lower = parse_measure(ranker.measure).lower_is_better
        self.done: list[Trial] = []
        self.best: Ranker | None = None
        self.last: Ranker | None = None
        self.parameters: Parameters = {}
        self.score = -np.inf
        self.failed: Diverged | None = None

    def shown(self, score: float) -> float:
        """A score, of which greater is better, as the measure has it."""
        return -score if self.lower else score

    def attempt(self, parameters: Parameters) -> float:
        """Fit with these; a descent that diverges is a trial that failed, and no more."""
        start = time.perf_counter()
        candidate = clone(self.ranker).set_params(**parameters)
        if self.last is not None:
            candidate._reuse(self.last)
        try:
            candidate.fit(self.train, valid=self.valid)
        except Diverged as error:
            self.failed = error
            self.done.append(Trial(parameters, np.nan, 0, time.perf_counter() - start))
            return -np.inf
        self.last = candidate
        score = float(candidate.score(self.valid))
        seconds = time.perf_counter() - start
        self.done.append(Trial(parameters, self.shown(score), candidate.n_iter_, seconds))
        if self.best is None or score > self.score:
            self.best, self.score, self.parameters = candidate, score, parameters
        if candidate.interrupted_:
            raise KeyboardInterrupt
        if self.progress is not None:
            self.progress(len(self.done), self.total, self.done[-1])
        return score


def _checked(
    ranker: Ranker, grid: Mapping[str, Sequence[object]] | None, method: str, trials: int
) -> Grid:
    """The grid to search, or an error before any work."""
    search = {name: list(values) for name, values in (grid or ranker._paper_grid()).items()}
    known = ranker.get_params(deep=False)
    for name, values in search.items():
        if name not in known:
            raise DataError(f"{type(ranker).__name__} has no parameter {name!r} to tune.")
        if not values:
            raise DataError(f"there is no value of {name!r} to try.")
    if method not in ("grid", "optuna"):
        raise DataError(f"method must be 'grid' or 'optuna'; got {method!r}.")
    if trials < 1:
        raise DataError(f"trials must be at least 1; got {trials}.")
    return search


def _combinations(search: Grid) -> Iterator[Parameters]:
    for values in itertools.product(*search.values()):
        yield dict(zip(search, values, strict=True))


def _optuna(search: Grid, trials: int, seed: int, attempt: Callable[[Parameters], float]) -> None:
    """Numbers are searched between the grid's ends, by their logarithm where they span decades."""
    try:
        import optuna
    except ImportError as error:
        raise missing_dependency("optuna", "tune", "tuning by Optuna") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def suggest(trial: OptunaTrial, name: str, values: list[Any]) -> object:
        if all(isinstance(v, float) for v in values) and len(values) > 1:
            low, high = min(values), max(values)
            return trial.suggest_float(name, low, high, log=low > 0 and high / low >= 100)
        if all(isinstance(v, int) and not isinstance(v, bool) for v in values) and len(values) > 2:
            return trial.suggest_int(name, min(values), max(values))
        return values[trial.suggest_categorical(name, list(range(len(values))))]

    def run(trial: OptunaTrial) -> float:
        return attempt({name: suggest(trial, name, values) for name, values in search.items()})

    sampler = optuna.samplers.TPESampler(seed=seed)
    optuna.create_study(direction="maximize", sampler=sampler).optimize(run, n_trials=trials)
