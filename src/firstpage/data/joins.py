"""Joins of two collections over the same documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from firstpage.core import Bools, DataError, Floats, Ints
from firstpage.core.kernels import join_ids
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.rows import Data, LabeledRows, take_rows
from firstpage.data.runs import Documents, Qrels, duplicate_error

UNJUDGED = ("zero", "drop")


def match_queries(queries: Ids, others: Ids) -> Ints:
    """Return the index of each query among the others, or -1 where it is not among them."""
    numbers = {name: q for q, name in enumerate(others)}
    return np.array([numbers.get(name, -1) for name in queries], np.int64)


def join_documents(
    run: Documents, other: Documents, partner: Ints, other_name: str = "the judgments"
) -> Ints:
    """Return the row in `other` of every document of the run, -1 where there is none.

    `partner` is the index in `other` of each query of the run, or -1.  `other_name` is what errors
    call the other column if it has no source.  A document that occurs twice in a query is an
    error, in both.
    """
    sizes = np.diff(run.offsets)
    all_other_sizes = np.diff(other.offsets)
    other_sizes = np.zeros(len(partner), np.int64)
    other_sizes[partner >= 0] = all_other_sizes[partner[partner >= 0]]
    capacity = 1 << max(4, (2 * int((sizes + other_sizes).max(initial=1)) - 1).bit_length())
    table = np.full(capacity, -1, np.int64)
    rows = np.empty(len(run.docids), np.int64)
    left, right = run.docids, other.docids
    code = join_ids(
        data=left.data,
        starts=left.starts,
        ends=left.ends,
        hashes=left.hashes,
        offsets=run.offsets,
        to_data=right.data,
        to_starts=right.starts,
        to_ends=right.ends,
        to_hashes=right.hashes,
        to_offsets=other.offsets,
        partner=partner,
        table=table,
        matches=rows,
    )
    if code >= 0:
        raise duplicate_error(run, code, "the run")
    if code <= -2:
        raise duplicate_error(other, -2 - code, other_name)
    return rows


@dataclass(frozen=True)
class LabelJoin:
    """What a join of documents with judgments matched; `str` says it in one line.

    Attributes
    ----------
    source, judgments : str
        The names of the data and of the judgments.
    documents, matched : int
        The number of documents, and of those with a judgment.
    unjudged : {"zero", "drop"}
        What happened to the others.
    queries, unjudged_queries : int
        The number of queries, and of those without any judged document.
    without_features : int
        Judged pairs of query and document that the data lack.
    without_features_queries : int
        The number of their queries.
    example : tuple of (str, str)
        The first of these pairs: query and document.
    """

    source: str
    judgments: str
    documents: int
    matched: int
    unjudged: str
    queries: int
    unjudged_queries: int
    without_features: int
    without_features_queries: int
    example: tuple[str, str]

    @property
    def complete(self) -> bool:
        """Whether every document is judged and every judged pair has features."""
        return self.matched == self.documents and not self.without_features

    def __str__(self) -> str:
        rest = self.documents - self.matched
        text = f"{self.source}: {self.matched:,} of {self.documents:,} documents are judged in "
        text += self.judgments
        if rest:
            verb = "get label 0" if self.unjudged == "zero" else "are dropped"
            text += f"; {rest:,} unjudged documents {verb}"
        if self.unjudged_queries:
            text += f" ({self.unjudged_queries:,} of {self.queries:,} queries have no judgment"
            text += ", and are dropped)" if self.unjudged == "drop" else ")"
        if self.without_features:
            query, document = self.example
            text += (
                f"; {self.without_features:,} judged pairs of {self.without_features_queries:,} "
                f"queries have no features, such as document {document!r} of query {query!r}"
            )
        return f"{text}."


def join_labels(
    datasets: Sequence[Data], qrels: Qrels, unjudged: str = "zero"
) -> tuple[list[Data], LabelJoin]:
    """Return datasets with the labels of judgments, and a report on all of them together.

    Judged pairs count as without features if no dataset has them, so training and validation data
    may share a file of judgments.  Parameters are those of `Dataset.with_qrels`.
    """
    if unjudged not in UNJUDGED:
        raise DataError(f"unjudged must be 'zero' or 'drop'; got {unjudged!r}.")
    infinite = np.flatnonzero(~np.isfinite(qrels.values))
    if len(infinite):
        query, document = _pair(qrels, int(infinite[0]))
        raise DataError(
            f"{_name(qrels)}: the label of document {document!r} in query {query!r} is infinite."
        )
    used = np.zeros(len(qrels.values), bool)
    joined, matched, unjudged_queries = [], 0, 0
    for data in datasets:
        partner, rows = _judged_rows(data, qrels)
        judged = rows >= 0
        used[rows[judged]] = True
        matched += int(judged.sum())
        labels = np.where(judged, qrels.values[rows], 0.0)
        counts = np.diff(np.concatenate([[0], np.cumsum(judged)])[data.offsets])
        unjudged_queries += int((counts == 0).sum())
        labeled = replace(data, y=labels, query_weights=_weights(qrels, partner))
        joined.append(labeled if unjudged == "zero" else _only(labeled, judged, counts))
    missing = np.flatnonzero(~used)
    missing_queries = np.searchsorted(qrels.offsets, missing, side="right")
    report = LabelJoin(
        " and ".join(dict.fromkeys(data.source for data in datasets)),
        _name(qrels),
        sum(data.n_docs for data in datasets),
        matched,
        unjudged,
        sum(len(data) for data in datasets),
        unjudged_queries,
        len(missing),
        len(np.unique(missing_queries)),
        _pair(qrels, int(missing[0])) if len(missing) else ("", ""),
    )
    return joined, report


def _judged_rows(data: LabeledRows, qrels: Qrels) -> tuple[Ints, Ints]:
    """Return the query in the judgments of each query, and the row of each document, or -1."""
    if data.docids is None:
        raise DataError(
            f"{data.source}: has no document ids, by which judgments are joined; add them (LETOR: "
            "# docid = .., tables: a column docid)."
        )
    unnamed = int((data.docids.ends == data.docids.starts).sum())
    if unnamed:
        raise DataError(
            f"{data.source}: {unnamed:,} of {data.n_docs:,} documents have no id, by which "
            "judgments are joined."
        )
    documents = cast("Documents", data)
    partner = match_queries(data.queries, qrels.queries)
    rows = join_documents(documents, qrels, partner)
    if not (rows >= 0).any():
        raise DataError(_no_match(documents, qrels, partner))
    return partner, rows


def _no_match(documents: Documents, qrels: Qrels, partner: Ints) -> str:
    """Return the message about data and judgments without a common document."""
    if not len(documents.docids) or not len(qrels.docids):
        return f"{documents.source} or {_name(qrels)} has no documents."
    shared = np.flatnonzero((partner >= 0) & (np.diff(documents.offsets) > 0))
    query = int(shared[0]) if len(shared) else 0
    row = int(documents.offsets[query])
    judged = int(qrels.offsets[partner[query]]) if len(shared) else 0
    name, document = _pair(documents, row)
    other_name, other_document = _pair(qrels, min(judged, len(qrels.docids) - 1))
    return (
        f"{documents.source} and {_name(qrels)} share no document: the data have document "
        f"{document!r} of query {name!r}, the judgments document {other_document!r} of query "
        f"{other_name!r}."
    )


def _only(data: Data, judged: Bools, counts: Ints) -> Data:
    """Return the judged documents, and the queries that have any."""
    filled = np.flatnonzero(counts)
    return take_rows(data, np.flatnonzero(judged), filled, offsets_from_lengths(counts[filled]))


def _weights(qrels: Qrels, partner: Ints) -> Floats | None:
    """Return the weights of the queries of the data; those without judgments have weight 1."""
    if qrels.query_weights is None:
        return None
    weights: Floats = np.where(partner >= 0, qrels.query_weights[partner], 1.0)
    return weights


def _pair(column: Documents, row: int) -> tuple[str, str]:
    """Return query and document of a row."""
    query = int(np.searchsorted(column.offsets, row, side="right")) - 1
    return column.queries[query], column.docids[row]


def _name(qrels: Qrels) -> str:
    return qrels.source or qrels.name or "the judgments"
