"""Parameters and weights of a method, chosen by cross-validation on judged queries."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from firstpage.core import Bools, DataError, FirstpageWarning, Floats, Ints
from firstpage.data import Qrels, Run, match_queries
from firstpage.evaluation.aggregation.aggregation import aggregate, as_runs, default_depth
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.base import Method
from firstpage.evaluation.aggregation.methods import method as parse_method
from firstpage.evaluation.aggregation.weights import judgments_of_runs
from firstpage.evaluation.measures.base import Measure
from firstpage.evaluation.measures.evaluate_systems import evaluate
from firstpage.evaluation.measures.registry import MeasureLike
from firstpage.evaluation.measures.registry import measure as parse_measure
from firstpage.evaluation.measures.significance import difference_interval, paired_t

What = Literal["parameters", "weights", "all"]
WEIGHT_POWERS = (0.0, 1.0, 2.0, 4.0, 8.0)  # weights are the rankers' means to one of these powers


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Results on queries that took no part in a choice, beside those of a fixed method.

    Attributes
    ----------
    measure : str
        The measure.
    values, baseline : ndarray of shape (n_queries,)
        The measure of each query, with the choice of the other folds and by the fixed method.
    baseline_name : str
        The fixed method.
    choices : tuple of str
        What each fold chose.
    seed : int
        The seed of folds and bootstrap.
    mean, gain, p : float
        The mean, its difference to the baseline's, and the p-value of a paired t-test.
    interval : tuple of float
        A 95% bootstrap interval of the gain.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> values, baseline = np.array([1.0, 0.5]), np.array([0.5, 0.5])
    >>> fp.aggregation.HeldOut("RR", values, baseline, "RRF", ("RRF(c=20)",)).gain
    0.25
    """

    measure: str
    values: Floats
    baseline: Floats
    baseline_name: str
    choices: tuple[str, ...]
    seed: int = 0

    @property
    def mean(self) -> float:
        """The mean of the measure on held-out queries."""
        return float(self.values.mean())

    @property
    def gain(self) -> float:
        """The difference of the mean to that of the baseline."""
        return self.mean - float(self.baseline.mean())

    @property
    def p(self) -> float:
        """The p-value of a paired t-test of the gain."""
        return paired_t(self.values - self.baseline)

    @property
    def interval(self) -> tuple[float, float]:
        """A 95% bootstrap interval of the gain."""
        return difference_interval(self.values - self.baseline, self.seed)

    def to_dict(self) -> dict[str, Any]:
        """Return the results as JSON-serializable values.

        Returns
        -------
        dict
            Measure, means, gain with interval and p-value, and the choice of each fold.
        """
        return {
            "measure": self.measure,
            "queries": len(self.values),
            "mean": self.mean,
            "baseline": self.baseline_name,
            "baseline_mean": float(self.baseline.mean()),
            "gain": self.gain,
            "interval": list(self.interval),
            "p": self.p,
            "choices": list(self.choices),
        }

    def __str__(self) -> str:
        low, high = self.interval
        return (
            f"{self.measure} on {len(self.values)} queries, each held out of the choice: "
            f"{self.mean:.4f}; {self.baseline_name}: {self.baseline.mean():.4f}; gain "
            f"{self.gain:+.4f} (95% interval {low:+.4f} to {high:+.4f}, p = {self.p:.3g})"
        )

    __repr__ = __str__


@dataclass(frozen=True, eq=False)
class TunedMethod:
    """A method with its parameters and weights chosen on judged queries.

    Attributes
    ----------
    method : Method
        The method with the parameters that are best on all judged queries.
    weights : ndarray of shape (n_rankers,) or None
        The weights that are best, or None if they are equal.
    held_out : HeldOut
        What the choice gains on queries that took no part in it.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [{"p": {"a": 2, "b": 1}, "q": {"a": 2}}, {"p": {"b": 1}, "q": {"b": 1}}]
    >>> qrels = {"p": {"a": 1}, "q": {"a": 1}}
    >>> tuned = fp.aggregation.tune_method(runs, qrels, what="weights", measure="RR", folds=2)
    >>> str(tuned.method), tuned.held_out.mean
    ('RRF', 1.0)
    """

    method: Method
    weights: Floats | None
    held_out: HeldOut

    def __str__(self) -> str:
        return f"{_setting_text(self.method, self.weights)}\n{self.held_out}"

    __repr__ = __str__


def tune_method(
    rankings: Sequence[Any],
    qrels: Any,
    method: str | Method = "RRF",
    *,
    what: What = "parameters",
    grid: Mapping[str, Sequence[Any]] | None = None,
    measure: MeasureLike = "NDCG@10",
    folds: int = 5,
    seed: int = 0,
    **options: Any,
) -> TunedMethod:
    """Choose the parameters or the weights of a method by cross-validation on judged queries.

    Each fold takes the setting that is best on the other folds, and is measured with it; the result
    takes the setting that is best on all judged queries.

    Parameters
    ----------
    rankings : sequence of Run or dict
        A run per ranker.
    qrels : Qrels or dict
        Judgments.  Those queries count that the runs have.
    method : str or Method, default "RRF"
        The method; the baseline is this method as it is given, with equal weights.
    what : {"parameters", "weights", "all"}, default "parameters"
        What to choose.  Weights are the rankers' means of the measure on the training queries, to
        the power 0, 1, 2, 4 or 8; with "all" they are chosen for the chosen parameters.
    grid : dict of list, optional
        The values to try, by parameter; by default those that the method lists.
    measure : str or Measure, default "NDCG@10"
        A measure that is better when higher, and a mean over the queries.
    folds : int, default 5
        The number of folds.
    seed : int, default 0
        The seed of the folds.
    **options
        Keyword arguments of `Ballots.from_runs`: base, depth, same_depth, missing.  The depth is by
        default that of `aggregate`.

    Returns
    -------
    TunedMethod
        The method, the weights, and the results on held-out queries.

    Raises
    ------
    DataError
        If there is nothing to choose, there are fewer than two judged queries, or the measure of
        every run is 0.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [{"p": {"a": 2, "b": 1}, "q": {"a": 2}}, {"p": {"b": 1}, "q": {"b": 1}}]
    >>> qrels = {"p": {"a": 1}, "q": {"a": 1}}
    >>> tuned = fp.aggregation.tune_method(runs, qrels, what="weights", measure="RR", folds=2)
    >>> tuned.weights.tolist()
    [1.0, 0.0]
    """
    base = parse_method(method)
    settings = _settings(base, what, grid)
    value = parse_measure(measure)
    check_tuned_measure(value)
    runs = as_runs(rankings)
    judged = judgments_of_runs(
        runs, Qrels.from_dict(qrels) if isinstance(qrels, Mapping) else qrels
    )
    fold = fold_of_query(len(judged), folds, seed)
    options = {"depth": default_depth(base), **options}
    search = _FusionSearch(judged_runs(runs, judged), judged, str(value), what, options)
    if not search.of_rankers.any():
        raise DataError(
            f"{judged.source or 'qrels'}: {value} of every run is 0 on all {len(judged)} judged "
            "queries, so nothing can be chosen by it; are the ids of documents the same?"
        )
    held_out, choices = np.empty(len(judged)), []
    for number in range(int(fold.max()) + 1):
        train = fold != number
        chosen, weights, values = search.best(settings, train)
        held_out[~train] = values[~train]
        choices.append(_setting_text(chosen, weights))
    best, weights, _ = search.best(settings, np.ones(len(judged), bool))
    baseline = search.values(base, None)
    results = HeldOut(str(value), held_out, baseline, str(base), tuple(choices), seed)
    return TunedMethod(best, weights, results)


def check_tuned_measure(measure: Measure) -> None:
    """Refuse a measure by whose mean over queries nothing can be chosen."""
    if measure.lower_is_better:
        raise DataError(f"{measure} is better when lower; tuning needs one better when higher.")
    if not measure.is_mean:
        raise DataError(f"{measure} is not a mean over queries; tuning needs one that is.")


def fold_of_query(queries: int, folds: int, seed: int) -> Ints:
    """Return the fold of each query, from 0: equally large random folds, at most one per query."""
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or folds < 2:
        raise DataError(f"folds must be an integer of at least 2; got {folds!r}.")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
        raise DataError(f"seed must be an integer of at least 0; got {seed!r}.")
    if queries < 2:
        raise DataError(f"cross-validation needs at least 2 judged queries; there are {queries}.")
    order = np.random.default_rng(seed).permutation(queries)
    fold = np.empty(queries, np.int64)
    fold[order] = np.arange(queries) % min(int(folds), queries)
    return fold


def query_values(run: Run, judged: Qrels, measure: str) -> Floats:
    """Return the measure of each judged query, without warnings about unjudged documents."""
    if not len(run):
        return np.zeros(len(judged))  # a query that a run lacks counts 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FirstpageWarning)
        return evaluate(run, judged, measures=[measure]).per_query(measure)


def _settings(base: Method, what: What, grid: Mapping[str, Sequence[Any]] | None) -> list[Method]:
    """Return the method with every combination of parameters to try."""
    if what not in get_args(What):
        raise DataError(f"tuning chooses parameters, weights or all; got {what!r}.")
    if what == "weights":
        return [base]
    values: Mapping[str, Sequence[Any]] = getattr(type(base), "tuned", {}) if grid is None else grid
    if not values:
        raise DataError(f"{type(base).__name__} has no parameters to tune; tune its weights.")
    return [
        parse_method(
            type(base).__name__, **{**vars(base), **dict(zip(values, combined, strict=True))}
        )
        for combined in itertools.product(*values.values())
    ]


def judged_runs(runs: Sequence[Run], judged: Qrels) -> list[Run]:
    """Return the judged queries of each run."""
    return [
        run.select_queries(np.flatnonzero(match_queries(run.queries, judged.queries) >= 0))
        for run in runs
    ]


class _FusionSearch:
    """The measure of each judged query under settings of a method."""

    def __init__(
        self, runs: list[Run], judged: Qrels, measure: str, what: What, options: dict[str, Any]
    ) -> None:
        self.judged, self.measure = judged, measure
        self.runs, self.options = runs, options
        self.ballots = Ballots.from_runs(runs, **options)
        self.powers = (0.0,) if what == "parameters" else WEIGHT_POWERS
        self.of_rankers = np.array([self._measured(run) for run in runs])
        self.equal: dict[str, Floats] = {}  # by the text of the method

    def _measured(self, run: Run) -> Floats:
        return query_values(run, self.judged, self.measure)

    def values(self, method: Method, weights: Floats | None) -> Floats:
        """Return the measure of each judged query."""
        if weights is not None:  # which the base order depends on
            ballots = Ballots.from_runs(self.runs, weights=weights, **self.options)
            return self._measured(aggregate(ballots, method, weights=weights).run)
        if str(method) not in self.equal:
            self.equal[str(method)] = self._measured(aggregate(self.ballots, method).run)
        return self.equal[str(method)]

    def best(self, settings: list[Method], train: Bools) -> tuple[Method, Floats | None, Floats]:
        """Return the setting that is best on the training queries, and the values of all.

        Parameters are chosen with equal weights, and weights for these parameters.
        """
        means = np.maximum(self.of_rankers[:, train].mean(axis=1), 0.0)
        trials = [(method, None) for method in settings]
        chosen, weights, values = self._first_best(trials, train)
        if not means.any():
            return chosen, weights, values
        powers = [means**power for power in self.powers if power > 0]
        weighted = [(chosen, power / power.sum()) for power in powers]
        return self._first_best([(chosen, None), *weighted], train)

    def _first_best(
        self, trials: Sequence[tuple[Method, Floats | None]], train: Bools
    ) -> tuple[Method, Floats | None, Floats]:
        results = [(*trial, self.values(*trial)) for trial in trials]
        scores = [values[train].mean() for _, _, values in results]
        return results[int(np.argmax(np.round(scores, 12)))]


def _setting_text(method: Method, weights: Floats | None) -> str:
    if weights is None:
        return str(method)
    return f"{method} with the weights {', '.join(f'{w:.3f}' for w in weights)}"
