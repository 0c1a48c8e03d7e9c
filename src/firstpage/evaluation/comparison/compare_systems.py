"""compare(): several systems on the same queries, and tests of their differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np

from firstpage.core import DataError, MeasureError, warn
from firstpage.evaluation.comparison.comparison import Comparison
from firstpage.evaluation.comparison.segments import compare_segments
from firstpage.evaluation.measures.base import Convention, warn_of_differences
from firstpage.evaluation.measures.evaluate_systems import DEFAULT_MEASURES, EvaluationRequest
from firstpage.evaluation.measures.evaluation import Evaluation
from firstpage.evaluation.measures.query_segments import named_segments, weights_by_query
from firstpage.evaluation.measures.registry import MeasureLike, measures_by_text
from firstpage.evaluation.measures.significance import Correction, Test, adjust_p_values, p_value
from firstpage.evaluation.measures.sources import named_systems, read_truth


def compare(
    systems: Mapping[str, Any] | Iterable[Any],
    truth: Any = None,
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
    ci: bool = True,
    weights: Mapping[str, float] | str | None = None,
    by: Mapping[Any, Any] | str | None = None,
    query_table: Any = None,
    bounds: bool = False,
) -> Comparison:
    """Measure several systems on the same judgments and test their differences.

    Systems are compared on the queries that all of them have; a `FirstpageWarning` says so where
    some lack queries.

    Parameters
    ----------
    systems : dict, iterable or str
        What `evaluate` takes as a system (scores, runs, files of runs), by name.  Unnamed systems
        are named by their run tag, else by their file, else numbered.  A string is a pattern of
        files, such as ``"runs/*.run"``.
    truth : array-like of float, Dataset, Truth, Qrels, dict, data frame, path or Shards
        Labels, one per document, with `qid`; an object with the judgments;
        {query: {document: label}}; a data frame or a file of judgments.  None where the systems are
        results of `evaluate` or `evaluate_clicks`, all of the same measures.
    qid : array-like, optional
        Query id of each document; required where scores and labels are plain arrays.
    docid : array-like, optional
        Document id of each document; needed for ties by document id, as in trec_eval.
    measures : str, Measure, Utility or iterable of these
        Measures, such as "NDCG@10".  Default is NDCG@10, AP, P@10 and RR.
    convention : str or Convention, default "default"
        How rankings and judgments are interpreted: "default", "trec", "letor", "lightgbm" or
        "xgboost", or one with other settings, such as ``fp.Convention("trec", ties="file")``; see
        docs/conventions.md.  Its seed is also that of tests and intervals.
    baseline : str, optional
        Name of the system that all others are compared with; None compares every pair.
    test : {"randomization", "t", "wilcoxon"}, default "randomization"
        Paired two-sided test: Fisher's randomization test, Student's t-test or Wilcoxon's
        signed-rank test.  Student's does not apply to differences that are all the same; p is then
        that of the randomization test.
    correction : {"holm", "bh", "none"}, default "holm"
        Correction for multiple comparisons within a measure: Holm (family-wise error rate),
        Benjamini-Hochberg (false discovery rate) or none.
    rounds : int, default 100_000
        Number of random permutations per randomization test.
    k : int, optional
        Depth of a top-k truth into which graded labels are converted first.
    ci : bool, default True
        Whether to compute 95 % bootstrap confidence intervals of the means.
    weights : dict of str to float or str, optional
        Weight of each query in the means and tests, such as its traffic, by query id; or a column
        of `query_table`.
    by : dict of str to str or str, optional
        Segment of each query, by query id; or a column of `query_table`: `language`,
        `traffic(10, 100)` with cut points, or `traffic(head)` for head, torso and tail.  The
        systems are compared within each segment too.
    query_table : QueryTable, data frame or path, optional
        Table with a row per query, for `weights` and `by`.
    bounds : bool, default False
        Whether to compute the means also without unjudged documents, and with those of the first
        ranks as relevant ones, as in `evaluate`.

    Returns
    -------
    Comparison
        Means, differences with p-values, and the queries that differ most; on request, the same
        within segments of the queries.

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
    if len(named) < 2:
        raise DataError("there must be at least two systems to compare.")
    if baseline is not None and baseline not in named:
        raise DataError(f"there is no system {baseline!r}; there are {', '.join(named)}.")
    if test not in get_args(Test):
        raise MeasureError(f"test must be {', '.join(get_args(Test))}; got {test!r}.")
    if weights is not None:
        p_value(np.zeros(2), test, 1, 0, np.ones(2))  # rejects a test without weights
    adjust_p_values(np.ones(2), correction)  # rejects an unknown correction before the work starts
    by_query = None if weights is None else weights_by_query(weights, query_table)
    request = EvaluationRequest(
        measures_by_text(measures), Convention(convention), k, ci, bounds, by_query
    )
    segments = None if by is None else named_segments(by, query_table)
    if truth is None and all(isinstance(system, Evaluation) for system in named.values()):
        evaluations = _measured(named)
    else:
        truth = read_truth(truth, request.measures.values())
        evaluations = tuple(
            request.evaluate(system, truth, qid, docid, name) for name, system in named.items()
        )
    if rounds < 1:
        raise MeasureError(f"rounds must be at least 1; got {rounds}.")
    warn_of_differences(evaluations[0].measures)
    comparison = Comparison(
        _on_common_queries(evaluations), baseline, test, correction, rounds, request.convention.seed
    )
    if segments is None:
        return comparison
    name, by_id = segments
    return replace(comparison, segments=compare_segments(comparison, by_id, name))


def _measured(evaluations: Mapping[str, Evaluation]) -> tuple[Evaluation, ...]:
    """Return results of `evaluate` by name; refuse those that cannot be paired."""
    results = tuple(replace(e, name=name) for name, e in evaluations.items())
    weights: dict[str, float] = {}
    for e in results:
        if e.measures != results[0].measures or e.convention != results[0].convention:
            raise DataError(f"{e.name} has other measures than {results[0].name}, or a convention.")
        own = np.ones(len(e.queries)) if e.weights is None else e.weights
        for query, weight in zip(map(str, e.queries), own.tolist(), strict=True):
            if weights.setdefault(query, weight) != weight:
                raise DataError(f"{e.name} has another weight of query {query}: another log?")
    return results


def _on_common_queries(evaluations: tuple[Evaluation, ...]) -> tuple[Evaluation, ...]:
    """Return the evaluations on the queries that all have; they differ for queries="run"."""
    common = set(evaluations[0].queries)
    for evaluation in evaluations[1:]:
        common &= set(evaluation.queries)
    if not common:
        raise DataError("the systems share no judged query.")
    if any(len(e.queries) > len(common) for e in evaluations):
        warn(
            f"not all systems have all queries; they are compared on the {len(common)} that they "
            "share (queries='judged' counts missing ones as 0)."
        )
        if any(e.bounds for e in evaluations):
            warn(
                "there are no bounds for unjudged documents, since these are of all queries of a "
                "system; take queries='judged'."
            )
            evaluations = tuple(replace(e, bounds={}) for e in evaluations)
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
