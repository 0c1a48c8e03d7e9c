"""Choose parameters on validation data, by a grid search or with Optuna."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from firstpage.core import DataError, missing_dependency
from firstpage.data import Dataset
from firstpage.data.preferences import PreferencePairs
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.fit.checks import has_preferences
from firstpage.learning.rankers.fit.estimator import Grid
from firstpage.learning.rankers.fit.fit import Diverged
from firstpage.learning.rankers.fit.pair_measures import any_measure, pair_measure
from firstpage.learning.rankers.fit.run import reuse
from firstpage.learning.rankers.fit.scoring import mean_measure

if TYPE_CHECKING:
    from optuna import Trial as OptunaTrial

DEFAULT_TRIALS = 30
Parameters = dict[str, Any]
"""Values by parameter."""


@dataclass(frozen=True, eq=False)
class Trial:
    """One setting of the parameters, and its result.

    Attributes
    ----------
    parameters : dict
        The values by parameter.
    score : float
        The measure on the validation data; NaN where training diverged.
    iterations : int
        The number of iterations of the fit.
    seconds : float
        The duration of the trial.

    Examples
    --------
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays([[1.0], [2.0]], [0, 1], [1, 1])
    >>> valid = fp.Dataset.from_arrays([[3.0], [1.0]], [1, 0], [2, 2])
    >>> trial = fp.tune(fp.ListNet(), data, valid, grid={"l2": [0.1]}).trials[0]
    >>> trial.parameters, trial.score
    ({'l2': 0.1}, 1.0)
    """

    parameters: Parameters
    score: float
    iterations: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Tuned:
    """The result of `tune`: the best ranker, fitted, and all trials.

    Attributes
    ----------
    best : Ranker
        The best ranker, fitted.
    parameters : dict
        Its parameters that were tuned.
    score : float
        Its measure on the validation data.
    trials : list of Trial
        All trials in the order in which they ran.
    measure : str
        The name of the measure.
    interrupted : bool
        Whether Ctrl-C ended the search.

    Examples
    --------
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays([[1.0], [2.0]], [0, 1], [1, 1])
    >>> valid = fp.Dataset.from_arrays([[3.0], [1.0]], [1, 0], [2, 2])
    >>> tuned = fp.tune(fp.ListNet(), data, valid, grid={"l2": [0.1, 1.0]})
    >>> len(tuned.trials), tuned.best.l2
    (2, 0.1)
    """

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
        """Return one row per trial.

        Returns
        -------
        list of dict
            Parameters, measure, iterations and seconds.
        """
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
    trials: int = DEFAULT_TRIALS,
    progress: Callable[[int, int, Trial], object] | None = None,
    pairs: Any = None,
) -> Tuned:
    """Train one ranker per setting; return the one with the best validation measure.

    Parameters
    ----------
    ranker : Ranker
        The ranker; its `measure` is optimized.
    train : Dataset
        The training data.
    valid : Dataset
        The validation data.
    grid : dict of list, optional
        The values to try, by parameter; by default those of the ranker's paper.
    method : {"grid", "optuna"}, default "grid"
        "grid" tries all combinations.  "optuna" runs `trials` trials; it searches numbers between
        the ends of the grid.
    trials : int, default 30
        The number of trials of method="optuna".
    progress : callable, optional
        Called with (number, total, trial) after each trial.
    pairs : PreferencePairs, optional
        Votes on pairs of the documents of both datasets, to train and to choose on instead of
        labels.

    Returns
    -------
    Tuned
        The best ranker, fitted, and all trials.

    Raises
    ------
    DataError
        If the grid, the method or the data are invalid, or if all trials diverge.
    MissingDependency
        If Optuna is needed and not installed.

    Examples
    --------
    >>> import firstpage as fp
    >>> train = fp.Dataset.from_arrays([[1.0], [2.0], [3.0]], [0, 1, 2], [1, 1, 1])
    >>> valid = fp.Dataset.from_arrays([[2.0], [1.0], [5.0]], [1, 0, 2], [2, 2, 2])
    >>> result = fp.tune(fp.ListNet(), train, valid, grid={"l2": [0.1, 1.0]})
    >>> result.parameters, result.score
    ({'l2': 0.1}, 1.0)
    """
    search = _checked(ranker, grid, method, trials)
    if not isinstance(train, Dataset) or not isinstance(valid, Dataset):
        raise DataError("tune takes two Datasets; make them with Dataset.from_arrays(X, y, qid).")
    total = trials if method == "optuna" else int(np.prod([len(v) for v in search.values()]))
    if pairs is not None and not isinstance(pairs, PreferencePairs):
        raise DataError("tune takes PreferencePairs; read them with fp.read_pairs.")
    if pairs is None and not has_preferences(valid):
        raise DataError(
            f"{valid.source}: no query of the validation data has documents with different labels, "
            "so nothing can be chosen by them."
        )
    state = _ParameterSearch(ranker, train, valid, total, progress, pairs)
    interrupted = False
    try:
        if method == "optuna":
            _optuna(search, trials, ranker.seed, state.attempt)
        else:
            for parameters in _combinations(search):
                state.attempt(parameters)
    except KeyboardInterrupt:
        if state.best is None:
            raise
        interrupted = True
    if state.best is None:
        assert state.error is not None
        raise state.error
    return Tuned(
        state.best,
        state.parameters,
        state.measured(state.score),
        state.trials,
        str(ranker.validation_measure() if pairs is None else state.measure),
        interrupted,
    )


class _ParameterSearch:
    """The state of a search: the trials so far, and the best of them."""

    def __init__(
        self,
        ranker: Ranker,
        train: Dataset,
        valid: Dataset,
        total: int,
        progress: Any,
        pairs: Any,
    ) -> None:
        self.ranker, self.train, self.valid = ranker, train, valid
        self.total, self.progress, self.pairs = total, progress, pairs
        self.measure = (any_measure if pairs is None else pair_measure)(ranker.validation_measure())
        self.trials: list[Trial] = []
        self.best: Ranker | None = None
        self.last: Ranker | None = None
        self.parameters: Parameters = {}
        self.score = -np.inf
        self.error: Diverged | None = None

    @cached_property
    def _valid_pairs(self) -> PreferencePairs | None:
        """The votes on validation documents."""
        if self.pairs is None:
            return None
        matched: PreferencePairs = self.pairs[self.pairs.to_rows(self.valid)[1]]
        return matched

    def measured(self, score: float) -> float:
        """Return the value of the measure from a score, of which greater is better."""
        return -score if self.measure.lower_is_better else score

    def _score(self, candidate: Ranker) -> float:
        """Return the score by the measure of the search, the same for all candidates."""
        if self.pairs is not None:
            return float(candidate.score(self.valid, pairs=self._valid_pairs))
        return mean_measure(candidate, self.measure, self.valid)

    def attempt(self, parameters: Parameters) -> float:
        """Train with these parameters and return the score; -inf where training diverges."""
        start = time.perf_counter()
        candidate = clone(self.ranker).set_params(**parameters)
        if self.last is not None:
            reuse(candidate, self.last)
        try:
            candidate.fit(self.train, valid=self.valid, pairs=self.pairs)
        except Diverged as error:
            self.error = error
            self.trials.append(Trial(parameters, np.nan, 0, time.perf_counter() - start))
            return -np.inf
        self.last = candidate
        score = self._score(candidate)
        seconds = time.perf_counter() - start
        self.trials.append(Trial(parameters, self.measured(score), candidate.n_iter_, seconds))
        if self.best is None or score > self.score:
            self.best, self.score, self.parameters = candidate, score, parameters
        if candidate.interrupted_:
            raise KeyboardInterrupt
        if self.progress is not None:
            self.progress(len(self.trials), self.total, self.trials[-1])
        return score


def _checked(
    ranker: Ranker, grid: Mapping[str, Sequence[object]] | None, method: str, trials: int
) -> Grid:
    """Return the grid to search; raise an error before any work if an argument is invalid."""
    search = {name: list(values) for name, values in (grid or paper_grid(ranker)).items()}
    known = ranker.get_params(deep=False)
    for name, values in search.items():
        if name not in known:
            raise DataError(f"{type(ranker).__name__} has no parameter {name!r} to tune.")
        if not values:
            raise DataError(f"there is no value of {name!r} to try.")
        if name == "measure":
            raise DataError(
                "values of different measures cannot be compared; set measure on the ranker."
            )
    if method not in ("grid", "optuna"):
        raise DataError(f"method must be 'grid' or 'optuna'; got {method!r}.")
    if trials < 1:
        raise DataError(f"trials must be at least 1; got {trials}.")
    return search


def paper_grid(ranker: Ranker) -> Grid:
    """Return the values that the papers search, of parameters that the ranker uses."""
    return ranker.compose().grid(ranker._grid)


def _combinations(search: Grid) -> Iterator[Parameters]:
    """Yield all combinations of the values of a grid."""
    for values in itertools.product(*search.values()):
        yield dict(zip(search, values, strict=True))


def _optuna(search: Grid, trials: int, seed: int, attempt: Callable[[Parameters], float]) -> None:
    """Search with Optuna: numbers between the ends of the grid, in log scale over decades."""
    try:
        import optuna
    except ImportError as error:
        raise missing_dependency("optuna", "tune", "tuning by Optuna") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def suggest(trial: OptunaTrial, name: str, values: list[Any]) -> object:
        numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)
        if numbers and len(values) > 1:
            low, high = min(values), max(values)
            if all(isinstance(v, int) for v in values):
                return trial.suggest_int(name, low, high)
            return trial.suggest_float(name, low, high, log=low > 0 and high / low >= 100)
        return values[trial.suggest_categorical(name, list(range(len(values))))]

    def run(trial: OptunaTrial) -> float:
        return attempt({name: suggest(trial, name, values) for name, values in search.items()})

    sampler = optuna.samplers.TPESampler(seed=seed)
    optuna.create_study(direction="maximize", sampler=sampler).optimize(run, n_trials=trials)
