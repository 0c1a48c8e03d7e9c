"""TREC topics, runs and collections, and LETOR files: which documents to judge, and their texts."""

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
    LONGEST_KEY,
    Unread,
    WatchedRow,
    checked,
    document_from,
    grade_of,
)
from firstpage.web.store.texts import Document, Query

FIELD = re.compile(r"<(num|title|desc|narr)>\s*(.*?)(?=<(?:num|title|desc|narr)>|$)", re.S | re.I)
LABELS = re.compile(r"^(number|topic|description|narrative)\s*:\s*", re.I)
MARK = re.compile(r"<(/?)(DOCNO|TITLE|HEADLINE|HEAD|TEXT|BODY)>", re.I)
TAG = re.compile(r"<[^<>]*>")
COLLECTED_IDS = ("docid", "id", "_id", "docno")
Wanted = dict[str, dict[str, float | None]]  # query: document: prior


def topics(name: str, stream: ByteStream, limits: ReadLimits) -> dict[str, Query]:
    """`<top>` blocks with num, title, desc, narr; or lines of a number, a tab and the text."""
    found: dict[str, Query] = {}
    for where, block in _blocks(name, stream, limits, "<top>", "</top>"):
        parts = {tag.lower(): _clean(text) for tag, text in FIELD.findall(block)}
        key = parts.get("num", "").split()[0] if parts.get("num") else ""
        if not key:
            raise DataError(f"{where}: this topic has no <num>.")
        more = " ".join(parts[p] for p in ("desc", "narr") if parts.get(p))
        _put(found, where, Query(key, parts.get("title", ""), more))
    if found:
        return found
    stream.seek(0)
    for number, line in read_lines(name, stream, limits):
        if line.strip():
            key, tab, text = line.partition("\t")
            if not tab or not key.strip():
                raise DataError(f"{name}:{number}: topics are <top> blocks, or number, tab, text.")
            _put(found, f"{name}:{number}", Query(key.strip(), text.strip()))
    return found


def run(name: str, stream: ByteStream, limits: ReadLimits) -> Wanted:
    """The documents of each query, the best first; their scores are what one believes of them."""
    found: Wanted = {}
    for where, query, document, score in read_uploaded_rows(Run, name, stream, limits):
        mine = _of_query(found, where, query)
        if document in mine:
            raise DataError(f"{where}: document {document!r} comes twice in this query.")
        mine[document] = score
    return {
        query: dict(sorted(docs.items(), key=lambda item: -(item[1] or 0.0)))
        for query, docs in found.items()
    }


def cut(wanted: Wanted, depth: int) -> Wanted:
    """The first `depth` documents of each query."""
    return {query: dict(islice(docs.items(), depth)) for query, docs in wanted.items()}


def _of_query(found: Wanted, where: str, query: str) -> dict[str, float | None]:
    if query not in found:
        found[checked(where, "query", query, LONGEST_KEY)] = {}
    return found[query]


def qrels(name: str, stream: ByteStream, limits: ReadLimits) -> dict[str, dict[str, int]]:
    """Grades by query and document, for the items of lists."""
    found: dict[str, dict[str, int]] = {}
    for where, query, document, value in read_uploaded_rows(Qrels, name, stream, limits):
        mine, grade = found.setdefault(query, {}), grade_of(where, value)
        if mine.setdefault(document, grade) != grade:
            raise DataError(f"{where}: document {document!r} has two grades in this query.")
    return found


def letor(name: str, stream: ByteStream, limits: ReadLimits) -> Wanted:
    """The documents that a LETOR file names after `#`; its labels and features are not needed."""
    found: Wanted = {}
    for number, line in read_lines(name, stream, limits):
        data, hash_, comment = line.partition("#")
        words = data.split()
        if not words:
            continue
        if len(words) < 2 or not words[1].startswith("qid:"):
            raise DataError(f"{name}:{number}: a line begins with a label and qid:..")
        key = _docid(comment)
        if not hash_ or not key:
            raise DataError(f"{name}:{number}: names no document; end it in '# docid = ..'.")
        mine = _of_query(found, f"{name}:{number}", words[1][4:])
        if key in mine:
            raise DataError(f"{name}:{number}: document {key!r} comes twice in this query.")
        mine[key] = None
    return found


def collection(
    name: str, stream: ByteStream, limits: ReadLimits, wanted: Collection[str], pictures: Pictures,
    unread: Unread,
) -> dict[str, Document]:  # fmt: skip
    """The documents that are wanted: TREC text, or JSON lines with an id and a text."""
    found: dict[str, Document] = {}
    for where, made in _collected(name, stream, limits, wanted, pictures, unread):
        if found.setdefault(made.key, made) != made:
            raise DataError(f"{where}: a second document {made.key!r}, with another text.")
    return found


def _collected(
    name: str, stream: ByteStream, limits: ReadLimits, wanted: Collection[str], pictures: Pictures,
    unread: Unread,
) -> Iterator[tuple[str, Document]]:  # fmt: skip
    if name.lower().removesuffix(".gz").endswith((".jsonl", ".ndjson")):
        for where, row in read_json_rows(name, stream, limits):
            watched = WatchedRow(row)
            key = str(next((watched[name] for name in COLLECTED_IDS if name in row), ""))
            if key in wanted:
                yield where, document_from(where, watched, pictures, key)
                unread.count(name, watched)
        return
    for where, block in _blocks(name, stream, limits, "<DOC>", "</DOC>"):
        made = _document(where, block)
        if made.key in wanted:
            for name, text in (("DOCNO", made.key), ("TITLE", made.title), ("TEXT", made.body)):
                checked(where, name, text)
            yield where, made


def put_together(
    found: dict[str, Query], wanted: Wanted, texts: dict[str, Document], source: str
) -> list[Query]:
    """Queries with the documents wanted of them; one whose text is missing is refused."""
    made = []
    for key, docs in wanted.items():
        query = found.get(key)
        if query is None:
            if found:
                continue  # `left_out` says so
            query = Query(key, key)
        missing = next((d for d in docs if d not in texts), None)
        if missing is not None:
            raise DataError(f"{source}: document {missing!r} of query {key!r} has no text there.")
        chosen = tuple(_with_prior(texts[d], prior) for d, prior in docs.items())
        made.append(Query(query.key, query.text, query.description, chosen))
    if not made:
        raise DataError(f"{source}: none of the queries has documents; do the query ids match?")
    return made


def left_out(found: dict[str, Query], wanted: Wanted, source: str, depth: int) -> list[str]:
    """What of a run or LETOR file and of the queries does not come in, a line each."""
    notes = []
    bare = [key for key in found if key not in wanted]
    if bare:
        notes.append(f"{_queries(bare)} left out: {source} has no documents of them.")
    others = [key for key in wanted if found and key not in found]
    if others:
        notes.append(f"{_queries(others)} of {source} left out: they are not among the queries.")
    deep = sum(len(docs) > depth for key, docs in wanted.items() if not found or key in found)
    if deep:
        notes.append(f"of {_many(deep)} in {source}, only the best {depth} documents come in.")
    return notes


def _queries(keys: list[str]) -> str:
    more = f" and {len(keys) - 3:,} more" if len(keys) > 3 else ""
    return f"{_many(len(keys))} ({', '.join(map(repr, keys[:3]))}{more})"


def _many(count: int) -> str:
    return f"{count:,} {'query' if count == 1 else 'queries'}"


def _with_prior(document: Document, prior: float | None) -> Document:
    return Document(**{**vars(document), "prior": prior})


def _document(where: str, block: str) -> Document:
    parts, rest = _elements(block)
    key = _clean(" ".join(parts.get("DOCNO", []))).strip()
    if not key or len(key) > 200:
        raise DataError(f"{where}: this document has no <DOCNO> of 1 to 200 characters.")
    title = next((_clean(parts[t][0]) for t in ("TITLE", "HEADLINE", "HEAD") if t in parts), "")
    body = "\n\n".join(_plain(text) for t in ("TEXT", "BODY") for text in parts.get(t, []))
    return Document(key, title, "text", body or _plain(rest))


def _elements(block: str) -> tuple[dict[str, list[str]], str]:
    """Return the texts between the tags of each element, and what stands outside of all.

    A tag that is never closed is none.  The time is linear in the length of the block.
    """
    marks = [(m.start(), m.end(), bool(m[1]), m[2].upper()) for m in MARK.finditer(block)]
    ends: dict[str, list[tuple[int, int]]] = {}  # of each element, the last first
    for start, end, closes, tag in reversed(marks):
        if closes:
            ends.setdefault(tag, []).append((start, end))
    parts: dict[str, list[str]] = {}
    outside, at = [], 0
    for start, end, closes, tag in marks:
        if closes or start < at:
            continue
        following = ends.get(tag, [])
        while following and following[-1][0] < end:
            following.pop()
        if following:
            parts.setdefault(tag, []).append(block[end : following[-1][0]])
            outside.append(block[at:start])
            at = following[-1][1]
    return parts, "".join((*outside, block[at:]))


def _blocks(
    name: str, stream: ByteStream, limits: ReadLimits, start: str, end: str
) -> Iterator[tuple[str, str]]:
    """What stands between two tags, which have lines of their own or begin and end them."""
    held: list[str] | None = None
    begin = size = 0
    for number, line in read_lines(name, stream, limits):
        plain = line.strip().lower()
        if held is None and plain.startswith(start.lower()):
            held, begin, size = [], number, 0
        if held is not None:
            held.append(line)
            size += len(line)
            if size > MAX_LINE_BYTES:
                raise DataError(f"{name}:{begin}: this {start} has no {end}, or is far too long.")
            if plain.endswith(end.lower()):
                yield f"{name}:{begin}", "\n".join(held).strip()[len(start) : -len(end)]
                held = None
    if held is not None:
        raise DataError(f"{name}:{begin}: this {start} has no {end}.")


def _put(found: dict[str, Query], where: str, query: Query) -> None:
    if query.key in found:
        raise DataError(f"{where}: a second topic {query.key!r}.")
    checked(where, "num", query.key, LONGEST_KEY)
    checked(where, "title", query.text)
    checked(where, "desc", query.description)
    found[query.key] = query


def _clean(text: str) -> str:
    """One line without tags and labels such as `Number:`."""
    return LABELS.sub("", " ".join(unescape(TAG.sub(" ", text)).split()))


def _plain(text: str) -> str:
    """Text without tags; paragraphs stay."""
    kept = re.sub(r"</?(p|br|div|h\d)\s*/?>", "\n\n", text, flags=re.I)
    return re.sub(r"\n\s*\n+", "\n\n", unescape(TAG.sub(" ", kept))).strip()


def _docid(comment: str) -> str:
    """`docid = GX001 inc = ..` or the first word."""
    words = comment.replace("=", " = ").split()
    if len(words) >= 3 and words[0].lower() == "docid" and words[1] == "=":
        return words[2]
    return words[0] if words else ""
