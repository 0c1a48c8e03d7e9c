"""combine(): one set of judgments from people and several other sources, such as clicks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import Bools, DataError, Floats, Ints, Table, Tabular
from firstpage.data import Qrels
from firstpage.evaluation.measures.sources import is_path, read_truth, unique_names

FOLDS = 5
MIN_SHARED = 20  # documents that people and a source must both judge
RIDGE = 1e-6  # of a variance, so that equal sources can be combined


@dataclass(frozen=True)
class SourceWeight:
    """What one source contributes to combined judgments.

    Attributes
    ----------
    name : str
        The name of the source.
    documents, shared : int
        How many documents it judges, and how many of them people judge too.
    weight : float
        How much a predicted grade grows with the source's by 1, where all sources judge.
    error : float
        Root mean squared error of its best linear prediction of human grades, on queries that were
        not used to fit it.

    Examples
    --------
    >>> import firstpage as fp
    >>> human = {f"q{n}": {"a": 1, "b": 0} for n in range(20)}
    >>> clicks = {f"q{n}": {"a": 2, "b": n % 2} for n in range(30)}
    >>> source = fp.planning.combine(human, {"clicks": clicks}).sources[0]
    >>> source.name, source.documents, source.shared
    ('clicks', 60, 40)
    """

    name: str
    documents: int
    shared: int
    weight: float
    error: float


@dataclass(frozen=True, eq=False, repr=False)
class Combination(Tabular):
    """The result of `fp.planning.combine`: judgments of people and of other sources in one.

    Attributes
    ----------
    sources : tuple of SourceWeight
        The weight and the error of each source.
    error, constant_error : float
        Root mean squared error of the combined prediction on queries that were not used to fit it,
        and that of the mean human grade.
    predicted : Qrels
        The predicted grades of all documents that a source judges.  Those of a query that people
        judged do not depend on the human judgments of this query.
    human : Qrels
        The judgments of people.

    Examples
    --------
    >>> import firstpage as fp
    >>> human = {f"q{n}": {"a": 1, "b": 0} for n in range(20)}
    >>> clicks = {f"q{n}": {"a": 2, "b": n % 2} for n in range(30)}
    >>> combined = fp.planning.combine(human, {"clicks": clicks})
    >>> combined.qrels().to_dict()["q25"]
    {'a': 1.0, 'b': 0.0}
    """

    sources: tuple[SourceWeight, ...]
    error: float
    constant_error: float
    predicted: Qrels
    human: Qrels

    def qrels(self) -> Qrels:
        """Return one set of judgments.

        Returns
        -------
        Qrels
            The grade of people where there is one, else the predicted grade.
        """
        table = self.predicted.to_dict()
        for query, grades in self.human.to_dict().items():
            table.setdefault(query, {}).update(grades)
        return Qrels.from_dict(table)

    def _frame_columns(self) -> dict[str, Any]:
        names = ("name", "documents", "shared", "weight", "error")
        return {name: [getattr(source, name) for source in self.sources] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return the weights as a dictionary.

        Returns
        -------
        dict
            The sources, and the errors of the combination and of a constant.
        """
        sources = [vars(source) for source in self.sources]
        errors = {"error": self.error, "constant_error": self.constant_error}
        return {"sources": sources, **errors}

    def summary_table(self) -> Table:
        rows = [
            [s.name, f"{s.documents:,}", f"{s.shared:,}", f"{s.weight:+.3f}", f"{s.error:.3f}"]
            for s in self.sources
        ]
        rows.append(
            ["all together", f"{len(self.predicted.values):,}", "", "", f"{self.error:.3f}"]
        )
        rows.append(["mean human grade", "", "", "", f"{self.constant_error:.3f}"])
        note = "error: of predicted human grades, on queries that were not used to fit the weights"
        head = ["source", "documents", "judged by people", "weight", "error"]
        return Table(head, rows, "judgments combined", note)

    def __str__(self) -> str:
        return self.summary_table().text()

    __repr__ = __str__


def combine(human: Any, sources: Mapping[str, Any] | Sequence[Any], seed: int = 0) -> Combination:
    """Combine judgments of people with those of other sources, such as machines and clicks.

    The grade of people is predicted by the best linear function of the grades of the sources that
    judge a document.  Its weights follow from means and covariances over the documents that people
    judge too.  Predictions become grades by the levels at which they are as frequent as the human
    ones.

    Parameters
    ----------
    human : Qrels, dict or path
        The judgments of people.
    sources : dict of str to Qrels, or sequence of Qrels or paths
        The judgments of each source; scales may differ.
    seed : int, default 0
        The random seed of the folds of queries.

    Returns
    -------
    Combination
        Predicted grades, weights and errors.

    Raises
    ------
    DataError
        If people share fewer than 20 documents with a source, or judge fewer than 5 queries.

    References
    ----------
    Zrnic and Candes, Cross-Prediction-Powered Inference, PNAS 2024 (predictions of a query by
    judgments of other queries).

    Examples
    --------
    >>> import firstpage as fp
    >>> human = {f"q{n}": {"a": 1, "b": 0} for n in range(20)}
    >>> robot = {f"q{n}": {"a": n % 3, "b": 0} for n in range(30)}
    >>> clicks = {f"q{n}": {"a": 2, "b": n % 2} for n in range(30)}
    >>> combined = fp.planning.combine(human, {"robot": robot, "clicks": clicks})
    >>> [source.shared for source in combined.sources], combined.error < combined.constant_error
    ([40, 40], True)
    """
    if not isinstance(sources, Mapping):
        columns = [_judgments(source) for source in sources]
        names = unique_names(
            [column.name for column in columns], [column.source for column in columns]
        )
    else:
        columns, names = [_judgments(source) for source in sources.values()], list(sources)
    people = _judgments(human)
    if len(people) < FOLDS:
        raise DataError(f"people judge {len(people)} queries; weights need at least {FOLDS}.")
    table = _Judged.of(people, columns)
    for name, x in zip(names, table.x.T, strict=True):
        shared = int((~np.isnan(x) & ~np.isnan(table.y)).sum())
        if shared < MIN_SHARED:
            raise DataError(
                f"{name}: judges {shared} documents that people judge too; to weight it, "
                f"{MIN_SHARED} are needed."
            )
    fold = np.random.default_rng(seed).permutation(len(people)) % FOLDS
    fold = np.where(table.query < 0, FOLDS, fold[table.query])  # FOLDS: people do not judge it
    value = table.cross_fitted(fold, np.ones(len(columns), bool))
    known = ~np.isnan(table.y) & ~np.isnan(value)
    weights = _BestLinear.fit(table.x, table.y).weights(np.ones(len(columns), bool))
    constant = np.array([np.nanmean(table.y[fold != f]) for f in range(FOLDS)])
    described = []
    for s, name in enumerate(names):
        alone = table.cross_fitted(fold, np.arange(len(columns)) == s)
        described.append(
            SourceWeight(
                name,
                len(columns[s].values),
                int((~np.isnan(alone) & ~np.isnan(table.y)).sum()),
                float(weights[s]),
                _rmse(alone - table.y),
            )
        )
    levels, cutoffs = _cutoffs(value[known], table.y[known])
    judged = np.flatnonzero(~np.isnan(value))
    grades = levels[np.searchsorted(cutoffs, value[judged], side="right")]
    pairs = [table.pairs[row] for row in judged.tolist()]
    predicted = Qrels.from_arrays([q for q, _ in pairs], [d for _, d in pairs], grades)
    return Combination(
        tuple(described),
        _rmse((value - table.y)[known]),
        _rmse(constant[fold[known]] - table.y[known]),
        predicted,
        people,
    )


@dataclass(frozen=True, eq=False)
class _BestLinear:
    """Means and covariances of human grades (first) and the grades of sources."""

    mean: Floats
    covariance: Floats

    @classmethod
    def fit(cls, x: Floats, y: Floats) -> _BestLinear:
        """Return the moments over the documents that people judge.

        Two sources that share no such documents are taken to be independent given the human grade.
        """
        values = np.column_stack([y, x])[~np.isnan(y)]
        present = ~np.isnan(values)
        counts = present.sum(axis=0)
        mean = np.nansum(values, axis=0) / np.maximum(counts, 1)
        deviation = np.where(present, values - mean, 0.0)
        shared = present.T.astype(float) @ present
        covariance = deviation.T @ deviation / np.maximum(shared, 1)
        given_human = np.outer(covariance[0], covariance[0]) / max(covariance[0, 0], RIDGE)
        few = shared < MIN_SHARED
        few[0] = few[:, 0] = False
        np.fill_diagonal(few, False)
        covariance = np.where(few, given_human, covariance)
        values_, vectors = np.linalg.eigh(covariance)
        return cls(mean, vectors * np.maximum(values_, 0.0) @ vectors.T)

    def weights(self, sources: Bools) -> Floats:
        """Return the weights of these sources in the best linear prediction of human grades."""
        rows = 1 + np.flatnonzero(sources)
        within = self.covariance[np.ix_(rows, rows)]
        ridge = np.diag(RIDGE * np.diag(within) + 1e-12)
        return np.asarray(np.linalg.solve(within + ridge, self.covariance[rows, 0]))

    def predict(self, x: Floats, sources: Bools) -> Floats:
        """Return predicted grades from those of these sources that judge; NaN where none does."""
        value = np.full(len(x), np.nan)
        present = ~np.isnan(x) & sources
        for pattern in np.unique(present, axis=0):
            rows = np.flatnonzero((present == pattern).all(axis=1))
            if pattern.any():
                deviation = x[np.ix_(rows, np.flatnonzero(pattern))] - self.mean[1:][pattern]
                value[rows] = self.mean[0] + deviation @ self.weights(pattern)
        return value


@dataclass(frozen=True, eq=False)
class _Judged:
    """A row per pair of query and document: the human grade, and a column per source."""

    pairs: list[tuple[str, str]]
    query: Ints  # number of the query among those that people judge, or -1
    y: Floats
    x: Floats

    @classmethod
    def of(cls, human: Qrels, sources: Sequence[Qrels]) -> _Judged:
        """Return the judgments of all documents; NaN where a judge has none."""
        numbers: dict[tuple[str, str], int] = {}
        cells = []
        for column in (human, *sources):
            queries = column.queries.repeat(np.diff(column.offsets))
            keys = zip(queries, column.docids, strict=True)
            cells.append([numbers.setdefault(key, len(numbers)) for key in keys])
        values = np.full((len(numbers), 1 + len(sources)), np.nan)
        for s, column in enumerate((human, *sources)):
            values[cells[s], s] = column.values
        judged = {name: number for number, name in enumerate(human.queries)}
        query = np.array([judged.get(name, -1) for name, _ in numbers], np.int64)
        return cls(list(numbers), query, values[:, 0], values[:, 1:])

    def cross_fitted(self, fold: Ints, sources: Bools) -> Floats:
        """Return predictions by these sources, of each fold by the human grades of the others."""
        value = np.empty(len(self.y))
        for f in range(FOLDS + 1):
            linear = _BestLinear.fit(self.x, np.where(fold == f, np.nan, self.y))
            value[fold == f] = linear.predict(self.x[fold == f], sources)
        return value


def _cutoffs(value: Floats, grades: Floats) -> tuple[Floats, Floats]:
    """Return the human grades, and the predictions from which each is as frequent as by people."""
    levels, counts = np.unique(grades, return_counts=True)
    return levels, np.quantile(value, np.cumsum(counts)[:-1] / counts.sum())


def _rmse(errors: Floats) -> float:
    """Return the root mean square of the errors that are known."""
    known = errors[~np.isnan(errors)]
    return float(np.sqrt((known**2).mean())) if len(known) else float("nan")


def _judgments(value: Any) -> Qrels:
    """Return judgments of a file, a mapping or an object."""
    read = read_truth(value) if is_path(value) else value
    read = Qrels.from_dict(read) if isinstance(read, Mapping) else read
    if not isinstance(read, Qrels):
        raise DataError(f"judgments are qrels; got {type(value).__name__}.")
    return read
