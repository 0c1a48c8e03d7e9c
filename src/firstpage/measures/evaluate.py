"""evaluate(): measures of one system, per query and averaged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from firstpage.data.groups import check_query_weights
from firstpage.data.ids import Ids
from firstpage.data.shards.shards import Shards
from firstpage.errors import DataError, MeasureError
from firstpage.measures.convention import WithoutRelevant
from firstpage.measures.diversity import check_judgments
from firstpage.measures.inputs import DEFAULT_DEPTH, first_ids, make_lists
from firstpage.measures.measure import (
    Convention,
    Measure,
    Queries,
    Ties,
    measured_values,
    needs_of,
    resolve_convention,
)
from firstpage.measures.registry import MeasureLike, measures_by_text
from firstpage.measures.sharded import shard_values
from firstpage.measures.significance import mean_intervals, mean_of
from firstpage.measures.sources import resolve_inputs
from firstpage.table import Table
from firstpage.tabular import Tabular
from firstpage.types import Floats

DEFAULT_MEASURES = ("NDCG@10", "AP", "P@10", "RR")


@dataclass(frozen=True, eq=False)
class Evaluation(Tabular):
    """The result of `fp.evaluate`: means of measures and values per query.

    ``evaluation["NDCG@10"]`` is the mean of a measure over the queries.  Keys are the texts that
    the measures were requested by.  As a data frame (`to_pandas`, `to_polars`) it has one row per
    query: its id, and a column per measure.

    Attributes
    ----------
    texts : tuple of str
        Texts of the measures, in the order of the request.
    measures : tuple of Measure
        The measures.
    queries : Ids
        Ids of the queries that were measured.
    values : array of float of shape (n_measures, n_queries)
        Value of every measure for every query.
    convention : Convention
        The convention that applied.
    intervals : dict of str to (float, float)
        95 % bootstrap confidence intervals of the means, by text; empty without ``ci=True``.
    name : str
        Name of the system.
    weights : array of float of shape (n_queries,) or None
        Weight of each query in the means, such as its traffic.
    means : dict of str to float
        Mean of each measure over the queries, by text.

    Examples
    --------
    >>> import firstpage as fp
    >>> evaluation = fp.evaluate([2, 1, 2, 1], [1, 0, 0, 1], qid=[1, 1, 2, 2], measures="RR")
    >>> evaluation["RR"]
    0.75
    >>> evaluation.per_query("RR").tolist()
    [1.0, 0.5]
    """

    texts: tuple[str, ...]
    measures: tuple[Measure, ...]
    queries: Ids
    values: Floats  # one row per measure, one column per query
    convention: Convention
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    name: str = ""
    weights: Floats | None = field(default=None, repr=False)

    def __getitem__(self, text: str) -> float:
        """Return the mean of a measure over the queries, weighted where they have weights."""
        mean = mean_of(self.per_query(text), self.weights)
        return self.measures[self.texts.index(text)].from_mean(mean, len(self.queries))

    def per_query(self, text: str) -> Floats:
        """Return the values of a measure per query.

        Parameters
        ----------
        text : str
            Text of the measure, as it was requested.

        Returns
        -------
        array of float
            One value per query, in the order of `queries`.

        Raises
        ------
        KeyError
            If the measure was not requested.
        """
        if text not in self.texts:
            raise KeyError(f"{text!r} was not measured; available: {', '.join(self.texts)}")
        row: Floats = self.values[self.texts.index(text)]
        return row

    def mean_text(self, text: str, digits: int = 4) -> str:
        """Return the mean of a measure as text; counts have no decimals.

        Parameters
        ----------
        text : str
            Text of the measure, as it was requested.
        digits : int, default 4
            Number of decimals.

        Returns
        -------
        str
            The rounded mean.
        """
        return self.measures[self.texts.index(text)].mean_text(self[text], digits)

    def interval_text(self, text: str) -> str:
        """Return the confidence interval of a mean as text; "" where there is none.

        Parameters
        ----------
        text : str
            Text of the measure, as it was requested.

        Returns
        -------
        str
            The rounded bounds, as in "[0.4012, 0.4530]".
        """
        if text not in self.intervals:
            return ""
        measure = self.measures[self.texts.index(text)]
        return "[{}, {}]".format(*map(measure.mean_text, self.intervals[text]))

    @property
    def means(self) -> dict[str, float]:
        """Mean of each measure over the queries, by text."""
        return {text: self[text] for text in self.texts}

    def to_dict(self) -> dict[str, Any]:
        """Return means, number of queries, convention and intervals as a dictionary.

        Returns
        -------
        dict
            The content of `firstpage evaluate --json`.
        """
        summary: dict[str, Any] = {
            "measures": self.means,
            "queries": len(self.queries),
            "convention": self.convention.name,
        }
        if self.weights is not None:
            summary["effective_queries"] = effective_queries(self.weights)
        if self.intervals:
            summary["ci"] = {text: list(bounds) for text, bounds in self.intervals.items()}
        return summary

    def __str__(self) -> str:
        width = max(len(text) for text in self.texts)
        lines = [f"{len(self.queries)} queries, convention {self.convention.name}"]
        for text in self.texts:
            cells = f"{text:<{width}}  {self.mean_text(text)}  {self.interval_text(text)}"
            lines.append(cells.rstrip())
        return "\n".join(lines)

    __repr__ = __str__

    def _frame_columns(self) -> dict[str, Any]:
        """Return the query ids and the values of every measure, one row per query."""
        values = dict(zip(self.texts, self.values, strict=True))
        return {"query": [str(query) for query in self.queries], **values}

    def _summary_table(self) -> Table:
        """Return the means, with their intervals where these were computed."""
        rows = [[text, self.mean_text(text)] for text in self.texts]
        if self.intervals:
            for row in rows:
                row.append(self.interval_text(row[0]))
        head = ["measure", "mean", "95 % interval"][: 3 if self.intervals else 2]
        title = f"{len(self.queries)} queries, convention {self.convention.name}"
        return Table(head, rows, title)


def evaluate(
    system: Any,
    truth: Any,
    *,
    qid: Any = None,
    docid: Any = None,
    measures: MeasureLike | Iterable[MeasureLike] = DEFAULT_MEASURES,
    convention: str | Convention = "default",
    k: int | None = None,
    ties: Ties | None = None,
    rel: float | None = None,
    queries: Queries | None = None,
    without_relevant: WithoutRelevant | None = None,
    depth: int | None = None,
    seed: int | None = None,
    ci: bool = False,
    name: str = "",
    engine: Any = None,
    weights: Mapping[str, float] | None = None,
) -> Evaluation:
    """Measure how well a ranking agrees with relevance judgments.

    Higher values are better for all measures but TopK01, Perm01 and WKT.  A `FirstpageWarning` per
    run reports judged queries that the run lacks, queries of the run that are not judged, and the
    fraction of unjudged documents in the top k (the deepest cut-off, or 10).

    Parameters
    ----------
    system : array-like of float, Run, dict, data frame, path or fitted ranker
        Scores, one per document of `truth`; a `Run`, {query: {document: score}} or a data frame
        (pandas, polars) with columns such as `qid`, `docno` and `score`, where `truth` is qrels;
        the file of a run or of scores; a fitted ranker, which scores the documents of `truth`.
    truth : array-like, Dataset, Truth, Qrels, DiversityQrels, dict, data frame, path or Shards
        Labels, one per document, with `qid`; an object with the judgments;
        {query: {document: label}}; a data frame with columns such as `qid`, `docno` and `label`;
        the file of judgments or of labeled data.
    qid : array-like, optional
        Query id of each document; required where `system` and `truth` are plain arrays.
    docid : array-like, optional
        Document id of each document; needed for ``ties="docid"``.
    measures : str, Measure, Utility or iterable of these
        Measures, such as "NDCG@10", "kERR", "AP(rel=2)" or "NDCG(measure.json)@10".  Default is
        NDCG@10, AP, P@10 and RR.
    convention : str or Convention, default "default"
        How rankings and judgments are interpreted: "default", "trec", "letor", "lightgbm" or
        "xgboost"; see docs/conventions.md.
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
    seed : int, optional
        Setting of the convention to replace: seed of random tie orders and resampling.
    ci : bool, default False
        Whether to compute 95 % bootstrap confidence intervals of the means.
    name : str, optional
        Name of the system, used in warnings and comparisons.
    engine : str or dask.distributed.Client, optional
        Where `Shards` are processed: "threads", "dask://host:port" or a client.
    weights : dict of str to float, optional
        Weight of each query in the means, such as its traffic, by query id.

    Returns
    -------
    Evaluation
        Means, values per query, and confidence intervals on request.

    Raises
    ------
    MeasureError
        If a measure, a convention or a setting is unknown or invalid.
    DataError
        If system and truth do not fit each other, share no query, or contain NaN.

    Examples
    --------
    >>> import firstpage as fp
    >>> scores, labels, qid = [0.9, 0.1, 0.5], [2, 0, 1], ["q1", "q1", "q1"]
    >>> fp.evaluate(scores, labels, qid=qid, measures=["NDCG@10", "P@2"])
    1 queries, convention default
    NDCG@10  1.0000
    P@2      1.0000
    >>> run = {"q1": {"a": 2.0, "b": 1.0}}  # or the name of a file, or a data frame
    >>> fp.evaluate(run, {"q1": {"a": 0, "b": 1}}, measures="RR")["RR"]
    0.5
    """
    resolved = resolve_convention(
        convention, ties=ties, rel=rel, queries=queries, without_relevant=without_relevant,
        depth=depth, seed=seed,
    )  # fmt: skip
    requested = measures_by_text(measures if measures is not None else [])
    if not requested:
        raise MeasureError("name at least one measure, such as NDCG@10.")
    system, truth, qid, docid = resolve_inputs(system, truth, qid, docid)
    check_judgments(requested.values(), truth)
    if isinstance(truth, Shards):
        if qid is not None or docid is not None:
            raise DataError("Shards contain query and document ids; omit qid and docid.")
        from firstpage.engine.addresses import open_engine  # threads; not needed in memory

        with open_engine(engine) as opened:
            values, ids = shard_values(
                system, truth, tuple(requested.values()), resolved, k, opened
            )
        return _evaluation(requested, ids, values, resolved, ci, name, weights)
    if engine is not None:
        raise DataError("engine requires Shards (fp.read_shards); the truth is in memory.")
    depth = max((getattr(m, "cutoff", None) or 0 for m in requested.values()), default=0)
    needs = needs_of(requested.values(), resolved)
    lists = make_lists(system, truth, resolved, qid, docid, k, name, depth or DEFAULT_DEPTH, needs)
    if not len(lists):
        raise DataError("there is no query to measure.")
    values = np.array([measured_values(m, lists, resolved) for m in requested.values()])
    return _evaluation(requested, lists.queries, values, resolved, ci, name, weights)


def _evaluation(
    requested: dict[str, Measure],
    queries: Ids,
    values: Floats,
    convention: Convention,
    ci: bool,
    name: str,
    weights: Mapping[str, float] | None,
) -> Evaluation:
    weight = None if weights is None else query_weights(weights, queries)
    intervals = {}
    if ci:
        bounds = mean_intervals(values, convention.seed, weight)
        for (text, m), (low, high) in zip(requested.items(), bounds, strict=True):
            intervals[text] = (m.from_mean(low, len(queries)), m.from_mean(high, len(queries)))
    return Evaluation(
        tuple(requested), tuple(requested.values()), queries, values, convention, intervals, name,
        weight,
    )  # fmt: skip


def query_weights(weights: Mapping[str, float], queries: Ids) -> Floats:
    """Return one weight per query; a query without one is an error."""
    by_id = {str(query): value for query, value in weights.items()}
    missing = [query for query in queries if query not in by_id]
    if missing:
        raise DataError(
            f"{len(missing)} of {len(queries)} queries have no weight: {first_ids(missing)}."
        )
    values = np.array([by_id[query] for query in queries], np.float64)
    check_query_weights(values, len(queries), "weights")
    if not values.sum() > 0:
        raise DataError("the weights of all queries are 0.")
    return values


def effective_queries(weights: Floats) -> float:
    """Return the number of equally weighted queries with the same error (Kish)."""
    return float(weights.sum() ** 2 / (weights**2).sum())
