"""Documents to judge that runs, LETOR files or an index name, and pages of results to compare.

Runs, qrels and LETOR files are read here; their texts are those of a collection or an index.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firstpage.core import DataError
from firstpage.data import Qrels, Run
from firstpage.data.formats import ByteStream, ReadLimits, read_lines, read_uploaded_rows
from firstpage.data.io import suffix_of
from firstpage.labeling.app.imports.rows import check_identifier, grade_of
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord
from firstpage.labeling.pooling import fused_scores, pooled_documents

if TYPE_CHECKING:
    from firstpage.search import Index

Pool = dict[str, dict[str, float | None]]  # query: document: prior
TextLookup = Callable[[Collection[str]], Mapping[str, DocumentRecord]]
DOCID = re.compile(r"docid\s*[=:]\s*(\S+)")
ITEM_CHARACTERS = 300  # of a document's text on a page of results


@dataclass(frozen=True)
class RunDocuments:
    """A run: its name, its file, and the documents of each query, the best first."""

    name: str
    source: str
    pool: Pool


def run_documents(name: str, stream: ByteStream, limits: ReadLimits, notes: list[str]) -> Pool:
    """Return the documents of each query of a run, the best first, with their scores as priors."""
    pool: Pool = {}
    for location, query, document, score in read_uploaded_rows(Run, name, stream, limits, notes):
        scores = _of_query(pool, location, query)
        if document in scores:
            raise DataError(f"{location}: document {document!r} occurs twice in this query.")
        scores[document] = score
    return {
        query: dict(sorted(docs.items(), key=lambda item: -(item[1] or 0.0)))
        for query, docs in pool.items()
    }


def _of_query(pool: Pool, location: str, query: str) -> dict[str, float | None]:
    if query not in pool:
        check_identifier(location, query, "query", "query")
        pool[query] = {}
    return pool[query]


def item_grades(
    name: str, stream: ByteStream, limits: ReadLimits, notes: list[str]
) -> dict[str, dict[str, int]]:
    """Return the grades of qrels by query and document, for the items of lists."""
    grades: dict[str, dict[str, int]] = {}
    for location, query, document, value in read_uploaded_rows(Qrels, name, stream, limits, notes):
        of_query, grade = grades.setdefault(query, {}), grade_of(location, value)
        if of_query.setdefault(document, grade) != grade:
            raise DataError(f"{location}: document {document!r} has two grades in this query.")
    return grades


def letor_documents(name: str, stream: ByteStream, limits: ReadLimits) -> Pool:
    """Return the documents that a LETOR file names after `#`; labels and features are ignored."""
    pool: Pool = {}
    for number, line in read_lines(name, stream, limits):
        data, hash_, comment = line.partition("#")
        words = data.split()
        if not words:
            continue
        if len(words) < 2 or not words[1].startswith("qid:"):
            raise DataError(f"{name}:{number}: a line must start with a label and qid:..")
        key = _docid(comment)
        if not hash_ or not key:
            raise DataError(
                f"{name}:{number}: names no document; end the line with '# docid = ..'."
            )
        documents = _of_query(pool, f"{name}:{number}", words[1][4:])
        if key in documents:
            raise DataError(f"{name}:{number}: document {key!r} occurs twice in this query.")
        documents[key] = None
    return pool


def _docid(comment: str) -> str:
    """Return the id of a comment as `read_letor` does: after `docid =`, else the first word."""
    named = DOCID.search(comment)
    words = comment.split()
    return named[1] if named else words[0] if words else ""


def run_name(source: str) -> str:
    """Return the name of a run: that of its file without suffixes."""
    name = Path(source).name
    for suffix in reversed(suffix_of(Path(name))):
        name = name.removesuffix(suffix) if name != suffix else name
    return name


def check_names(runs: Sequence[RunDocuments]) -> None:
    """Refuse two runs of the same name."""
    names = [run.name for run in runs]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise DataError(f"two runs are named {repeated!r}; rename one file.")


def candidates(index: Index, queries: Mapping[str, QueryRecord], depth: int) -> Pool:
    """Return the best documents of each query by the index's BM25, with their scores."""
    pool: Pool = {}
    for key, query in queries.items():
        hits = index.search(query.text, depth)
        if hits:
            pool[key] = {hit.id: hit.score for hit in hits}
    if not pool:
        raise DataError(f"{index.path}: no query matches a document.")
    return pool


def pooled(runs: Sequence[RunDocuments], depth: int, method: str, seed: int) -> Pool:
    """Return the pooled documents of each query, with their priors.

    The prior is the score of a single run, and the score by reciprocal rank fusion of several.
    """
    pool: Pool = {}
    for query in dict.fromkeys(query for run in runs for query in run.pool):
        rankings = [list(run.pool[query]) for run in runs if query in run.pool]
        chosen = pooled_documents(rankings, depth, method, seed, query)
        scores = fused_scores(rankings) if len(runs) > 1 else runs[0].pool[query]
        pool[query] = {document: scores[document] for document in chosen}
    return pool


def join_documents(
    queries: Mapping[str, QueryRecord],
    pool: Pool,
    lookup: TextLookup,
    source: str,
    runs: Sequence[RunDocuments] = (),
) -> list[QueryRecord]:
    """Return the queries with their documents; raise if a text is missing.

    `source` names where the texts come from.  Documents of several runs record which contain them.
    """
    chosen = _of_pool(queries, pool, source)
    texts = _texts({key: pool[key] for key, _ in chosen}, lookup, source)
    joined = []
    for key, query in chosen:
        documents = (
            replace(texts[name], prior=prior, runs=_origins(runs, key, name))
            for name, prior in pool[key].items()
        )
        joined.append(replace(query, documents=tuple(documents)))
    return joined


def _of_pool(
    queries: Mapping[str, QueryRecord], pool: Mapping[str, Any], source: str
) -> list[tuple[str, QueryRecord]]:
    """Return the queries that have documents; without queries all ids of the pool."""
    if not queries:
        return [(key, QueryRecord(key, key)) for key in pool]
    chosen = [(key, queries[key]) for key in pool if key in queries]
    if not chosen:
        raise DataError(
            f"{source}: none of the queries has documents; check that the query ids match."
        )
    return chosen


def _texts(pool: Pool, lookup: TextLookup, source: str) -> Mapping[str, DocumentRecord]:
    """Return the texts of all documents; raise if one is missing."""
    places = {name: query for query, documents in pool.items() for name in documents}
    texts = lookup(places.keys())
    missing = [name for name in places if name not in texts]
    if missing:
        more = f", and {len(missing) - 1:,} more are" if len(missing) > 1 else " is"
        raise DataError(
            f"{source}: document {missing[0]!r} of query {places[missing[0]]!r}{more} missing; add "
            "the texts, or leave the documents out."
        )
    return texts


def _origins(runs: Sequence[RunDocuments], query: str, name: str) -> tuple[str, ...] | None:
    """Return the names of the runs that contain a document, where there are several runs."""
    if len(runs) < 2:
        return None
    return tuple(run.name for run in runs if name in run.pool.get(query, {}))


def pages(
    queries: Mapping[str, QueryRecord],
    runs: Sequence[RunDocuments],
    lookup: TextLookup,
    source: str,
    depth: int,
) -> tuple[list[QueryRecord], list[str]]:
    """Return the first page of each run as a list to compare, and notes on what is left out.

    A page that equals an earlier one of its query is left out, and so is a query with one page.
    """
    known = dict.fromkeys(query for run in runs for query in run.pool)
    wanted = list(queries or known)
    first = {key: _distinct_pages(runs, key, depth) for key in wanted}
    absent = [key for key in wanted if sum(key in run.pool for run in runs) < 2]
    identical = [key for key in wanted if key not in absent and len(first[key]) < 2]
    compared = {key: lists for key, lists in first.items() if len(lists) > 1}
    if not compared:
        raise DataError(
            "no query has two different pages to compare: "
            f"{len(absent):,} are in fewer than two runs, and the pages of {len(identical):,} are "
            "identical."
        )
    pool: Pool = {
        key: dict.fromkeys(name for page in lists.values() for name in page)
        for key, lists in compared.items()
    }
    texts = _texts(pool, lookup, source)
    records = [
        replace(
            queries.get(key, QueryRecord(key, key)),
            documents=tuple(
                _page(run, [texts[name] for name in page]) for run, page in lists.items()
            ),
        )
        for key, lists in compared.items()
    ]
    merged = sum(
        sum(key in run.pool for run in runs) - len(lists) for key, lists in compared.items()
    )
    notes = []
    others = [key for key in known if queries and key not in queries]
    if others:
        notes.append(f"{listed(others)} of the runs left out: they are not among the queries.")
    if absent:
        notes.append(f"{listed(absent)} left out: fewer than two runs have documents of them.")
    if identical:
        notes.append(f"{listed(identical)} not asked: their pages are identical.")
    if merged:
        notes.append(f"{merged:,} pages left out that are identical to another one of their query.")
    return records, notes


def _distinct_pages(
    runs: Sequence[RunDocuments], query: str, depth: int
) -> dict[str, tuple[str, ...]]:
    """Return the first documents of each run by its name, without repeated pages."""
    lists: dict[str, tuple[str, ...]] = {}
    for run in runs:
        page = tuple(run.pool.get(query, {}))[:depth]
        if page and page not in lists.values():
            lists[run.name] = page
    return lists


def _page(run: str, documents: Sequence[DocumentRecord]) -> DocumentRecord:
    """Return a page of results; its title does not name the run, which would bias the assessor."""
    items = []
    for document in documents:
        text = " ".join(document.body.split())
        shown = text if len(text) <= ITEM_CHARACTERS else f"{text[: ITEM_CHARACTERS - 1]}…"
        item = {"id": document.key, "title": document.title or document.key, "text": shown}
        items.append({**item, **({"url": document.url} if document.url else {})})
    return DocumentRecord(run, "", "list", fields={"items": items})


def omission_notes(
    queries: Mapping[str, QueryRecord], pool: Mapping[str, Any], source: str
) -> list[str]:
    """Return notes on queries that are not imported, one line each."""
    notes = []
    empty = [key for key in queries if key not in pool]
    if empty:
        notes.append(f"{listed(empty)} left out: {source} has no documents of them.")
    others = [key for key in pool if queries and key not in queries]
    if others:
        notes.append(f"{listed(others)} of {source} left out: they are not among the queries.")
    return notes


def depth_notes(
    queries: Mapping[str, QueryRecord],
    runs: Sequence[RunDocuments],
    source: str,
    depth: int,
    method: str,
) -> list[str]:
    """Return notes on the documents that pooling leaves out, and on queries that a run lacks."""
    sizes: dict[str, set[str]] = {}
    for run in runs:
        for query, documents in run.pool.items():
            if not queries or query in queries:
                sizes.setdefault(query, set()).update(documents)
    notes = []
    deep = sum(len(documents) > depth for documents in sizes.values())
    if deep:
        chosen = f"the best {depth}" if len(runs) == 1 and method in ("depth", "rrf") else depth
        how = "" if len(runs) == 1 and method in ("depth", "rrf") else f" (--pool {method})"
        notes.append(f"of {count(deep)} in {source}, only {chosen} documents are imported{how}.")
    for run in runs:
        lacking = [query for query in sizes if query not in run.pool]
        if lacking:
            notes.append(f"{run.source} has no documents of {listed(lacking)}.")
    return notes


def listed(keys: Sequence[str]) -> str:
    """Return the number of queries, and the first of them."""
    more = f" and {len(keys) - 3:,} more" if len(keys) > 3 else ""
    return f"{count(len(keys))} ({', '.join(map(repr, keys[:3]))}{more})"


def count(number: int) -> str:
    """Return a number of queries in words."""
    return f"{number:,} {'query' if number == 1 else 'queries'}"
