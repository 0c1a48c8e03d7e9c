"""Cross-validation over the folds of a LETOR folder, with tuning and several seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from firstpage.core import DataError, Floats, Table, Tabular, warn
from firstpage.data import Dataset, Fold, Run
from firstpage.data.preferences import PairTruth, PreferencePairs
from firstpage.evaluation.measures import (
    Convention,
    Measure,
    MeasureLike,
    adjust_p_values,
    evaluate,
    measures_by_text,
    randomization,
)
from firstpage.learning.rankers.base import Ranker
from firstpage.learning.rankers.fit.pair_measures import (
    ACCURACY,
    LOG_LOSS,
    NEEDS_PAIRS,
    PAIR_MEASURES,
    AnyMeasure,
    PairMeasure,
    truth_of_pairs,
)
from firstpage.learning.rankers.fit.progress import Record
from firstpage.learning.rankers.selection.tuning import tune

DEFAULT_MEASURES = ("NDCG@1", "NDCG@3", "NDCG@10", "AP")
DEFAULT_PAIR_MEASURES = (ACCURACY, LOG_LOSS)


@dataclass(frozen=True, eq=False)
class CrossValidation(Tabular):
    """The test values of every query, by ranker and measure.

    As a data frame (`to_pandas`, `to_polars`) it has one row per ranker and measure: mean,
    standard error over queries, and standard deviation between seeds.

    Attributes
    ----------
    measures : tuple of str
        The measures.
    convention : str
        The evaluation convention.
    queries : tuple of str
        The test queries of all folds.
    query_folds : ndarray of shape (n_queries,)
        The number of the fold of each test query.
    values : dict of dict of ndarray
        values[name][measure] has one row per seed and one column per test query.
    chosen : dict of list of dict
        The parameters that tuning chose per ranker, fold and seed; empty lists without tuning.
    runs : dict of str to Run
        The ranking of all test queries per ranker, with the first seed: each query is ranked by a
        model that was trained without it.  Empty if the data have no document ids.

    Examples
    --------
    >>> import firstpage as fp
    >>> import numpy as np
    >>> values = {"A": {"AP": np.array([[0.5, 1.0]])}, "B": {"AP": np.array([[0.4, 0.6]])}}
    >>> folds = np.array([1.0, 1.0])
    >>> results = fp.results.CrossValidation(("AP",), "default", ("q1", "q2"), folds, values, {})
    >>> results.mean("A", "AP")
    0.75
    """

    measures: tuple[str, ...]
    convention: str
    queries: tuple[str, ...]
    query_folds: Floats
    values: dict[str, dict[str, Floats]]
    chosen: dict[str, list[dict[str, Any]]]
    runs: dict[str, Run] = field(default_factory=dict)

    def mean(self, name: str, measure: str) -> float:
        """Return the mean over seeds of the mean over folds, as published tables report it.

        Parameters
        ----------
        name : str
            The ranker.
        measure : str
            The measure.

        Returns
        -------
        float
            The mean; every fold has the same weight.
        """
        return float((self.values[name][measure] * self._fold_weights()).mean())

    def _fold_weights(self) -> Floats:
        """Return one weight per query, 1 on average, that gives every fold the same weight."""
        _, fold, sizes = np.unique(self.query_folds, return_inverse=True, return_counts=True)
        weights: Floats = len(fold) / (len(sizes) * sizes[fold])
        return weights

    def standard_error(self, name: str, measure: str) -> float:
        """Return the standard error of the mean over queries.

        Parameters
        ----------
        name : str
            The ranker.
        measure : str
            The measure.

        Returns
        -------
        float
            The standard error of the values, which are averaged over seeds first.
        """
        values = self.values[name][measure].mean(axis=0)
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0

    def seed_deviation(self, name: str, measure: str) -> float | None:
        """Return the standard deviation of the mean between seeds.

        Parameters
        ----------
        name : str
            The ranker.
        measure : str
            The measure.

        Returns
        -------
        float or None
            The standard deviation; None with one seed.
        """
        means = (self.values[name][measure] * self._fold_weights()).mean(axis=1)
        return float(means.std(ddof=1)) if len(means) > 1 else None

    def differences(self, baseline: str, measure: str) -> dict[str, tuple[float, float]]:
        """Return the difference of every other ranker to a baseline, with its p-value.

        Parameters
        ----------
        baseline : str
            The ranker to compare with.
        measure : str
            The measure.

        Returns
        -------
        dict of str to (float, float)
            By ranker, the difference of the means of `mean`, and the p-value of a randomization
            test over queries, each with the weight of its fold, with Holm's correction.

        Raises
        ------
        DataError
            If there is no such ranker.
        """
        if baseline not in self.values:
            known = ", ".join(self.values)
            raise DataError(
                f"there is no ranker {baseline!r} to compare with (there are: {known})."
            )
        baseline_values = self.values[baseline][measure].mean(axis=0)
        others = [name for name in self.values if name != baseline]
        weights = self._fold_weights()
        differences = [
            (self.values[name][measure].mean(axis=0) - baseline_values) * weights for name in others
        ]
        p_values = adjust_p_values(np.array([randomization(each) for each in differences]), "holm")
        return {
            name: (float(difference.mean()), float(p))
            for name, difference, p in zip(others, differences, p_values, strict=True)
        }

    def __str__(self) -> str:
        """Return the means by ranker and measure, with their standard errors over queries."""
        seeds = len(next(iter(self.values.values()))[self.measures[0]])
        width = max(len(name) for name in self.values)
        lines = [
            f"{len(self.queries)} test queries in {len(np.unique(self.query_folds))} folds, "
            f"{seeds} seed{'s' * (seeds > 1)}, convention {self.convention}; mean ± standard error"
        ]
        for name in self.values:
            cells = [
                f"{m} {self.mean(name, m):.4f} ± {self.standard_error(name, m):.4f}"
                for m in self.measures
            ]
            lines.append(f"{name:<{width}}  {'  '.join(cells)}")
        return "\n".join(lines)

    __repr__ = __str__

    def _frame_columns(self) -> dict[str, Any]:
        """Return mean, standard error and seed deviation per ranker and measure."""
        cells = [(name, measure) for name in self.values for measure in self.measures]
        return {
            "ranker": [name for name, _ in cells],
            "measure": [measure for _, measure in cells],
            "mean": [self.mean(*cell) for cell in cells],
            "standard_error": [self.standard_error(*cell) for cell in cells],
            "seed_deviation": [self.seed_deviation(*cell) for cell in cells],
        }

    def summary_table(self) -> Table:
        """Return the means with their standard errors, one row per ranker."""
        rows = [
            [
                name,
                *(
                    f"{self.mean(name, m):.4f} ± {self.standard_error(name, m):.4f}"
                    for m in self.measures
                ),
            ]
            for name in self.values
        ]
        title = f"{len(self.queries)} test queries, convention {self.convention}"
        return Table(["ranker", *self.measures], rows, title)

    def to_dict(self, baseline: str | None = None) -> dict[str, Any]:
        """Return the results as JSON.

        Parameters
        ----------
        baseline : str, optional
            A ranker with which the others are compared, under the key "differences".

        Returns
        -------
        dict
            The keys "convention", "queries", "results" and "chosen".

        Raises
        ------
        DataError
            If there is no such ranker.
        """
        report = self._to_dict()
        if baseline is not None:
            report["baseline"] = baseline
            report["differences"] = [
                {"ranker": name, "measure": m, "difference": difference, "p": p}
                for m in self.measures
                for name, (difference, p) in self.differences(baseline, m).items()
            ]
        return report

    def _to_dict(self) -> Record:
        return {
            "convention": self.convention,
            "queries": len(self.queries),
            "results": [
                {
                    "ranker": name,
                    "measure": m,
                    "mean": self.mean(name, m),
                    "se_queries": self.standard_error(name, m),
                    "sd_seeds": self.seed_deviation(name, m),
                }
                for name in self.values
                for m in self.measures
            ],
            "chosen": self.chosen,
        }


def cross_validate(
    rankers: Ranker | Mapping[str, Ranker] | Iterable[Ranker],
    folds: Sequence[Fold],
    measures: MeasureLike | Sequence[MeasureLike] = DEFAULT_MEASURES,
    convention: str | Convention = "default",
    tuned: bool = False,
    seeds: Sequence[int] = (0,),
    progress: Callable[[str, int, int], object] | None = None,
    top_k: int | None = None,
    runs: Mapping[str, Run] | None = None,
    pairs: PreferencePairs | None = None,
    **search: Any,
) -> CrossValidation:
    """Train on each fold, select on its validation data, and measure on its test data.

    Parameters
    ----------
    rankers : Ranker, list of Ranker or dict of Ranker
        The rankers, by name where they are a dict.
    folds : sequence of Fold
        The folds, from `read_folds`.
    measures : str, Measure or sequence of them
        The measures; by default NDCG@1, NDCG@3, NDCG@10 and AP, and with pairs PairAccuracy and
        PairLogLoss.
    convention : str or Convention, default "default"
        The evaluation convention.
    tuned : bool, default False
        Choose the parameters of each ranker by `tune` on the validation data.
    seeds : sequence of int, default (0,)
        Train once per seed; seeds break ties and initialize networks.
    progress : callable, optional
        Called with (ranker, fold, seed) before each fit.
    top_k : int, optional
        Train, select and test on the top-k truth of the labels: k, k-1, .., 1, 0, .., 0, with equal
        labels in a random order of seed 0.
    runs : mapping of str to Run, optional
        Rankings that are measured on the same queries, such as that of a first stage.  A test
        document that a run lacks comes last.
    pairs : PreferencePairs, optional
        Votes on pairs of documents, on which rankers are trained, selected and tested instead of
        labels.  Test queries without votes are left out.
    **search : object
        Options of `tune`.

    Returns
    -------
    CrossValidation
        The test values of every query.

    Raises
    ------
    DataError
        If there is no fold or no seed, or no validation data to tune on.

    Examples
    --------
    >>> import tempfile
    >>> import firstpage as fp
    >>> data = fp.Synthetic(queries=9, docs=8, features=3).dataset()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fp.write_folds(data, folder, count=3)
    ...     folds = fp.read_folds(folder, cache=False)
    ...     results = fp.cross_validate(fp.ListNet(), folds, measures="NDCG@5")
    >>> len(results.queries)
    9
    """
    if not folds:
        raise DataError("there is no fold to train on.")
    for each in folds:
        if not isinstance(each, Fold):
            raise DataError(
                "cross_validate takes folds, as of read_folds or split_folds; got "
                f"{type(each).__name__}."
            )
    seeds = list(seeds)
    if not seeds:
        raise DataError("name at least one seed.")
    named = _named(rankers)
    for name in runs or {}:
        if name in named:
            raise DataError(f"a ranker and a run are both named {name!r}; rename the run.")
    parsed = _measures(measures, pairs)  # measure files are read here, once for all folds
    fold_data = [_FoldData.from_fold(fold, top_k) for fold in folds]
    if pairs is not None:
        if top_k is not None:
            raise DataError("top_k reads labels, and pairs replace them; give one of both.")
        fold_data = _with_pairs(fold_data, pairs)
    test = _TestData(fold_data, parsed, Convention(convention))
    values: dict[str, dict[str, Floats]] = {}
    chosen: dict[str, list[dict[str, Any]]] = {}
    test_runs: dict[str, Run] = {}
    for name, ranker in named.items():
        chosen[name] = []
        by_seed = []
        for seed in seeds:
            scores = []
            for fold in fold_data:
                if progress is not None:
                    progress(name, fold.number, seed)
                fitted, parameters = _fit(clone(ranker).set_params(seed=seed), fold, tuned, search)
                if tuned:
                    chosen[name].append({"fold": fold.number, "seed": seed, **parameters})
                scores.append(fitted.predict(fold.test))
            by_seed.append(test.evaluate(scores))
            if seed == seeds[0] and all(fold.test.docids is not None for fold in fold_data):
                test_runs[name] = _joined_run(name, fold_data, scores)
        values[name] = {m: np.array([seed_values[m] for seed_values in by_seed]) for m in parsed}
    for name, run in (runs or {}).items():
        chosen[name] = []
        values[name] = test.evaluate_run(run, len(seeds))
    return CrossValidation(
        tuple(parsed),
        str(test.convention),
        tuple(q for fold in fold_data for q in fold.test.queries),
        np.concatenate([np.full(len(f.test), float(f.number)) for f in fold_data]),
        values,
        chosen,
        test_runs,
    )


def _joined_run(name: str, folds: Sequence[_FoldData], scores: Sequence[Floats]) -> Run:
    """Return the ranking of the test queries of all folds."""
    qid = [q for fold in folds for q in fold.test.qid]
    docids = [d for fold in folds for d in fold.test.docids or ()]
    return Run.from_arrays(qid, docids, np.concatenate(scores), name)


def run_scores(run: Run, data: Dataset) -> Floats:
    """Return the scores of a run for the documents of a dataset; missing ones get the lowest."""
    if data.docids is None:
        raise DataError(f"{data.source}: has no document ids, by which a run is joined.")
    table = run.to_dict()
    lowest = float(run.values.min()) - 1.0
    scores = np.full(data.n_docs, lowest)
    missing = 0
    for q, name in enumerate(data.queries):
        ranked = table.get(name, {})
        for row in range(data.offsets[q], data.offsets[q + 1]):
            score = ranked.get(data.docids[row])
            missing += score is None
            scores[row] = lowest if score is None else score
    if missing == data.n_docs:
        raise DataError(f"{run.source or run.name}: ranks none of the documents of {data.source}.")
    if missing:
        warn(
            f"{run.source or run.name}: lacks {missing:,} of {data.n_docs:,} documents of "
            f"{data.source}; they come last."
        )
    return scores


@dataclass(frozen=True, eq=False)
class _FoldData:
    """The datasets of one fold."""

    number: int
    train: Dataset
    valid: Dataset | None
    test: Dataset
    pairs: PreferencePairs | None = None  # of training and validation queries
    test_truth: PairTruth | None = None

    @classmethod
    def from_fold(cls, fold: Fold, k: int | None) -> _FoldData:
        """Read the datasets of a fold, with the top-k truth of the labels if there is a k."""
        valid = fold.valid if "valid" in fold.splits else None
        datasets = [fold.train, valid, fold.test]
        if k is not None:
            datasets = [None if d is None else d.with_labels(d.truth.top_k(k)) for d in datasets]
        train, valid, test = datasets
        assert train is not None
        assert test is not None
        return cls(fold.number, train, valid, test)


def _measures(
    measures: MeasureLike | Sequence[MeasureLike], pairs: PreferencePairs | None
) -> dict[str, AnyMeasure]:
    """Return the measures by name; the default ones are of labels, or of pairs if there are any."""
    if pairs is not None and measures is DEFAULT_MEASURES:
        measures = DEFAULT_PAIR_MEASURES
    listed = measures if isinstance(measures, (list, tuple)) else [measures]
    parsed: dict[str, AnyMeasure] = {}
    for each in listed:
        if isinstance(each, str) and each in PAIR_MEASURES:
            if pairs is None:
                raise DataError(NEEDS_PAIRS.format(each))
            parsed[each] = PAIR_MEASURES[each]
        else:
            parsed.update(measures_by_text(each))
    return parsed


def _with_pairs(folds: Sequence[_FoldData], pairs: PreferencePairs) -> list[_FoldData]:
    """Return folds with the votes on their documents, and only test queries that have votes."""
    matched = np.zeros(len(pairs), bool)
    datasets = [data for f in folds for data in (f.train, f.valid, f.test) if data is not None]
    for data in datasets:
        matched |= pairs.to_rows(data)[1]
    note = pairs.unmatched(matched, [data.source for data in datasets])
    if note is not None:
        warn(note)
    pairs = pairs[matched]
    with_votes, unvoted = [], 0
    for fold in folds:
        voted = PAIR_MEASURES[ACCURACY].counts(pairs.to_rows(fold.test)[0]) > 0
        unvoted += int((~voted).sum())
        test = fold.test[voted]
        if not len(test):
            raise DataError(f"{pairs.source}: has no votes on test queries of fold {fold.number}.")
        used = [data.queries for data in (fold.train, fold.valid) if data is not None]
        truth = truth_of_pairs(test, pairs.to_rows(test)[0])
        with_votes.append(replace(fold, test=test, pairs=pairs.of_queries(*used), test_truth=truth))
    if unvoted:
        warn(
            f"{pairs.source}: {unvoted:,} test queries have no vote for one of two documents; they "
            "are left out."
        )
    return with_votes


@dataclass(frozen=True, eq=False)
class _TestData:
    """The test queries of all folds, and the measures to evaluate on them."""

    folds: list[_FoldData]
    measures: dict[str, AnyMeasure]
    convention: Convention

    def evaluate(self, scores: Sequence[Floats]) -> dict[str, Floats]:
        """Return the values of every query by measure, from the scores of each fold."""
        of_labels = [m for m in self.measures.values() if isinstance(m, Measure)]
        evaluations = [
            evaluate(s, fold.test, measures=of_labels, convention=self.convention)
            for s, fold in zip(scores, self.folds, strict=True)
            if of_labels
        ]
        values: dict[str, Floats] = {}
        for text, measure in self.measures.items():
            if isinstance(measure, PairMeasure):
                truths = [fold.test_truth for fold in self.folds]
                blocks = [
                    measure.per_query(s, truth)
                    for s, truth in zip(scores, truths, strict=True)
                    if truth is not None
                ]
            else:
                blocks = [e.per_query(str(measure)) for e in evaluations]
            values[text] = np.concatenate(blocks)
        return values

    def evaluate_run(self, run: Run, seeds: int) -> dict[str, Floats]:
        """Return the values of a run, with one row per seed; the rows are equal."""
        values = self.evaluate([run_scores(run, fold.test) for fold in self.folds])
        return {text: np.tile(row, (seeds, 1)) for text, row in values.items()}


def _fit(
    ranker: Ranker, fold: _FoldData, tuned: bool, search: dict[str, Any]
) -> tuple[Ranker, dict[str, str]]:
    """Return the ranker fitted on a fold, and the parameters that tuning chose."""
    chosen: dict[str, str] = {}
    if tuned:
        if fold.valid is None:
            raise DataError(f"fold {fold.number} has no validation data to choose parameters on.")
        search_result = tune(ranker, fold.train, fold.valid, **search, pairs=fold.pairs)
        ranker, interrupted = search_result.best, search_result.interrupted
        chosen = {key: str(value) for key, value in search_result.parameters.items()}
    else:
        ranker.fit(fold.train, valid=fold.valid, pairs=fold.pairs)
        interrupted = ranker.interrupted_
    if interrupted:
        raise KeyboardInterrupt
    return ranker, chosen


def _named(rankers: Ranker | Iterable[Ranker] | Mapping[str, Ranker]) -> dict[str, Ranker]:
    """Return the rankers by name; rankers with the same name are numbered."""
    if isinstance(rankers, Mapping):
        return dict(rankers)
    named: dict[str, Ranker] = {}
    for ranker in [rankers] if isinstance(rankers, Ranker) else list(rankers):
        name, copies = str(ranker), 1
        while name in named:
            copies += 1
            name = f"{ranker} ({copies})"
        named[name] = ranker
    return named
