"""evaluate(): measures of one system, per query and averaged."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.core import Advice, DataError, FirstpageWarning, Floats, MeasureError
from firstpage.data import Column, Ids, Qrels, Run
from firstpage.data.shards import Shards
from firstpage.evaluation.measures.base import Convention, Measure, measured_values, needs_of
from firstpage.evaluation.measures.evaluation import Evaluation, query_weights
from firstpage.evaluation.measures.inputs import (
    ALL_JUDGED,
    DEFAULT_DEPTH,
    check_judgments,
    make_lists,
)
from firstpage.evaluation.measures.query_segments import named_segments, weights_by_query
from firstpage.evaluation.measures.registry import MeasureLike, measures_by_text
from firstpage.evaluation.measures.sharded import shard_values
from firstpage.evaluation.measures.sources import as_column, resolve_inputs
from firstpage.evaluation.measures.unjudged import Bounds, with_relevant

DEFAULT_MEASURES = ("NDCG@10", "AP", "P@10", "RR")


def evaluate(
    system: Any,
    truth: Any,
    *,
    qid: Any = None,
    docid: Any = None,
    measures: MeasureLike | Iterable[MeasureLike] = DEFAULT_MEASURES,
    convention: str | Convention = "default",
    k: int | None = None,
    ci: bool = False,
    name: str = "",
    engine: Any = None,
    weights: Mapping[str, float] | str | None = None,
    by: Mapping[Any, Any] | str | None = None,
    query_table: Any = None,
    bounds: bool = False,
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
        the file of a run or of scores; a fitted ranker, which scores the documents of `truth`; or
        records with `query_id`, `doc_id` and `score`, as in ir_measures.
    truth : array-like, Dataset, Truth, Qrels, DiversityQrels, dict, data frame, path or Shards
        Labels, one per document, with `qid`; an object with the judgments;
        {query: {document: label}}; a data frame with columns such as `qid`, `docno` and `label`;
        the file of judgments or of labeled data; or records with `query_id`, `doc_id` and
        `relevance`, as in ir_datasets.
    qid : array-like, optional
        Query id of each document; required where `system` and `truth` are plain arrays.
    docid : array-like, optional
        Document id of each document; needed for ties by document id, as in trec_eval.
    measures : str, Measure, Utility or iterable of these
        Measures, such as "NDCG@10", "kERR", "AP(rel=2)" or "NDCG(measure.json)@10".  Default is
        NDCG@10, AP, P@10 and RR.
    convention : str or Convention, default "default"
        How rankings and judgments are interpreted: "default", "trec", "letor", "lightgbm" or
        "xgboost", or one with other settings, such as ``fp.Convention("trec", ties="file")``; see
        docs/conventions.md.
    k : int, optional
        Depth of a top-k truth into which graded labels are converted first.
    ci : bool, default False
        Whether to compute 95 % bootstrap confidence intervals of the means.
    name : str, optional
        Name of the system, used in warnings and comparisons.
    engine : str or dask.distributed.Client, optional
        Where `Shards` are processed: "threads", "dask://host:port" or a client.
    weights : dict of str to float or str, optional
        Weight of each query in the means, such as its traffic, by query id; or a column of
        `query_table`.
    by : dict of str to str or str, optional
        Segment of each query, by query id; or a column of `query_table`: `language`,
        `traffic(10, 100)` with cut points, or `traffic(head)` for head, torso and tail.
    query_table : QueryTable, data frame or path, optional
        Table with a row per query, for `weights` and `by`.
    bounds : bool, default False
        Whether to compute the means also without unjudged documents, and with those of the first
        ranks as relevant ones.  They are bounds for measures that only gain from relevant
        documents, such as P, RR, DCG and ERR.

    Returns
    -------
    Evaluation
        Means, values per query, and confidence intervals, bounds and segments on request.

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
    segments = None if by is None else named_segments(by, query_table)
    by_query = None if weights is None else weights_by_query(weights, query_table)
    request = EvaluationRequest(
        measures_by_text(measures), Convention(convention), k, ci, bounds, by_query, engine
    )
    evaluation = request.evaluate(system, truth, qid, docid, name)
    return evaluation if segments is None else evaluation._with_segments(*segments)


@dataclass(frozen=True)
class EvaluationRequest:
    """What is to be measured, whatever the ranking: parsed once for all systems."""

    measures: dict[str, Measure]  # by their texts
    convention: Convention
    k: int | None = None
    ci: bool = False
    bounds: bool = False
    weights: Mapping[str, float] | None = None
    engine: Any = None

    def __post_init__(self) -> None:
        if not self.measures:
            raise MeasureError("name at least one measure, such as NDCG@10.")
        if self.bounds and self.convention.condensed:
            raise MeasureError(
                "bounds show condensed lists beside complete ones.",
                Advice("Leave out {}.", "condensed"),
            )

    @property
    def depth(self) -> int:
        """The deepest cut-off, or 10."""
        cutoffs = [getattr(m, "cutoff", None) or 0 for m in self.measures.values()]
        return max(cutoffs) or DEFAULT_DEPTH

    def evaluate(
        self, system: Any, truth: Any, qid: Any = None, docid: Any = None, name: str = ""
    ) -> Evaluation:
        """Return the measures of one system."""
        inputs = resolve_inputs(system, truth, qid, docid, self.measures.values())
        check_judgments(self.measures.values(), inputs[1])
        ids, values = self._values(*inputs, name)
        weights = None if self.weights is None else query_weights(self.weights, ids)
        texts, measures = tuple(self.measures), tuple(self.measures.values())
        evaluation = Evaluation(
            texts, measures, ids, values, self.convention, {}, name, weights, k=self.k
        )
        if self.ci:
            evaluation = evaluation._with_intervals()
        if self.bounds:
            evaluation = replace(evaluation, bounds=self._bounds(evaluation, *inputs))
        return evaluation

    def _values(
        self, system: Any, truth: Any, qid: Any, docid: Any, name: str
    ) -> tuple[Ids, Floats]:
        """Return the ids of the queries, and a row of values per measure."""
        measures, convention = tuple(self.measures.values()), self.convention
        if isinstance(truth, Shards):
            if qid is not None or docid is not None:
                raise DataError("Shards contain query and document ids; omit qid and docid.")
            from firstpage.core.engine import open_engine  # threads; not needed in memory

            with open_engine(self.engine) as opened:
                values, ids = shard_values(system, truth, measures, convention, self.k, opened)
            return ids, values
        if self.engine is not None:
            raise DataError("engine requires Shards (fp.read_shards); the truth is in memory.")
        needs = needs_of(measures, convention)
        lists = make_lists(system, truth, convention, qid, docid, self.k, name, self.depth, needs)
        if not len(lists):
            raise DataError("there is no query to measure.")
        return lists.queries, np.array([measured_values(m, lists, convention) for m in measures])

    def _bounds(
        self, evaluation: Evaluation, system: Any, truth: Any, qid: Any, docid: Any
    ) -> dict[str, Bounds]:
        """Return the means without unjudged documents, and with these as relevant ones."""
        if not isinstance(system, (Column, Mapping)) or not isinstance(truth, (Column, Mapping)):
            raise DataError(ALL_JUDGED)
        run, qrels = as_column(system, Run), as_column(truth, Qrels)
        condensed = Convention(self.convention, condensed=True)
        shorter = replace(self, convention=condensed, bounds=False)
        complete = with_relevant(run, qrels, self.depth)
        with warnings.catch_warnings():  # the evaluation itself has warned
            warnings.simplefilter("ignore", FirstpageWarning)
            rows = (
                shorter._values(run, qrels, None, None, evaluation.name),
                self._values(run, complete, None, None, evaluation.name),
            )
        means = []
        for queries, values in rows:  # judged as relevant, more queries may have relevant documents
            column = {query: number for number, query in enumerate(queries)}
            measured = [column[query] for query in evaluation.queries]
            part = replace(evaluation, values=values[:, measured])
            means.append([part[text] for text in self.measures])
        return {
            text: Bounds(*pair)
            for text, pair in zip(self.measures, zip(*means, strict=True), strict=True)
        }
