"""All files of one import: read first, then put into a project, all of it or nothing."""

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
from firstpage.web.imports.rows import Known
from firstpage.web.store.texts import Query

LONGEST_PAUSE = 0.1  # seconds


class PacedStream:
    """A binary stream that pauses before each read as long as its reader worked since the last.

    The threads of a server share one interpreter.  A reader that never rests keeps half of it,
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
        self._pause(min(self._clock() - self._resumed, LONGEST_PAUSE))
        self._resumed = self._clock()
        return self._stream.read(size)

    def seek(self, offset: int) -> int:
        """Go to a position of the stream."""
        return self._stream.seek(offset)


DEPTH = 50
SHOWN = 3  # names in a note; the others are counted


@dataclass(frozen=True)
class File:
    """A file to read; `stream` can be read twice (seek)."""

    name: str
    stream: ByteStream

    @classmethod
    def uploaded(cls, name: str, stream: ByteStream) -> File:
        """Return a file that is read at a pace that lets the server answer others."""
        return cls(name, PacedStream(stream))


@dataclass(frozen=True)
class Sources:
    """Files by what they hold.  Documents come as `documents`, or as `run` or `letor` with a
    `collection`; queries as `queries` or `topics`, or are named by their ids alone.
    """

    queries: File | None = None
    documents: File | None = None
    topics: File | None = None
    run: File | None = None
    letor: File | None = None
    collection: File | None = None
    golds: File | None = None
    training: File | None = None
    qrels: File | None = None  # grades of the items of lists, here or in the project
    pictures: Pictures = field(default_factory=Pictures)
    depth: int | None = None  # of a run; None: `DEPTH`


@dataclass(frozen=True)
class Bundle:
    """What the files hold."""

    queries: list[Query]
    golds: list[Known]
    training: list[Known]
    pictures: Pictures
    grades: dict[str, dict[str, int]] = field(default_factory=dict)
    graded_by: str = ""  # the file that they came in
    notes: tuple[str, ...] = ()  # what does not come in, or comes in empty


def read(sources: Sources, limits: ReadLimits = ReadLimits()) -> Bundle:  # noqa: B008 (frozen)
    """Read all files, each up to the limits."""
    found: dict[str, Query] = {}
    unread = rows.Unread()
    if sources.depth is not None and sources.run is None:
        raise DataError("depth is for a run: how many of its documents are judged; give the run.")
    if sources.queries is not None and sources.topics is not None:
        raise DataError("give the queries once: as rows, or as TREC topics.")
    if sources.queries is not None:
        found = rows.queries_from(_rows(sources.queries, limits, unread))
    if sources.topics is not None:
        found = trec.topics(sources.topics.name, sources.topics.stream, limits)
    golds = rows.golds_from(_rows(sources.golds, limits, unread)) if sources.golds else []
    training = _training(sources, limits, unread)
    found, unnamed = _named(found)
    made, notes = _documents(sources, found, limits, unread)
    notes += [*unnamed, *unread.notes(), *_empty_notes(made, training)]
    given = sources.qrels
    grades = trec.qrels(given.name, given.stream, limits) if given else {}
    if not (made or golds or training or grades):
        raise DataError(
            "there is nothing to import; give documents, golds, training questions or qrels."
        )
    graded_by = given.name if given else ""
    return Bundle(made, golds, training, sources.pictures, grades, graded_by, tuple(notes))


def _training(sources: Sources, limits: ReadLimits, unread: rows.Unread) -> list[Known]:
    file = sources.training
    if file is None:
        return []
    return rows.training_from(file.name, _rows(file, limits, unread), sources.pictures, unread)


def _empty_notes(queries: list[Query], training: list[Known]) -> Iterator[str]:
    """Yield which documents have nothing to read, and which only a title, a line each."""
    whole = [*queries, *(lesson.own for lesson in training if lesson.own is not None)]
    empty = [
        (d, f"{d.key!r} of {q.key!r}")
        for q in whole
        for d in q.documents
        if not (d.body.strip() or d.image or any((d.fields or {}).values()))
    ]
    bare = [name for document, name in empty if not document.title]
    titled = [name for document, name in empty if document.title]
    if bare:
        yield f"{len(bare):,} documents are empty, without a text or a title: {_first(bare)}."
    if titled:
        yield f"{len(titled):,} documents have a title and no text: {_first(titled)}."


def _named(found: dict[str, Query]) -> tuple[dict[str, Query], list[str]]:
    """Return the queries, those without a text with their id for it, and the note on these."""
    bare = [repr(key) for key, query in found.items() if not query.text]
    named = {key: replace(query, text=query.text or key) for key, query in found.items()}
    if not bare:
        return named, []
    return named, [f"{len(bare):,} queries have no text, so their ids are shown: {_first(bare)}."]


def _first(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN:,} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _documents(
    sources: Sources, found: dict[str, Query], limits: ReadLimits, unread: rows.Unread
) -> tuple[list[Query], list[str]]:
    """The queries with their documents, and what was left out."""
    ways = [f for f in (sources.documents, sources.run, sources.letor) if f is not None]
    if not ways:
        if found or sources.collection:
            raise DataError("there are no documents; give them, or a run or LETOR file with texts.")
        return [], []
    if len(ways) > 1:
        raise DataError("give the documents once: as rows, by a run, or by a LETOR file.")
    if sources.documents is not None:
        given = rows.documents_from(_rows(sources.documents, limits, unread), sources.pictures)
        return rows.joined(found, given), []
    texts = sources.collection
    if texts is None:
        raise DataError(f"{ways[0].name}: names documents alone; give their texts as a collection.")
    depth = (sources.depth or DEPTH) if sources.run is not None else sys.maxsize
    how = trec.run if sources.run is not None else trec.letor
    wanted = how(ways[0].name, ways[0].stream, limits)
    notes = trec.left_out(found, wanted, ways[0].name, depth)
    wanted = trec.cut(wanted, depth)
    keys = {d for q, docs in wanted.items() if not found or q in found for d in docs}
    have = trec.collection(texts.name, texts.stream, limits, keys, sources.pictures, unread)
    return trec.put_together(found, wanted, have, texts.name), notes


def _rows(file: File, limits: ReadLimits, unread: rows.Unread) -> Iterator[row_reader.LocatedRow]:
    return unread.watched(file.name, row_reader.read_rows(file.name, file.stream, limits))
