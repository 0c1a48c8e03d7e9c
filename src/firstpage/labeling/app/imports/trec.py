"""TREC topics, runs and qrels, and LETOR files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import unescape

from firstpage.core import DataError
from firstpage.data import Qrels, Run
from firstpage.data.formats import (
    MAX_LINE_BYTES,
    ByteStream,
    ReadLimits,
    read_lines,
    read_uploaded_rows,
)
from firstpage.labeling.app.imports.rows import ImportNotes, check_identifier, check_text, grade_of
from firstpage.labeling.app.store.texts import QueryRecord
from firstpage.search import read_old_lines

FIELD = re.compile(r"<(num|title|desc|narr)>\s*(.*?)(?=<(?:num|title|desc|narr)>|$)", re.S | re.I)
LABELS = re.compile(r"^(number|topic|description|narrative)\s*:\s*", re.I)
TAG = re.compile(r"<[^<>]*>")
DOCID = re.compile(r"docid\s*[=:]\s*(\S+)")
Pool = dict[str, dict[str, float | None]]  # query: document: prior


def topics(
    name: str, stream: ByteStream, limits: ReadLimits, reading: ImportNotes
) -> dict[str, QueryRecord]:
    """Return topics: `<top>` blocks with num, title, desc, narr; or lines `number TAB text`."""
    queries: dict[str, QueryRecord] = {}
    notes = reading.of_file()
    lines = read_old_lines(name, stream, notes, limits)
    for location, block in _blocks(name, lines, "<top>", "</top>"):
        fields = {tag.lower(): _clean(text) for tag, text in FIELD.findall(block)}
        key = fields.get("num", "").split()[0] if fields.get("num") else ""
        if not key:
            raise DataError(f"{location}: this topic has no <num>.")
        description = " ".join(fields[p] for p in ("desc", "narr") if fields.get(p))
        _add_query(queries, location, QueryRecord(key, fields.get("title", ""), description))
    if queries:
        return queries
    stream.seek(0)
    for number, line in read_old_lines(name, stream, notes, limits):
        if line.strip():
            key, tab, text = line.partition("\t")
            if not tab or not key.strip():
                raise DataError(
                    f"{name}:{number}: topics are <top> blocks, or lines of number, tab, text."
                )
            _add_query(queries, f"{name}:{number}", QueryRecord(key.strip(), text.strip()))
    return queries


def run(name: str, stream: ByteStream, limits: ReadLimits, notes: list[str]) -> Pool:
    """Return the documents of each query, the best first, with their scores as priors."""
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


def qrels(
    name: str, stream: ByteStream, limits: ReadLimits, notes: list[str]
) -> dict[str, dict[str, int]]:
    """Return grades by query and document, for the items of lists."""
    grades: dict[str, dict[str, int]] = {}
    for location, query, document, value in read_uploaded_rows(Qrels, name, stream, limits, notes):
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


def _blocks(
    name: str, lines: Iterable[tuple[int, str]], start: str, end: str
) -> Iterator[tuple[str, str]]:
    """Yield the texts between two tags, which start and end lines."""
    block: list[str] | None = None
    first_line = size = 0
    for number, line in lines:
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
    check_identifier(location, query.key, "num", "topic")
    check_text(location, "title", query.text)
    check_text(location, "desc", query.description)
    queries[query.key] = query


def _clean(text: str) -> str:
    """Return a text in one line, without tags and labels such as `Number:`."""
    return LABELS.sub("", " ".join(unescape(TAG.sub(" ", text)).split()))


def _docid(comment: str) -> str:
    """Return the id of a comment as `read_letor` does: after `docid =`, else the first word."""
    named = DOCID.search(comment)
    words = comment.split()
    return named[1] if named else words[0] if words else ""
