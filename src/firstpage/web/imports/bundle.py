"""The files of one import, read before anything is written."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from firstpage.data.formats import row_reader
from firstpage.data.formats.row_reader import ByteStream, ReadLimits
from firstpage.errors import DataError
from firstpage.web.imports import rows, trec
from firstpage.web.imports.pictures import Pictures
from firstpage.web.imports.rows import KnownAnswer
from firstpage.web.store.texts import QueryRecord

MAX_PAUSE = 0.1  # seconds


class PacedStream:
    """A binary stream that pauses before each read for as long as its reader worked since the last.

    The threads of a server share one interpreter.  A reader that never pauses occupies half of it,
    and every answer, which passes between threads some twenty times, waits for it each time.
    """

    def __init__(
        self, stream: ByteStream, pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:  # fmt: skip
        self._stream, self._pause, self._clock = stream, pause, clock
        self._resumed = clock()

    def read(self, size: int = -1) -> bytes:
        """Pause, then read up to `size` bytes."""
        self._pause(min(self._clock() - self._resumed, MAX_PAUSE))
        self._resumed = self._clock()
        return self._stream.read(size)

    def seek(self, offset: int) -> int:
        """Move to a position of the stream."""
        return self._stream.seek(offset)


DEFAULT_DEPTH = 50  # of a run
MAX_NAMES = 3  # in a note; the others are counted


@dataclass(frozen=True)
class File:
    """A file to read, whose stream is seekable."""

    name: str
    stream: ByteStream

    @classmethod
    def uploaded(cls, name: str, stream: ByteStream) -> File:
        """Return a file that is read with pauses, so that the server can answer other requests."""
        return cls(name, PacedStream(stream))


@dataclass(frozen=True)
class Sources:
    """The files of an import by content.

    Documents come as `documents`, or as a `run` or `letor` file with a `collection`; queries as
    `queries` or `topics`, or only as ids.
    """

    queries: File | None = None
    documents: File | None = None
    topics: File | None = None
    run: File | None = None
    letor: File | None = None
    collection: File | None = None
    gold_questions: File | None = None
    training: File | None = None
    qrels: File | None = None  # grades of the items of lists, here or in the project
    pictures: Pictures = field(default_factory=Pictures)
    depth: int | None = None  # of a run; None: `DEFAULT_DEPTH`


@dataclass(frozen=True)
class Bundle:
    """The content of all files."""

    queries: list[QueryRecord]
    gold_questions: list[KnownAnswer]
    training: list[KnownAnswer]
    pictures: Pictures
    grades: dict[str, dict[str, int]] = field(default_factory=dict)
    graded_by: str = ""  # the name of the file with the grades
    notes: tuple[str, ...] = ()  # what is omitted or empty


def read(sources: Sources, limits: ReadLimits = ReadLimits()) -> Bundle:  # noqa: B008 (frozen)
    """Read all files, each up to the limits."""
    queries: dict[str, QueryRecord] = {}
    unread = rows.UnreadColumns()
    if sources.depth is not None and sources.run is None:
        raise DataError(
            "depth applies only to a run (the documents of it to judge); give the run too."
        )
    if sources.queries is not None and sources.topics is not None:
        raise DataError("give the queries either as rows or as TREC topics, not both.")
    if sources.queries is not None:
        queries = rows.queries_from(_rows(sources.queries, limits, unread))
    if sources.topics is not None:
        queries = trec.topics(sources.topics.name, sources.topics.stream, limits)
    gold_questions = (
        rows.gold_questions_from(_rows(sources.gold_questions, limits, unread))
        if sources.gold_questions
        else []
    )
    training = _training(sources, limits, unread)
    queries, name_notes = _with_texts(queries)
    imported, notes = _documents(sources, queries, limits, unread)
    notes += [*name_notes, *unread.notes(), *_empty_notes(imported, training)]
    qrels = sources.qrels
    grades = trec.qrels(qrels.name, qrels.stream, limits) if qrels else {}
    if not (imported or gold_questions or training or grades):
        raise DataError(
            "there is nothing to import; give documents, gold questions, training questions or "
            "qrels."
        )
    graded_by = qrels.name if qrels else ""
    return Bundle(
        imported, gold_questions, training, sources.pictures, grades, graded_by, tuple(notes)
    )


def _training(
    sources: Sources, limits: ReadLimits, unread: rows.UnreadColumns
) -> list[KnownAnswer]:
    file = sources.training
    if file is None:
        return []
    return rows.training_from(file.name, _rows(file, limits, unread), sources.pictures, unread)


def _empty_notes(queries: list[QueryRecord], training: list[KnownAnswer]) -> Iterator[str]:
    """Yield notes on documents without content, and on those with only a title."""
    practice = [q.query_record for q in training if q.query_record is not None]
    all_queries = [*queries, *practice]
    empty = [
        (d, f"{d.key!r} of {q.key!r}")
        for q in all_queries
        for d in q.documents
        if not (d.body.strip() or d.image or any((d.fields or {}).values()))
    ]
    untitled = [name for document, name in empty if not document.title]
    titled = [name for document, name in empty if document.title]
    if untitled:
        yield f"{len(untitled):,} documents have no text and no title: {_first(untitled)}."
    if titled:
        yield f"{len(titled):,} documents have a title but no text: {_first(titled)}."


def _with_texts(queries: dict[str, QueryRecord]) -> tuple[dict[str, QueryRecord], list[str]]:
    """Return the queries, with ids in place of missing texts, and a note on these."""
    textless = [repr(key) for key, query in queries.items() if not query.text]
    named = {key: replace(query, text=query.text or key) for key, query in queries.items()}
    if not textless:
        return named, []
    note = f"{len(textless):,} queries have no text, so their ids are shown: {_first(textless)}."
    return named, [note]


def _first(names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _documents(
    sources: Sources,
    queries: dict[str, QueryRecord],
    limits: ReadLimits,
    unread: rows.UnreadColumns,
) -> tuple[list[QueryRecord], list[str]]:
    """Return the queries with their documents, and notes on what is omitted."""
    files = [f for f in (sources.documents, sources.run, sources.letor) if f is not None]
    if not files:
        if queries or sources.collection:
            raise DataError(
                "there are no documents; give them as rows, or a run or LETOR file with texts."
            )
        return [], []
    if len(files) > 1:
        raise DataError("give the documents only once: as rows, by a run, or by a LETOR file.")
    if sources.documents is not None:
        documents = rows.documents_from(_rows(sources.documents, limits, unread), sources.pictures)
        return rows.attach_documents(queries, documents), []
    collection = sources.collection
    if collection is None:
        raise DataError(
            f"{files[0].name}: contains only document ids; give their texts as a collection."
        )
    depth = (sources.depth or DEFAULT_DEPTH) if sources.run is not None else sys.maxsize
    reader = trec.run if sources.run is not None else trec.letor
    pool = reader(files[0].name, files[0].stream, limits)
    notes = trec.omission_notes(queries, pool, files[0].name, depth)
    pool = trec.truncate(pool, depth)
    keys = {d for q, docs in pool.items() if not queries or q in queries for d in docs}
    texts = trec.collection(
        collection.name, collection.stream, limits, keys, sources.pictures, unread
    )
    return trec.join_documents(queries, pool, texts, collection.name), notes


def _rows(
    file: File, limits: ReadLimits, unread: rows.UnreadColumns
) -> Iterator[row_reader.LocatedRow]:
    return unread.tracked(file.name, row_reader.read_rows(file.name, file.stream, limits))
