"""Conversion of user input (arrays, runs, qrels, datasets, dictionaries) to ranked lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats, Ints, MeasureError, warn
from firstpage.core.kernels.measures import hits_in_ties
from firstpage.data import (
    Column,
    Dataset,
    Ids,
    Qrels,
    Run,
    Truth,
    group_rows,
    join_documents,
    match_queries,
    offsets_from_lengths,
)
from firstpage.data.formats import DiversityQrels
from firstpage.evaluation.measures.base import (
    EVERYTHING,
    Convention,
    Measure,
    Needs,
    RankedLists,
    rank_lists,
)
from firstpage.evaluation.measures.lists import Retrieved

MAX_LISTED = 5  # queries that a warning names
ALL_JUDGED = "condensed lists and bounds are about the unjudged documents of a run with qrels."
DEFAULT_DEPTH = 10  # documents per query that are checked, where no measure has a cut-off


@dataclass(frozen=True, eq=False)
class Coverage:
    """Queries that only the run or only the judgments have.

    Attributes
    ----------
    missing : Ids or list of str
        Judged queries that are not in the run.
    judged : int
        Number of judged queries.
    unjudged : Ids or list of str
        Queries of the run that are not judged.
    retrieved : int
        Number of queries in the run.
    removed : int
        Number of unjudged documents that condensed lists lack.
    """

    missing: Ids | list[str]
    judged: int
    unjudged: Ids | list[str]
    retrieved: int
    removed: int = 0


WITHOUT_RELEVANT = {
    "zero": "",
    "one": ", or 1 where no document is relevant",
    "skip": ", or are left out where no document is relevant",
}


def _warn_of_gaps(
    lists: RankedLists, coverage: Coverage, convention: Convention, name: str, depth: int
) -> None:
    """Warn, in one line, of queries and documents that the run or the judgments lack."""
    gaps = []
    if coverage.missing:
        effect = "are left out of the means"
        if convention.queries == "judged":
            effect = "count 0" + WITHOUT_RELEVANT[convention.without_relevant]
        gaps.append(
            f"{len(coverage.missing)} of {coverage.judged} judged queries are not in the run and "
            f"{effect}: {first_ids(coverage.missing)}"
        )
    if coverage.unjudged:
        gaps.append(
            f"{len(coverage.unjudged)} of its {coverage.retrieved} queries are not judged and are "
            f"left out: {first_ids(coverage.unjudged)}"
        )
    if coverage.removed:
        gaps.append(f"{coverage.removed:,} unjudged documents are removed (condensed lists)")
    if fraction := unjudged_fraction(lists, depth):
        shown = f"{fraction:.1%}" if fraction >= 0.001 else "less than 0.1%"
        gaps.append(f"{shown} of the documents in the top {depth} are unjudged")
    if gaps:
        warn(f"{name}: {'; '.join(gaps)}.")


def unjudged_fraction(lists: RankedLists, depth: int) -> float:
    """Return the fraction of unjudged documents in the first `depth` ranks of all queries."""
    cutoffs = np.minimum(lists.lengths, depth)
    total = int(cutoffs.sum())
    if lists.pool_rows is None or not total:
        return 0.0
    judged = np.empty(len(lists))
    hits_in_ties(*lists.relevant_ties(-np.inf, depth), cutoffs, judged)
    return max(0.0, 1.0 - float(judged.sum()) / total)


def first_ids(queries: Ids | list[str]) -> str:
    """Return the first few ids as text."""
    return ", ".join(queries[i] for i in range(min(MAX_LISTED, len(queries)))) + (
        ", .." * (len(queries) > MAX_LISTED)
    )


Nested = Mapping[str, Mapping[str, float]]


def make_lists(
    system: Any,
    truth: Any,
    convention: Convention,
    qid: Any = None,
    docid: Any = None,
    k: int | None = None,
    name: str = "",
    depth: int = DEFAULT_DEPTH,
    needs: Needs = EVERYTHING,
) -> RankedLists:
    """Rank the documents of a system and join them with the truth.

    Either scores with labels (arrays, a Dataset or a Truth), or a run with qrels (objects or
    dictionaries).  `k` first converts the labels to a top-k truth, with the convention's seed.  A
    warning, under the run's `name`, reports queries and documents that the run or the judgments
    lack; documents are checked down to `depth`.  No more is sorted than the measures' `needs`.
    """
    if isinstance(truth, DiversityQrels):
        from firstpage.evaluation.measures.diversity import with_subtopics  # seldom needed

        if k is not None:
            raise DataError("judgments of subtopics cannot be converted to a top-k truth; omit k.")
        plain = Convention(convention, without_relevant="zero")
        numbers = truth.document_numbers()
        lists = make_lists(system, numbers, plain, qid, docid, None, name, depth, needs)
        return with_subtopics(lists, truth, convention)
    run_needs = needs | Needs(depth=depth)
    if isinstance(truth, Mapping) and isinstance(system, Mapping) and _are_plain(system, truth):
        lists, coverage = from_dicts(system, truth, convention, k, run_needs)
        _warn_of_gaps(lists, coverage, convention, name or "the run", depth)
        return lists
    if isinstance(truth, Mapping):
        truth = Qrels.from_dict(truth)
    if isinstance(truth, Column):
        run = Run.from_dict(system) if isinstance(system, Mapping) else system
        if not isinstance(run, Column):
            raise DataError(
                "judgments (qrels) go with a run: a Run, or {query: {document: score}}; got "
                f"{type(system).__name__}. Plain scores go with labels and qid."
            )
        label = name or run.source or run.name or "the run"
        lists, coverage = from_run(run, truth, convention, k, run_needs)
        _warn_of_gaps(lists, coverage, convention, label, depth)
        return lists
    if isinstance(system, (Mapping, Column)):
        raise DataError("a run requires judgments (qrels), not an array of labels.")
    if convention.condensed:
        raise DataError(ALL_JUDGED)
    order, ids = None, None
    if isinstance(truth, Dataset):
        truth, ids = truth.truth, truth.docids
    if isinstance(truth, Truth):
        labels, offsets, queries = truth.labels, truth.offsets, truth.queries
    else:
        labels = number_column(truth, "labels")
        if qid is None:
            raise DataError("scores and labels need qid: the query id of every document.")
        queries, offsets, order = group_rows(qid, len(labels))
        ids = None if docid is None else Ids.from_values(docid)
    scores = number_column(system, "scores")
    if len(scores) != len(labels):
        raise DataError(f"there are {len(scores)} scores for {len(labels)} documents.")
    if ids is not None and len(ids) != len(labels):
        raise DataError(f"there are {len(ids)} document ids for {len(labels)} documents.")
    if order is not None:
        scores, labels = scores[order], labels[order]
        ids = None if ids is None else ids[order]
    judged = (
        truth if isinstance(truth, Truth) else Truth(labels, offsets, queries)
    )  # rejects missing and infinite labels
    if k is not None:
        judged = judged.top_k(k, convention.seed)
    return rank_lists(scores, judged, convention, ids, needs=needs)


def number_column(values: Any, name: str) -> Floats:
    """Return values as a vector of float64; `name` is used in errors."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{name} must be numbers ({error}).") from error
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != 1:
        raise DataError(f"{name} must be one number per document; the shape is {array.shape}.")
    return np.ascontiguousarray(array)


def from_run(
    run: Column,
    qrels: Column,
    convention: Convention,
    k: int | None = None,
    needs: Needs = EVERYTHING,
) -> tuple[RankedLists, Coverage]:
    """Join a run with judgments by query and document; return the lists and their coverage."""
    partner = match_queries(run.queries, qrels.queries)
    if not (partner >= 0).any():
        raise DataError(
            f"{run.source or 'the run'} and {qrels.source or 'the judgments'} share no query: "
            f"the run has {first_ids(run.queries) or 'none'}, the judgments have "
            f"{first_ids(qrels.queries) or 'none'}."
        )
    judged_rows = join_documents(run, qrels, partner)
    in_run = np.full(len(qrels.queries), -1, np.int64)  # index of each judged query in the run
    in_run[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    missing = np.flatnonzero(in_run < 0)
    measured = (
        np.arange(len(in_run)) if convention.queries == "judged" else np.flatnonzero(in_run >= 0)
    )
    offsets, rows = _select_queries(run.offsets, in_run[measured])
    pool_offsets, pool_rows = _select_queries(qrels.offsets, measured)
    new_row = np.full(len(qrels.values) + 1, -1, np.int64)
    new_row[pool_rows] = np.arange(len(pool_rows))
    lists = _joined(
        (run.values[rows], offsets, run.docids[rows]),
        (qrels.values[pool_rows], pool_offsets, qrels.queries[measured]),
        new_row[judged_rows[rows]],
        convention,
        k,
        needs,
    )
    removed = int((judged_rows[rows] < 0).sum()) if convention.condensed else 0
    unjudged = run.queries[np.flatnonzero(partner < 0)]
    return lists, Coverage(qrels.queries[missing], len(in_run), unjudged, len(partner), removed)


def from_dicts(
    run: Nested,
    qrels: Nested,
    convention: Convention,
    k: int | None = None,
    needs: Needs = EVERYTHING,
) -> tuple[RankedLists, Coverage]:
    """Join {query: {document: number}} dictionaries; return the lists and their coverage."""
    queries = [q for q in qrels if convention.queries == "judged" or q in run]
    scores: list[float] = []
    pool: list[float] = []
    pool_rows: list[int] = []
    for query in queries:
        judged, retrieved = qrels[query], run.get(query, {})
        row = dict(zip(judged, range(len(pool), len(pool) + len(judged)), strict=True))
        pool_rows += map(row.get, retrieved, repeat(-1))
        scores += retrieved.values()
        pool += judged.values()
    documents = [run.get(query, {}) for query in queries]
    names = [doc for docs in documents for doc in docs] if convention.ties == "docid" else None
    offsets, pool_offsets = (
        offsets_from_lengths(map(len, docs)) for docs in (documents, [qrels[q] for q in queries])
    )
    lists = _joined(
        (number_column(scores, "scores"), offsets, names),
        (number_column(pool, "grades"), pool_offsets, Ids.from_values(queries)),
        np.array(pool_rows, np.int64),
        convention,
        k,
        needs,
    )
    missing = [query for query in qrels if query not in run]
    unjudged = [query for query in run if query not in qrels]
    removed = pool_rows.count(-1) if convention.condensed else 0
    return lists, Coverage(missing, len(qrels), unjudged, len(run), removed)


def _are_plain(run: Any, qrels: Any) -> bool:
    """Return whether two dictionaries share a query and have strings for all keys."""
    return any(q in run for q in qrels) and all(
        isinstance(docs, Mapping) and {type(query), *map(type, docs)} <= {str}
        for table in (run, qrels)
        for query, docs in table.items()
    )


def _joined(
    run: tuple[Floats, Ints, Any],
    pool: tuple[Floats, Ints, Ids],
    pool_rows: Ints,
    convention: Convention,
    k: int | None,
    needs: Needs,
) -> RankedLists:
    """Rank a run that was joined with judgments.

    `run` holds scores, offsets and document ids; `pool` judged labels, offsets and queries;
    `pool_rows` the row of each ranked document in the pool, -1 where it is unjudged.
    """
    scores, offsets, docids = run
    labels, pool_offsets, queries = pool
    judged = Truth(labels, pool_offsets, queries)
    if k is not None:
        judged = judged.top_k(k, convention.seed)
    if convention.negative_unjudged and (judged.labels < 0).any():
        counted = judged.labels >= 0
        new_row = np.where(counted, np.cumsum(counted) - 1, -2)  # -2: pooled, not judged
        pool_rows = np.append(new_row, -1)[pool_rows]
        pool_offsets = offsets_from_lengths(counted)[pool_offsets].astype(np.int64)
        judged = Truth(judged.labels[counted], pool_offsets, queries)
    ids = None if docids is None else Ids.from_values(docids)
    retrieved = Retrieved(offsets, pool_rows)
    if convention.condensed:
        return rank_lists(scores, judged, convention, ids, retrieved).condensed
    return rank_lists(scores, judged, convention, ids, retrieved, needs)


def _select_queries(offsets: Ints, queries: Ints) -> tuple[Ints, Ints]:
    """Return new offsets and old row numbers of selected queries; -1 is a query without rows."""
    existing = np.maximum(queries, 0)
    lengths = np.where(queries >= 0, offsets[existing + 1] - offsets[existing], 0)
    starts = np.cumsum(lengths) - lengths
    rows = np.arange(lengths.sum()) + np.repeat(offsets[existing] - starts, lengths)
    return offsets_from_lengths(lengths), rows


def check_judgments(measures: Iterable[Measure], judgments: object) -> None:
    """Raise an error if a measure does not go with diversity judgments."""
    if not isinstance(judgments, DiversityQrels):
        return
    plain = [str(m) for m in measures if not m.of_subtopics]
    if plain:
        raise MeasureError(
            f"{plain[0]} needs plain judgments, and {judgments.source or 'these'} are judgments of "
            "subtopics. Measure alpha-nDCG@10, ERR-IA@10 or StRecall@10, or take the greatest "
            "grade of each document with qrels.flatten()."
        )
