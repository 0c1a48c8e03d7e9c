"""Unjudged documents of runs: lists without them, and judgments that call them relevant."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from firstpage.core import Bools, Ints
from firstpage.data import Column, Ids, Qrels, Run, join_documents, match_queries, sort_groups
from firstpage.evaluation.measures.sources import as_column


class Bounds(NamedTuple):
    """Means of a measure under other assumptions about unjudged documents.

    The mean itself assumes that they are not relevant.

    Attributes
    ----------
    condensed : float
        Mean where unjudged documents are removed from the rankings.
    relevant : float
        Mean where the unjudged documents of the first ranks have the highest grade.
    """

    condensed: float
    relevant: float


def condensed(run: Any, truth: Any) -> Run:
    """Return a run without its unjudged documents: a condensed list (Sakai 2007).

    Parameters
    ----------
    run : Run, dict or data frame
        The run.
    truth : Qrels, dict or data frame
        The judgments.

    Returns
    -------
    Run
        The judged documents; a query may be left without any.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.condensed({"q": {"x": 3, "a": 2}}, {"q": {"a": 1}}).to_dict()
    {'q': {'a': 2.0}}
    """
    column: Run = as_column(run, Run)
    return column.select_rows(judged_rows(column, as_column(truth, Qrels)) >= 0)


def judged_rows(run: Column, qrels: Column) -> Ints:
    """Return the row in the judgments of every document of the run, -1 where it is unjudged."""
    return join_documents(run, qrels, match_queries(run.queries, qrels.queries))


def in_first_ranks(run: Column, depth: int) -> Bools:
    """Return which rows are in the first ranks of their query; ties in the order of the input."""
    order = sort_groups(run.values, run.offsets)[0]
    position = np.arange(len(order)) - np.repeat(run.offsets[:-1], np.diff(run.offsets))
    first = np.zeros(len(order), bool)
    first[order[position < depth]] = True
    return first


def with_relevant(run: Run, qrels: Qrels, depth: int) -> Qrels:
    """Return the judgments, and the highest grade for the unjudged documents of the first ranks.

    Queries without judgments get none.
    """
    partner = match_queries(run.queries, qrels.queries)
    judged = join_documents(run, qrels, partner) >= 0
    of_row = np.repeat(partner, np.diff(run.offsets))  # query in the judgments of each row
    rows = np.flatnonzero(~judged & in_first_ranks(run, depth) & (of_row >= 0))
    if not len(rows):
        return qrels
    return with_best_grade(qrels, of_row[rows], run.docids[rows])


def with_best_grade(qrels: Qrels, queries: Ints, docids: Ids) -> Qrels:
    """Return the judgments, and the highest grade for more documents of these queries."""
    grade = max(float(qrels.values.max()), 1.0)
    query = np.concatenate([np.repeat(np.arange(len(qrels)), np.diff(qrels.offsets)), queries])
    all_docids = Ids.concatenate(qrels.docids, docids)
    values = np.concatenate([qrels.values, np.full(len(queries), grade)])
    order = np.argsort(query, kind="stable")
    offsets = np.searchsorted(query[order], np.arange(len(qrels) + 1)).astype(np.int64)
    return Qrels(qrels.queries, offsets, all_docids[order], values[order], qrels.name, qrels.source)
