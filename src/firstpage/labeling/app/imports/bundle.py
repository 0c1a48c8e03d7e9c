"""The files of one import, read before anything is written."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from firstpage.core import DataError
from firstpage.data.formats import ByteStream, ReadLimits, row_reader
from firstpage.labeling.app.imports import collection, rows, runs
from firstpage.labeling.app.imports.formats import format_of
from firstpage.labeling.app.imports.pictures import Pictures
from firstpage.labeling.app.imports.queries import read_queries
from firstpage.labeling.app.imports.rows import KnownAnswer
from firstpage.labeling.app.sanitize import plain_text
from firstpage.labeling.app.store.scales import DEFAULT_NAMES
from firstpage.labeling.app.store.texts import DocumentRecord, QueryRecord

if TYPE_CHECKING:
    from firstpage.search import Index

MAX_PAUSE = 0.1  # seconds
MAX_SHELL = 5_000  # characters of a page without text; parsing all long pages would take minutes


class PacedStream:
    """A binary stream that pauses before each read for as long as its reader worked since the last.

    The threads of a server share one interpreter.  A reader that never pauses occupies half of it,
    and every answer, which passes between threads some twenty times, waits for it each time.
    """

    def __init__(
        self,
        stream: ByteStream,
        pause: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
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


DEFAULT_DEPTH = 50  # documents per query of runs and of an index
DEFAULT_PAGE = 10  # documents of a page of results
MAX_NAMES = 3  # in a note; the others are counted


@dataclass(frozen=True)
class File:
    """A file to read: a seekable stream, and the path of a local collection of any size."""

    name: str
    stream: ByteStream
    path: Path | None = None

    @classmethod
    def uploaded(cls, name: str, stream: ByteStream) -> File:
        """Return a file that is read with pauses, so that the server can answer other requests."""
        return cls(name, PacedStream(stream))

    @classmethod
    def local_collection(cls, path: Path) -> File:
        """Return a local file or folder of documents, which the text package reads."""
        return cls(str(path), io.BytesIO(), path)


@dataclass(frozen=True)
class Sources:
    """The files of an import by content.

    Documents come as `documents`, as `runs` or a `letor` file with a `collection` or an `index`, or
    as candidates of an `index`; queries as `queries` or `topics`, or only as ids.

    Attributes
    ----------
    queries, documents, topics, letor, gold_questions, training : File or None
        Files by content.
    runs : tuple of File
        Runs, whose documents are pooled.
    collection : File or None
        The texts of documents.
    qrels : File or None
        Grades of the items of lists, here or in the project.
    index : Index or None
        An index, with texts and candidates.
    pictures : Pictures
        The images that documents name.
    depth : int or None
        Documents per query of runs and index; None: `DEFAULT_DEPTH`, or `DEFAULT_PAGE` of pages.
    pool : str
        How runs are pooled; see `firstpage.labeling.pooling`.
    seed : int
        The seed of samples.
    pages : bool
        Whether the first documents of each run become one list, to compare lists.
    first : int or None
        The number of queries that are taken from the beginning; None: all.
    query_format : str or None
        The format of `queries`; None: it is recognized.
    ordinal : bool
        Whether queries are numbered in their order.
    grade_names : tuple of str
        The grades of the project, worst first, for gold and training questions.
    outcomes : tuple of int
        The outcomes of a comparison that the project offers, for gold and training questions.
    """

    queries: File | None = None
    documents: File | None = None
    topics: File | None = None
    runs: tuple[File, ...] = ()
    letor: File | None = None
    collection: File | None = None
    gold_questions: File | None = None
    training: File | None = None
    qrels: File | None = None
    index: Index | None = None
    pictures: Pictures = field(default_factory=Pictures)
    depth: int | None = None
    pool: str = "depth"
    seed: int = 0
    pages: bool = False
    first: int | None = None
    query_format: str | None = None
    ordinal: bool = False
    grade_names: tuple[str, ...] = DEFAULT_NAMES
    outcomes: tuple[int, ...] = (-1, 0, 1)


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
    _check(sources)
    reading = rows.ImportNotes()
    queries = _queries(sources, limits, reading)
    gold_questions = (
        rows.gold_questions_from(
            _rows(sources.gold_questions, limits, reading), sources.grade_names, sources.outcomes
        )
        if sources.gold_questions
        else []
    )
    training = _training(sources, limits, reading)
    queries, name_notes = _with_texts(queries)
    imported, notes = _documents(sources, queries, limits, reading)
    notes += [*name_notes, *reading.notes(), *_empty_notes(imported, training)]
    qrels = sources.qrels
    grades = runs.item_grades(qrels.name, qrels.stream, limits, notes) if qrels else {}
    if not (imported or gold_questions or training or grades):
        raise DataError(
            "there is nothing to import; give documents, gold questions, training questions or "
            "qrels."
        )
    graded_by = qrels.name if qrels else ""
    return Bundle(
        imported, gold_questions, training, sources.pictures, grades, graded_by, tuple(notes)
    )


def _check(sources: Sources) -> None:
    """Refuse combinations of files of which some would not be used."""
    named = [f for f in (sources.documents, sources.letor) if f is not None]
    if len(named) + bool(sources.runs) > 1:
        raise DataError("give the documents only once: as rows, by runs, or by a LETOR file.")
    if sources.depth is not None and not (sources.runs or (sources.index and not named)):
        raise DataError(
            "depth applies only to a run or the candidates of an index (the documents of it to "
            "judge); give the run too."
        )
    if sources.queries is not None and sources.topics is not None:
        raise DataError("give the queries either as rows or as TREC topics, not both.")
    if sources.index is not None and sources.collection is not None:
        raise DataError("give the texts once: by a collection or by an index.")
    if sources.documents is not None and sources.collection is not None:
        raise DataError(
            "a collection has the texts of runs or a LETOR file, and documents have their own; "
            "leave one of them out."
        )
    if sources.pages and len(sources.runs) == 1:
        raise DataError("pages of one run cannot be compared; give two runs or more.")


def _queries(
    sources: Sources, limits: ReadLimits, reading: rows.ImportNotes
) -> dict[str, QueryRecord]:
    if sources.topics is not None:
        name, stream = sources.topics.name, sources.topics.stream
        return read_queries(name, stream, limits, reading, format_of(name, stream, limits) or "tsv")
    if sources.queries is None:
        return {}
    file = sources.queries
    return read_queries(
        file.name, file.stream, limits, reading, sources.query_format, sources.ordinal
    )


def _training(sources: Sources, limits: ReadLimits, reading: rows.ImportNotes) -> list[KnownAnswer]:
    file = sources.training
    if file is None:
        return []
    return rows.training_from(
        file.name,
        _rows(file, limits, reading),
        sources.pictures,
        reading,
        sources.grade_names,
        sources.outcomes,
    )


def _empty_notes(queries: list[QueryRecord], training: list[KnownAnswer]) -> Iterator[str]:
    """Yield notes on documents without content, and on those with only a title."""
    practice = [q.query_record for q in training if q.query_record is not None]
    all_queries = [*queries, *practice]
    empty = [
        (d, f"{d.key!r} of {q.key!r}")
        for q in all_queries
        for d in q.documents
        if not (_shows_text(d) or d.image or any((d.fields or {}).values()))
    ]
    untitled = [name for document, name in empty if not document.title]
    titled = [name for document, name in empty if document.title]
    if untitled:
        yield f"{len(untitled):,} documents have no text and no title: {_first(untitled)}."
    if titled:
        yield f"{len(titled):,} documents have a title but no text: {_first(titled)}."


def _shows_text(document: DocumentRecord) -> bool:
    """Return whether a document has text; a page whose scripts would write it has none."""
    body = document.body
    if document.kind != "html" or len(body) > MAX_SHELL or "<img" in body.lower():
        return bool(body.strip())
    return bool(plain_text(body))


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
    sources: Sources, queries: dict[str, QueryRecord], limits: ReadLimits, reading: rows.ImportNotes
) -> tuple[list[QueryRecord], list[str]]:
    """Return the queries with their documents, and notes on what is omitted."""
    if sources.documents is not None:
        documents = rows.documents_from(_rows(sources.documents, limits, reading), sources.pictures)
        queries, documents, notes = _first_queries(sources, queries, documents)
        records = rows.attach_documents(queries, documents)
        return records, [*notes, *_unindexed_notes(sources.index, records)]
    if not (sources.runs or sources.letor):
        return _candidates(sources, queries)
    lookup, source = _text_lookup(sources, limits, reading)
    if sources.letor is not None:
        pool = runs.letor_documents(sources.letor.name, sources.letor.stream, limits)
        queries, pool, notes = _first_queries(sources, queries, pool)
        notes += runs.omission_notes(queries, pool, sources.letor.name)
        return runs.join_documents(queries, pool, lookup, source), notes
    notes = []
    ranked = [
        runs.RunDocuments(
            runs.run_name(f.name), f.name, runs.run_documents(f.name, f.stream, limits, notes)
        )
        for f in sources.runs
    ]
    runs.check_names(ranked)
    queries, ranked, omitted = _first_of_runs(sources, queries, ranked)
    notes += omitted
    if sources.pages:
        depth = sources.depth or DEFAULT_PAGE
        records, more = runs.pages(queries, ranked, lookup, source, depth)
        return records, notes + more
    depth = sources.depth or DEFAULT_DEPTH
    pool = runs.pooled(ranked, depth, sources.pool, sources.seed)
    name = ranked[0].source if len(ranked) == 1 else f"the pool of {len(ranked)} runs"
    notes += runs.omission_notes(queries, pool, name)
    notes += runs.depth_notes(queries, ranked, name, depth, sources.pool)
    return runs.join_documents(queries, pool, lookup, source, ranked), notes


def _candidates(
    sources: Sources, queries: dict[str, QueryRecord]
) -> tuple[list[QueryRecord], list[str]]:
    """Return the queries with candidates of the index."""
    index = sources.index
    if index is None:
        if queries or sources.collection:
            raise DataError(
                "there are no documents; give them as rows, a run or LETOR file with texts, or an "
                "index."
            )
        return [], []
    if not queries:
        raise DataError(f"{index.path}: give the queries whose candidates are judged.")
    queries, _, notes = _first_queries(sources, queries, {})
    pool = runs.candidates(index, queries, sources.depth or DEFAULT_DEPTH)
    notes += runs.omission_notes(queries, pool, str(index.path))
    lookup = partial(collection.from_index, index)
    return runs.join_documents(queries, pool, lookup, str(index.path)), notes


def _text_lookup(
    sources: Sources, limits: ReadLimits, reading: rows.ImportNotes
) -> tuple[runs.TextLookup, str]:
    """Return how the texts of documents are found, and the name of their source."""
    if sources.index is not None:
        return partial(collection.from_index, sources.index), str(sources.index.path)
    file, pictures = sources.collection, sources.pictures
    if file is None:
        named = sources.runs[0] if sources.runs else sources.letor
        assert named is not None
        raise DataError(
            f"{named.name}: contains only document ids; give their texts as a collection or by an "
            "index."
        )
    if file.path is not None:
        path = file.path
        return lambda keys: collection.from_path(path, keys, pictures, reading), file.name
    return (
        lambda keys: collection.from_stream(
            file.name, file.stream, limits, keys, pictures, reading
        ),
        file.name,
    )


Content = TypeVar("Content")


def _first_queries(
    sources: Sources, queries: dict[str, QueryRecord], documents: dict[str, Content]
) -> tuple[dict[str, QueryRecord], dict[str, Content], list[str]]:
    """Return the first queries, the documents without those of the others, and a note."""
    every = list(queries or documents)
    limit = len(every) if sources.first is None else sources.first
    dropped = set(every[limit:])
    if not dropped:
        return queries, documents, []
    return (
        {key: query for key, query in queries.items() if key not in dropped},
        {key: content for key, content in documents.items() if key not in dropped},
        [f"the first {limit:,} of {len(every):,} queries are imported."],
    )


def _first_of_runs(
    sources: Sources, queries: dict[str, QueryRecord], ranked: list[runs.RunDocuments]
) -> tuple[dict[str, QueryRecord], list[runs.RunDocuments], list[str]]:
    """Return the first queries, and the runs without the others."""
    every = dict.fromkeys(query for run in ranked for query in run.pool)
    chosen, remaining, notes = _first_queries(sources, queries, every)
    if not notes:
        return queries, ranked, notes
    shortened = [
        replace(run, pool={query: docs for query, docs in run.pool.items() if query in remaining})
        for run in ranked
    ]
    return chosen, shortened, notes


def _unindexed_notes(index: Index | None, queries: list[QueryRecord]) -> Iterator[str]:
    """Yield a note on documents that the index of the project does not contain."""
    if index is None:
        return
    keys = dict.fromkeys(d.key for query in queries for d in query.documents)
    missing = [repr(key) for key in keys if key not in index.forward.row_of]
    if missing:
        yield (
            f"{len(missing):,} of {len(keys):,} documents are not in {index.path}, and will have "
            f"no features: {_first(missing)}."
        )


def _rows(
    file: File, limits: ReadLimits, reading: rows.ImportNotes
) -> Iterator[row_reader.LocatedRow]:
    return reading.tracked(file.name, row_reader.read_rows(file.name, file.stream, limits))
