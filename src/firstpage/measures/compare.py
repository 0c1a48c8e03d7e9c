"""compare(): several systems on the same queries, and tests of their differences."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, get_args

import numpy as np

from firstpage.data.ids import Ids
from firstpage.errors import DataError, FirstpageWarning, MeasureError
from firstpage.measures.comparison.paper import paper_table
from firstpage.measures.convention import WithoutRelevant
from firstpage.measures.evaluate import DEFAULT_MEASURES, evaluate
from firstpage.measures.evaluation import Evaluation
from firstpage.measures.measure import Convention, Queries, Ties, resolve_convention
from firstpage.measures.query_segments import weights_by_query
from firstpage.measures.registry import MeasureLike, as_list
from firstpage.measures.significance import (
    Correction,
    Test,
    adjust_p_values,
    effect_size,
    mean_intervals,
    mean_of,
    p_value,
    randomized_tukey,
)
from firstpage.measures.sources import named_systems, read_truth
from firstpage.table import Table
from firstpage.tabular import Tabular
from firstpage.types import Floats

MAX_PRINTED = 20  # differences that are printed
MAX_TUKEY_ROUNDS = 20_000
TIE_TOLERANCE = 1e-9  # values of two systems closer than this count as equal


@dataclass(frozen=True)
class Difference:
    """The difference of two systems in one measure, with its significance.

    Attributes
    ----------
    measure : str
        Text of the measure.
    system, against : str
        Names of the two systems.
    difference : float
        Mean of `system` minus mean of `against`.
    low, high : float
        95 % bootstrap confidence interval of the difference.
    p : float
        p-value of the paired test.
    p_corrected : float
        p-value, corrected for the number of comparisons in this measure.
    p_tukey : float
        p-value of the randomized Tukey HSD test over all systems.
    effect : float
        Effect size: mean of the differences per query divided by their standard deviation.
    wins, ties, losses : int
        Number of queries on which `system` is better, equal and worse.

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": [2, 1, 2, 1], "b": [1, 2, 2, 1]}
    >>> comparison = fp.compare(systems, [1, 0, 1, 0], qid=[1, 1, 2, 2], measures="RR")
    >>> difference = comparison.differences[0]
    >>> difference.system, difference.against, difference.difference
    ('b', 'a', -0.25)
    """

    measure: str
    system: str
    against: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float
    p_tukey: float
    effect: float
    wins: int
    ties: int
    losses: int

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dictionary.

        Returns
        -------
        dict
            Value of each field, by name.
        """
        return dict(vars(self))


@dataclass(frozen=True, eq=False)
class Comparison(Tabular):
    """The result of `fp.compare`: systems side by side, with tests of their differences.

    As a data frame (`to_pandas`, `to_polars`) it has one row per difference, with the fields of
    `Difference`.

    Attributes
    ----------
    evaluations : tuple of Evaluation
        One per system, all on the same queries.
    baseline : str or None
        The system that all others are compared with; None compares every pair.
    test : {"randomization", "t", "wilcoxon"}
        Paired test of significance.
    correction : {"holm", "bh", "none"}
        Correction for multiple comparisons.
    rounds : int
        Number of random permutations per test.
    seed : int
        Seed of the tests and intervals.
    systems : tuple of str
        Names of the systems.
    texts : tuple of str
        Texts of the measures.
    queries : Ids
        Ids of the queries.
    weights : array of float or None
        Weights of the queries in the means.
    differences : tuple of Difference
        Differences between systems, measure by measure.

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": [2, 1, 2, 1], "b": [1, 2, 2, 1]}
    >>> comparison = fp.compare(systems, [1, 0, 1, 0], qid=[1, 1, 2, 2], measures="RR")
    >>> comparison.best("RR")
    'a'
    >>> comparison.values("RR").tolist()
    [[1.0, 1.0], [0.5, 1.0]]
    """

    evaluations: tuple[Evaluation, ...]
    baseline: str | None
    test: Test
    correction: Correction
    rounds: int
    seed: int

    @property
    def systems(self) -> tuple[str, ...]:
        """Names of the systems."""
        return tuple(e.name for e in self.evaluations)

    @property
    def texts(self) -> tuple[str, ...]:
        """Texts of the measures."""
        return self.evaluations[0].texts

    @property
    def queries(self) -> Ids:
        """Ids of the queries."""
        return self.evaluations[0].queries

    @property
    def weights(self) -> Floats | None:
        """Weights of the queries; None where all count the same."""
        return self.evaluations[0].weights

    def values(self, text: str) -> Floats:
        """Return the values of a measure.

        Parameters
        ----------
        text : str
            Text of the measure, as it was requested.

        Returns
        -------
        array of float of shape (n_systems, n_queries)
            Value of each system for each query.
        """
        return np.array([e.per_query(text) for e in self.evaluations])

    def lower_is_better(self, text: str) -> bool:
        """Return whether smaller values of a measure are better.

        Parameters
        ----------
        text : str
            Text of the measure, as it was requested.

        Returns
        -------
        bool
            True for losses and distances.
        """
        return self.evaluations[0].measures[self.texts.index(text)].lower_is_better

    def best(self, text: str) -> str:
        """Return the system with the best mean.

        Parameters
        ----------
        text : str
            Text of the measure, as it was requested.

        Returns
        -------
        str
            Name of the system.
        """
        means = [e[text] for e in self.evaluations]
        index = np.argmin(means) if self.lower_is_better(text) else np.argmax(means)
        return self.systems[int(index)]

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Differences of all systems to the baseline, or of all pairs if there is none.

        They are ordered by measure.  p-values are corrected within each measure, over all its
        comparisons.
        """
        return tuple(d for text in self.texts for d in self._measure_differences(text))

    def _pairs(self) -> list[tuple[int, int]]:
        names = self.systems
        if self.baseline is not None:
            base = names.index(self.baseline)
            return [(i, base) for i in range(len(names)) if i != base]
        return [(j, i) for i in range(len(names)) for j in range(i + 1, len(names))]

    def _measure_differences(self, text: str) -> list[Difference]:
        values = self.values(text)
        pairs = self._pairs()
        per_query = [values[a] - values[b] for a, b in pairs]
        weights = self.weights
        p = np.array([p_value(d, self.test, self.rounds, self.seed, weights) for d in per_query])
        adjusted = adjust_p_values(p, self.correction)
        weighted = values if weights is None else values * weights / weights.mean()
        tukey = randomized_tukey(weighted, min(self.rounds, MAX_TUKEY_ROUNDS), self.seed)
        sign = -1 if self.lower_is_better(text) else 1
        differences = []
        for row, ((a, b), d) in enumerate(zip(pairs, per_query, strict=True)):
            wins = int((sign * d > TIE_TOLERANCE).sum())
            losses = int((sign * d < -TIE_TOLERANCE).sum())
            differences.append(
                Difference(
                    text, self.systems[a], self.systems[b], mean_of(d, weights),
                    *mean_intervals(d[None], self.seed, weights)[0], float(p[row]),
                    float(adjusted[row]), float(tukey[a, b]), effect_size(d, weights),
                    wins, len(d) - wins - losses, losses,
                )
            )  # fmt: skip
        return differences

    def most_different(self, text: str, a: str, b: str, count: int = 5) -> list[tuple[str, float]]:
        """Return the queries on which two systems differ most.

        Parameters
        ----------
        text : str
            Text of the measure, as it was requested.
        a, b : str
            Names of the two systems.
        count : int, default 5
            Greatest number of queries to return.

        Returns
        -------
        list of (str, float)
            Query and value of `a` minus value of `b`, in descending order of the absolute
            difference.  Queries with equal values are omitted.
        """
        names = self.systems
        values = self.values(text)
        differences = values[names.index(a)] - values[names.index(b)]
        order = np.argsort(-np.abs(differences), kind="stable")[:count]
        return [
            (self.queries[int(q)], float(differences[q]))
            for q in order
            if abs(differences[q]) > TIE_TOLERANCE
        ]

    def to_latex(
        self, caption: str | None = None, label: str | None = None, digits: int = 4,
        alpha: float = 0.05,
    ) -> str:  # fmt: skip
        """Return a table for a paper: means with superscripts of significance.

        Parameters
        ----------
        caption, label : str, optional
            Caption (by default the number of queries) and label of the table.
        digits : int, default 4
            Decimals of the means.
        alpha : float, default 0.05
            Level of the corrected p-values.

        Returns
        -------
        str
            A `table` environment that needs the package booktabs and no other.
        """
        return paper_table(self, caption, label, digits, alpha)

    def to_dict(self) -> dict[str, Any]:
        """Return means, differences and the most different queries as a dictionary.

        Returns
        -------
        dict
            The content of `firstpage compare --json`.
        """
        return {
            "systems": {e.name: e.means for e in self.evaluations},
            "queries": len(self.queries),
            "convention": self.evaluations[0].convention.name,
            "test": self.test,
            "correction": self.correction,
            "baseline": self.baseline,
            "differences": [d.to_dict() for d in self.differences],
            "most_different": [
                {
                    "measure": d.measure,
                    "system": d.system,
                    "against": d.against,
                    "queries": [
                        {"query": query, "difference": difference}
                        for query, difference in self.most_different(d.measure, d.system, d.against)
                    ],
                }
                for d in self.differences
            ],
        }

    def __str__(self) -> str:
        width = max(len(name) for name in self.systems)
        lines = [f"{len(self.queries)} queries"]
        for e in self.evaluations:
            means = "  ".join(f"{text} {e.mean_text(text)}" for text in self.texts)
            lines.append(f"{e.name:<{width}}  {means}")
        lines += [
            f"{d.measure}: {d.system} - {d.against} = {d.difference:+.4f}, p = {d.p_corrected:.4f}"
            for d in self.differences[:MAX_PRINTED]
        ]
        if len(self.differences) > MAX_PRINTED:
            lines.append(f".. and {len(self.differences) - MAX_PRINTED} more, in `differences`")
        return "\n".join(lines)

    __repr__ = __str__

    def _frame_columns(self) -> dict[str, Any]:
        """Return the fields of the differences, one row per difference."""
        return {
            field.name: [getattr(difference, field.name) for difference in self.differences]
            for field in fields(Difference)
        }

    def _summary_table(self) -> Table:
        """Return the mean of every measure by system, the best ones in bold."""
        rows = [
            [evaluation.name, *map(evaluation.mean_text, self.texts)]
            for evaluation in self.evaluations
        ]
        bold = {
            (self.systems.index(self.best(text)), column)
            for column, text in enumerate(self.texts, start=1)
        }
        title = f"{len(self.queries)} queries"
        return Table(
            ["system", *self.texts], rows, title, bold=frozenset(bold), bold_legend="best mean"
        )


def compare(
    systems: Mapping[str, Any] | Iterable[Any],
    truth: Any,
    *,
    qid: Any = None,
    docid: Any = None,
    measures: MeasureLike | Iterable[MeasureLike] = DEFAULT_MEASURES,
    convention: str | Convention = "default",
    baseline: str | None = None,
    test: Test = "randomization",
    correction: Correction = "holm",
    rounds: int = 100_000,
    k: int | None = None,
    ties: Ties | None = None,
    rel: float | None = None,
    queries: Queries | None = None,
    without_relevant: WithoutRelevant | None = None,
    depth: int | None = None,
    seed: int = 0,
    ci: bool = True,
    weights: Mapping[str, float] | str | None = None,
    query_table: Any = None,
    condensed: bool | None = None,
) -> Comparison:
    """Measure several systems on the same judgments and test their differences.

    Systems are compared on the queries that all of them have; a `FirstpageWarning` says so where
    some lack queries.

    Parameters
    ----------
    systems : dict, iterable or str
        What `evaluate` takes as a system (scores, runs, files of runs), by name.  Unnamed systems
        are named by their run tag, else by their file, else numbered.  A string is a pattern of
        files, such as "runs/*.run".
    truth : array-like of float, Dataset, Truth, Qrels, dict, data frame, path or Shards
        Labels, one per document, with `qid`; an object with the judgments;
        {query: {document: label}}; a data frame or a file of judgments.
    qid : array-like, optional
        Query id of each document; required where scores and labels are plain arrays.
    docid : array-like, optional
        Document id of each document; needed for ``ties="docid"``.
    measures : str, Measure, Utility or iterable of these
        Measures, such as "NDCG@10".  Default is NDCG@10, AP, P@10 and RR.
    convention : str or Convention, default "default"
        How rankings and judgments are interpreted: "default", "trec", "letor", "lightgbm" or
        "xgboost"; see docs/conventions.md.
    baseline : str, optional
        Name of the system that all others are compared with; None compares every pair.
    test : {"randomization", "t", "wilcoxon"}, default "randomization"
        Paired two-sided test: Fisher's randomization test, Student's t-test or Wilcoxon's
        signed-rank test.
    correction : {"holm", "bh", "none"}, default "holm"
        Correction for multiple comparisons within a measure: Holm (family-wise error rate),
        Benjamini-Hochberg (false discovery rate) or none.
    rounds : int, default 100_000
        Number of random permutations per randomization test.
    k : int, optional
        Depth of a top-k truth into which graded labels are converted first.
    ties : {"average", "file", "docid", "shuffle", "worst"}, optional
        Setting of the convention to replace: order of documents with equal scores.
    rel : float, optional
        Setting of the convention to replace: smallest relevant label.
    queries : {"judged", "run"}, optional
        Setting of the convention to replace: queries that enter the means.
    without_relevant : {"zero", "skip", "one"}, optional
        Setting of the convention to replace: value of queries without relevant documents.
    depth : int, optional
        Setting of the convention to replace: number of documents per query that are read.
    seed : int, default 0
        Seed of random tie orders, tests and intervals.
    ci : bool, default True
        Whether to compute 95 % bootstrap confidence intervals of the means.
    weights : dict of str to float or str, optional
        Weight of each query in the means and tests, such as its traffic, by query id; or a column
        of `query_table`.
    query_table : QueryTable, data frame or path, optional
        Table with a row per query, for `weights`; `compare_segments` takes one too.
    condensed : bool, optional
        Setting of the convention to replace: whether unjudged documents are removed from the runs.

    Returns
    -------
    Comparison
        Means, differences with p-values, and the queries that differ most.

    Raises
    ------
    DataError
        If there are fewer than two systems, the baseline is not one of them, or they share no
        judged query.
    MeasureError
        If a measure, a convention, the test, the correction or `rounds` is invalid.

    References
    ----------
    Smucker, Allan and Carterette, A Comparison of Statistical Significance Tests for Information
    Retrieval Evaluation, CIKM 2007.
    Carterette, Multiple Testing in Statistical Analysis of Systems-Based Information Retrieval
    Experiments, TOIS 2012 (randomized Tukey HSD).

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": [2, 1, 2, 1], "b": [1, 2, 2, 1]}
    >>> fp.compare(systems, [1, 0, 1, 0], qid=[1, 1, 2, 2], measures="RR")
    2 queries
    a  RR 1.0000
    b  RR 0.7500
    RR: b - a = -0.2500, p = 1.0000
    """
    named = named_systems(systems)
    truth = read_truth(truth)
    if len(named) < 2:
        raise DataError("there must be at least two systems to compare.")
    if baseline is not None and baseline not in named:
        raise DataError(f"there is no system {baseline!r}; there are {', '.join(named)}.")
    if test not in get_args(Test):
        raise MeasureError(f"test must be {', '.join(get_args(Test))}; got {test!r}.")
    if weights is not None:
        p_value(np.zeros(2), test, 1, 0, np.ones(2))  # rejects a test without weights
    adjust_p_values(np.ones(2), correction)  # rejects an unknown correction before the work starts
    requested = as_list(measures)
    resolved = resolve_convention(
        convention, ties=ties, rel=rel, queries=queries, without_relevant=without_relevant,
        depth=depth, seed=seed, condensed=condensed,
    )  # fmt: skip
    by_query = weights_by_query(weights, query_table)
    evaluations = tuple(
        evaluate(
            system, truth, qid=qid, docid=docid, measures=requested, convention=resolved, k=k,
            ci=ci, name=name, weights=by_query,
        )
        for name, system in named.items()
    )  # fmt: skip
    if rounds < 1:
        raise MeasureError(f"rounds must be at least 1; got {rounds}.")
    return Comparison(
        _on_common_queries(evaluations), baseline, test, correction, rounds, resolved.seed
    )


def _on_common_queries(evaluations: tuple[Evaluation, ...]) -> tuple[Evaluation, ...]:
    """Return the evaluations on the queries that all have; they differ for queries="run"."""
    common = set(evaluations[0].queries)
    for evaluation in evaluations[1:]:
        common &= set(evaluation.queries)
    if not common:
        raise DataError("the systems share no judged query.")
    if any(len(e.queries) > len(common) for e in evaluations):
        warnings.warn(
            f"not all systems have all queries; they are compared on the {len(common)} that they "
            "share (queries='judged' counts missing ones as 0).",
            FirstpageWarning,
            stacklevel=3,
        )
    aligned = []
    for e in evaluations:
        shared = np.array([query in common for query in e.queries])
        if shared.all():
            aligned.append(e)
            continue
        aligned.append(e.on_queries(np.flatnonzero(shared)))
    order = list(aligned[0].queries)
    assert all(list(e.queries) == order for e in aligned[1:]), "queries are in qrels order"
    return tuple(aligned)
