"""TREC topics, runs, qrels and collections, and LETOR files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from html import unescape
from itertools import islice

from firstpage.data.formats.row_reader import (
    MAX_LINE_BYTES,
    ByteStream,
    ReadLimits,
    read_json_rows,
    read_lines,
)
from firstpage.data.formats.trec import Qrels, Run, read_uploaded_rows
from firstpage.errors import DataError
from firstpage.web.imports.pictures import Pictures
from firstpage.web.imports.rows import (
    MAX_KEY,
    TrackedRow,
    UnreadColumns,
    check_text,
    document_from,
    grade_of,
)
from firstpage.web.store.texts import DocumentRecord, QueryRecord

FIELD = re.compile(r"<(num|title|desc|narr)>\s*(.*?)(?=<(?:num|title|desc|narr)>|$)", re.S | re.I)
LABELS = re.compile(r"^(number|topic|description|narrative)\s*:\s*", re.I)
MARK = re.compile(r"<(/?)(DOCNO|TITLE|HEADLINE|HEAD|TEXT|BODY)>", re.I)
TAG = re.compile(r"<[^<>]*>")
COLLECTED_IDS = ("docid", "id", "_id", "docno")
Pool = dict[str, dict[str, float | None]]  # query: document: prior


def topics(name: str, stream: ByteStream, limits: ReadLimits) -> dict[str, QueryRecord]:
    """Return topics: `<top>` blocks with num, title, desc, narr; or lines `number TAB text`."""
    queries: dict[str, QueryRecord] = {}
    for location, block in _blocks(name, stream, limits, "<top>", "</top>"):
        fields = {tag.lower(): _clean(text) for tag, text in FIELD.findall(block)}
        key = fields.get("num", "").split()[0] if fields.get("num") else ""
        if not key:
            raise DataError(f"{location}: this topic has no <num>.")
        description = " ".join(fields[p] for p in ("desc", "narr") if fields.get(p))
        _add_query(queries, location, QueryRecord(key, fields.get("title", ""), description))
    if queries:
        return queries
    stream.seek(0)
    for number, line in read_lines(name, stream, limits):
        if line.strip():
            key, tab, text = line.partition("\t")
            if not tab or not key.strip():
                raise DataError(
                    f"{name}:{number}: topics are <top> blocks, or lines of number, tab, text."
                )
            _add_query(queries, f"{name}:{number}", QueryRecord(key.strip(), text.strip()))
    return queries


def run(name: str, stream: ByteStream, limits: ReadLimits) -> Pool:
    """Return the documents of each query, the best first, with their scores as priors."""
    pool: Pool = {}
    for location, query, document, score in read_uploaded_rows(Run, name, stream, limits):
        scores = _of_query(pool, location, query)
        if document in scores:
            raise DataError(f"{location}: document {document!r} occurs twice in this query.")
        scores[document] = score
    return {
        query: dict(sorted(docs.items(), key=lambda item: -(item[1] or 0.0)))
        for query, docs in pool.items()
    }


def truncate(pool: Pool, depth: int) -> Pool:
    """Return the first `depth` documents of each query."""
    return {query: dict(islice(docs.items(), depth)) for query, docs in pool.items()}


def _of_query(pool: Pool, location: str, query: str) -> dict[str, float | None]:
    if query not in pool:
        pool[check_text(location, "query", query, MAX_KEY)] = {}
    return pool[query]


def qrels(name: str, stream: ByteStream, limits: ReadLimits) -> dict[str, dict[str, int]]:
    """Return grades by query and document, for the items of lists."""
    grades: dict[str, dict[str, int]] = {}
    for location, query, document, value in read_uploaded_rows(Qrels, name, stream, limits):
        of_query, grade = grades.setdefault(query, {}), grade_of(location, value)
        if of_query.setdefault(document, grade) != grade:
            raise DataError(f"{location}: document {document!r} has two grades in this query.")
    return grades


def letor(name: str, stream: ByteStream, limits: ReadLimits) -> Pool:
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


def collection(
    name: str, stream: ByteStream, limits: ReadLimits, keys: Collection[str], pictures: Pictures,
    unread: UnreadColumns,
) -> dict[str, DocumentRecord]:  # fmt: skip
    """Return the documents with these keys from a collection: TREC text, or JSON lines."""
    documents: dict[str, DocumentRecord] = {}
    for location, document in _collected(name, stream, limits, keys, pictures, unread):
        if documents.setdefault(document.key, document) != document:
            raise DataError(f"{location}: duplicate document {document.key!r} with another text.")
    return documents


def _collected(
    name: str, stream: ByteStream, limits: ReadLimits, keys: Collection[str], pictures: Pictures,
    unread: UnreadColumns,
) -> Iterator[tuple[str, DocumentRecord]]:  # fmt: skip
    if name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        for location, row in read_json_rows(name, stream, limits):
            tracked = TrackedRow(row)
            key = str(next((tracked[name] for name in COLLECTED_IDS if name in row), ""))
            if key in keys:
                yield location, document_from(location, tracked, pictures, key)
                unread.count(name, tracked)
        return
    for location, block in _blocks(name, stream, limits, "<DOC>", "</DOC>"):
        document = _document(location, block)
        if document.key in keys:
            for name, text in (
                ("DOCNO", document.key), ("TITLE", document.title), ("TEXT", document.body),
            ):  # fmt: skip
                check_text(location, name, text)
            yield location, document


def join_documents(
    queries: dict[str, QueryRecord],
    pool: Pool,
    texts: dict[str, DocumentRecord],
    source: str,
) -> list[QueryRecord]:
    """Return the queries with their pooled documents; raise if a text is missing."""
    joined = []
    for key, docs in pool.items():
        query = queries.get(key)
        if query is None:
            if queries:
                continue  # `omission_notes` reports it
            query = QueryRecord(key, key)
        missing = next((d for d in docs if d not in texts), None)
        if missing is not None:
            raise DataError(f"{source}: document {missing!r} of query {key!r} is missing.")
        chosen = tuple(_with_prior(texts[d], prior) for d, prior in docs.items())
        joined.append(QueryRecord(query.key, query.text, query.description, chosen))
    if not joined:
        raise DataError(
            f"{source}: none of the queries has documents; check that the query ids match."
        )
    return joined


def omission_notes(
    queries: dict[str, QueryRecord], pool: Pool, source: str, depth: int
) -> list[str]:
    """Return notes on queries and documents that are not imported, one line each."""
    notes = []
    empty = [key for key in queries if key not in pool]
    if empty:
        notes.append(f"{_queries(empty)} left out: {source} has no documents of them.")
    others = [key for key in pool if queries and key not in queries]
    if others:
        notes.append(f"{_queries(others)} of {source} left out: they are not among the queries.")
    deep = sum(len(docs) > depth for key, docs in pool.items() if not queries or key in queries)
    if deep:
        notes.append(
            f"of {_count(deep)} in {source}, only the best {depth} documents are imported."
        )
    return notes


def _queries(keys: list[str]) -> str:
    more = f" and {len(keys) - 3:,} more" if len(keys) > 3 else ""
    return f"{_count(len(keys))} ({', '.join(map(repr, keys[:3]))}{more})"


def _count(count: int) -> str:
    return f"{count:,} {'query' if count == 1 else 'queries'}"


def _with_prior(document: DocumentRecord, prior: float | None) -> DocumentRecord:
    return DocumentRecord(**{**vars(document), "prior": prior})


def _document(location: str, block: str) -> DocumentRecord:
    elements, rest = _elements(block)
    key = _clean(" ".join(elements.get("DOCNO", []))).strip()
    if not key or len(key) > 200:
        raise DataError(f"{location}: this document has no <DOCNO> of 1 to 200 characters.")
    titles = (_clean(elements[t][0]) for t in ("TITLE", "HEADLINE", "HEAD") if t in elements)
    title = next(titles, "")
    body = "\n\n".join(_plain(text) for t in ("TEXT", "BODY") for text in elements.get(t, []))
    return DocumentRecord(key, title, "text", body or _plain(rest))


def _elements(block: str) -> tuple[dict[str, list[str]], str]:
    """Return the texts of each element by tag, and the text outside of all elements.

    A tag that is never closed is ignored.  The time is linear in the length of the block.
    """
    marks = [(m.start(), m.end(), bool(m[1]), m[2].upper()) for m in MARK.finditer(block)]
    ends: dict[str, list[tuple[int, int]]] = {}  # of each tag, the last first
    for start, end, closes, tag in reversed(marks):
        if closes:
            ends.setdefault(tag, []).append((start, end))
    elements: dict[str, list[str]] = {}
    outside, position = [], 0
    for start, end, closes, tag in marks:
        if closes or start < position:
            continue
        following = ends.get(tag, [])
        while following and following[-1][0] < end:
            following.pop()
        if following:
            elements.setdefault(tag, []).append(block[end : following[-1][0]])
            outside.append(block[position:start])
            position = following[-1][1]
    return elements, "".join((*outside, block[position:]))


def _blocks(
    name: str, stream: ByteStream, limits: ReadLimits, start: str, end: str
) -> Iterator[tuple[str, str]]:
    """Yield the texts between two tags, which start and end lines."""
    block: list[str] | None = None
    first_line = size = 0
    for number, line in read_lines(name, stream, limits):
        plain = line.strip().lower()
        if block is None and plain.startswith(start.lower()):
            block, first_line, size = [], number, 0
        if block is not None:
            block.append(line)
            size += len(line)
            if size > MAX_LINE_BYTES:
                raise DataError(f"{name}:{first_line}: this {start} has no {end}, or is too long.")
            if plain.endswith(end.lower()):
                yield f"{name}:{first_line}", "\n".join(block).strip()[len(start) : -len(end)]
                block = None
    if block is not None:
        raise DataError(f"{name}:{first_line}: this {start} has no {end}.")


def _add_query(queries: dict[str, QueryRecord], location: str, query: QueryRecord) -> None:
    if query.key in queries:
        raise DataError(f"{location}: duplicate topic {query.key!r}.")
    check_text(location, "num", query.key, MAX_KEY)
    check_text(location, "title", query.text)
    check_text(location, "desc", query.description)
    queries[query.key] = query


def _clean(text: str) -> str:
    """Return a text in one line, without tags and labels such as `Number:`."""
    return LABELS.sub("", " ".join(unescape(TAG.sub(" ", text)).split()))


def _plain(text: str) -> str:
    """Return a text without tags, with its paragraphs."""
    broken = re.sub(r"</?(p|br|div|h\d)\s*/?>", "\n\n", text, flags=re.I)
    return re.sub(r"\n\s*\n+", "\n\n", unescape(TAG.sub(" ", broken))).strip()


def _docid(comment: str) -> str:
    """Return the id of a comment such as `docid = GX001 inc = ..`, or its first word."""
    words = comment.replace("=", " = ").split()
    if len(words) >= 3 and words[0].lower() == "docid" and words[1] == "=":
        return words[2]
    return words[0] if words else ""
