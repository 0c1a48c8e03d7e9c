"""From what users hold (arrays, runs, qrels, datasets, dictionaries) to ranked lists."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.formats.trec import Column, Qrels, Run
from firstpage.data.groups import group_rows, offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.joins import join_documents, match_queries
from firstpage.data.truth import Truth
from firstpage.errors import DataError, FirstpageWarning
from firstpage.kernels.measures.binary import hits
from firstpage.measures.measure import Convention, Lists, rank_lists
from firstpage.types import Floats, Ints

SHOWN = 5  # queries that a warning names
DEPTH = 10  # documents per query that are looked at, where no measure has a cut-off


@dataclass(frozen=True, eq=False)
class Coverage:
    """Queries that only one side has.

    missing   judged, and not in the run; of so many `judged`
    unjudged  in the run, and not judged; of so many `retrieved`
    """

    missing: Ids | list[str]
    judged: int
    unjudged: Ids | list[str]
    retrieved: int


def _warned(joined: tuple[Lists, Coverage], how: Convention, name: str, depth: int) -> Lists:
    """Warn, in one line, of queries and documents that the run or the judgments lack."""
    (lists, found), gaps = joined, []
    if found.missing:
        fate = "count 0" if how.queries == "judged" else "are left out of the means"
        gaps.append(
            f"{len(found.missing)} of {found.judged} judged queries are not in the run and {fate}: "
            f"{some_of(found.missing)}"
        )
    if found.unjudged:
        gaps.append(
            f"{len(found.unjudged)} of its {found.retrieved} queries are not judged and are left "
            f"out: {some_of(found.unjudged)}"
        )
    if share := unjudged_fraction(lists, depth):
        shown = f"{share:.1%}" if share >= 0.001 else "less than 0.1%"
        gaps.append(f"{shown} of the documents in the top {depth} are unjudged")
    if gaps:
        warnings.warn(f"{name}: {'; '.join(gaps)}.", FirstpageWarning, stacklevel=4)
    return lists


def unjudged_fraction(lists: Lists, depth: int) -> float:
    """Return the fraction of documents in the first `depth` of all queries without a judgment."""
    shown = np.minimum(lists.lengths, depth)
    total = int(shown.sum())
    if lists.origin is None or not total:
        return 0.0
    judged = np.empty(len(lists))
    hits(lists.labels, lists.block, lists.offsets, -np.inf, shown, judged)
    return max(0.0, 1.0 - float(judged.sum()) / total)


def some_of(queries: Ids | list[str]) -> str:
    """The first few ids."""
    return ", ".join(queries[i] for i in range(min(SHOWN, len(queries)))) + (
        ", .." * (len(queries) > SHOWN)
    )


Nested = Mapping[str, Mapping[str, float]]


def make_lists(
    system: Any,
    truth: Any,
    how: Convention,
    qid: Any = None,
    docid: Any = None,
    k: int | None = None,
    name: str = "",
    depth: int = DEPTH,
) -> Lists:
    """Rank what `system` says against `truth`.

    Scores with labels (arrays, a Dataset or a Truth), or a run with qrels (objects or
    dictionaries).  `k` first turns the labels into a top-k truth, by the convention's seed.  What
    a run and judgments lack of each other is warned of, under the run's `name`; documents are
    looked at down to `depth`.
    """
    if isinstance(truth, Mapping) and isinstance(system, Mapping) and _are_plain(system, truth):
        return _warned(from_dicts(system, truth, how, k), how, name or "the run", depth)
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
        return _warned(from_run(run, truth, how, k), how, label, depth)
    if isinstance(system, (Mapping, Column)):
        raise DataError("a run goes with judgments (qrels), not with an array of labels.")
    order = None
    if isinstance(truth, Dataset):
        labels, offsets, queries, ids = truth.y, truth.offsets, truth.queries, truth.docids
    elif isinstance(truth, Truth):
        labels, offsets, queries, ids = truth.labels, truth.offsets, truth.queries, None
    else:
        labels = _column(truth, "labels")
        if qid is None:
            raise DataError("scores and labels need qid: the query id of every document.")
        queries, offsets, order = group_rows(qid, len(labels))
        ids = None if docid is None else Ids.from_values(docid)
    scores = _column(system, "scores")
    if len(scores) != len(labels):
        raise DataError(f"there are {len(scores)} scores for {len(labels)} documents.")
    if ids is not None and len(ids) != len(labels):
        raise DataError(f"there are {len(ids)} document ids for {len(labels)} documents.")
    if order is not None:
        scores, labels = scores[order], labels[order]
        ids = None if ids is None else ids[order]
    checked = Truth(labels, offsets, queries)  # refuses missing and infinite labels
    if k is not None:
        checked = checked.top_k(k, how.seed)
    return rank_lists(scores, checked.labels, offsets, queries, how, ids)


def _column(values: Any, what: str) -> Floats:
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"{what} must be numbers ({error}).") from error
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.ndim != 1:
        raise DataError(f"{what} must be one number a document; the shape is {array.shape}.")
    return np.ascontiguousarray(array)


def from_run(
    run: Column, qrels: Column, how: Convention, k: int | None = None
) -> tuple[Lists, Coverage]:
    """Join a run with judgments by query and document; and say what they lack of each other."""
    partner = match_queries(run.queries, qrels.queries)
    if not (partner >= 0).any():
        raise DataError(
            f"{run.source or 'the run'} and {qrels.source or 'the judgments'} share no query: "
            f"the run has {some_of(run.queries)}, the judgments have {some_of(qrels.queries)}."
        )
    found = join_documents(run, qrels, partner)
    in_run = np.full(len(qrels.queries), -1, np.int64)
    in_run[partner[partner >= 0]] = np.flatnonzero(partner >= 0)
    missing = np.flatnonzero(in_run < 0)
    gaps = Coverage(
        qrels.queries[missing], len(in_run), run.queries[np.flatnonzero(partner < 0)], len(partner)
    )
    queries = np.arange(len(in_run)) if how.queries == "judged" else np.flatnonzero(in_run >= 0)
    picked = in_run[queries]
    offsets, rows = _pick_rows(run.offsets, picked)
    pool_offsets, pool_rows = _pick_rows(qrels.offsets, queries)
    new_row = np.full(len(qrels.values) + 1, -1, np.int64)
    new_row[pool_rows] = np.arange(len(pool_rows))
    lists = _joined(
        (run.values[rows], offsets, run.docids[rows]),
        (qrels.values[pool_rows], pool_offsets, qrels.queries[queries]),
        new_row[found[rows]], how, k,
    )  # fmt: skip
    return lists, gaps


def from_dicts(
    run: Nested, qrels: Nested, how: Convention, k: int | None = None
) -> tuple[Lists, Coverage]:
    """The same for {query: {document: number}}: Python's own dictionaries make the join."""
    queries = [q for q in qrels if how.queries == "judged" or q in run]
    scores: list[float] = []
    pool: list[float] = []
    origin: list[int] = []
    for query in queries:
        judged, got = qrels[query], run.get(query, {})
        row = dict(zip(judged, range(len(pool), len(pool) + len(judged)), strict=True))
        origin += map(row.get, got, repeat(-1))
        scores += got.values()
        pool += judged.values()
    found = [run.get(query, {}) for query in queries]
    names = [doc for docs in found for doc in docs] if how.ties == "docid" else None
    offsets, pool_offsets = (
        offsets_from_lengths(map(len, docs)) for docs in (found, [qrels[q] for q in queries])
    )
    lists = _joined(
        (_column(scores, "scores"), offsets, names),
        (_column(pool, "grades"), pool_offsets, Ids.from_values(queries)),
        np.array(origin, np.int64), how, k,
    )  # fmt: skip
    missing = [query for query in qrels if query not in run]
    return lists, Coverage(missing, len(qrels), [q for q in run if q not in qrels], len(run))


def _are_plain(run: Any, qrels: Any) -> bool:
    """Whether two dictionaries share a query and have strings for keys throughout."""
    return any(q in run for q in qrels) and all(
        isinstance(docs, Mapping) and {type(query), *map(type, docs)} <= {str}
        for table in (run, qrels)
        for query, docs in table.items()
    )


def _joined(
    run: tuple[Floats, Ints, Any], pool: tuple[Floats, Ints, Ids], origin: Ints, how: Convention,
    k: int | None,
) -> Lists:  # fmt: skip
    """Lists from scores, offsets and document ids; judged labels, offsets and queries; and each
    document's row among the judged, -1 where it is unjudged."""
    scores, offsets, docids = run
    labels, pool_offsets, queries = pool
    truth = Truth(labels, pool_offsets, queries)
    labels = truth.labels if k is None else truth.top_k(k, how.seed).labels
    if how.negative_unjudged and (labels < 0).any():
        kept = labels >= 0
        new_row = np.where(kept, np.cumsum(kept) - 1, -1)
        origin = np.append(new_row, -1)[origin]
        pool_offsets = offsets_from_lengths(kept)[pool_offsets].astype(np.int64)
        labels = labels[kept]
    ids = None if docids is None else Ids.from_values(docids)
    ranked = np.append(labels, np.nan)[origin]  # -1 takes the NaN
    return rank_lists(scores, ranked, offsets, queries, how, ids, (labels, pool_offsets, origin))


def _pick_rows(offsets: Ints, queries: Ints) -> tuple[Ints, Ints]:
    """New offsets and old row numbers of some queries; -1 is a query without rows."""
    there = np.maximum(queries, 0)
    lengths = np.where(queries >= 0, offsets[there + 1] - offsets[there], 0)
    starts = np.cumsum(lengths) - lengths
    rows = np.arange(lengths.sum()) + np.repeat(offsets[there] - starts, lengths)
    return offsets_from_lengths(lengths), rows
