"""Queries: JSON lines, tables, Parquet, TREC topics, SMART, NPL, or a query per line."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from firstpage.core import Advice, DataError, location
from firstpage.data import QUERY_IDS, ROW_IDS
from firstpage.data.formats import NO_LIMITS, LocatedRow, read_csv_rows, read_json_rows, read_lines
from firstpage.data.io import open_bytes
from firstpage.search.npl import npl_records
from firstpage.search.smart import smart_records
from firstpage.search.sources import (
    PEEK_BYTES,
    Notes,
    check_choice,
    clean,
    identifier,
    key_among,
    read_old_lines,
    read_parquet,
    recognize,
)
from firstpage.search.trec_text import TOPIC_PARTS, trec_topics

FORMATS = {
    "jsonl": "JSON lines: .jsonl, .ndjson",
    "csv": "a table with a header: .csv",
    "tsv": "a table with a header, or lines of id, tab and text: .tsv",
    "parquet": ".parquet",
    "trec": "TREC topics: <top> <num> <title>",
    "smart": "SMART: .I .W",
    "npl": "NPL: a number, the text, a line of /",
    "lines": "a query per line",
}
QUERY_ID_KEYS = (*ROW_IDS, *QUERY_IDS)
TEXT_KEYS = ("text", "query", "title")
LABELING_KEYS = {"query", "text"}  # the id and the text in files of labeling projects
NUMBERINGS = ("ids", "ordinal")
ORDINAL = Advice("Or number the queries with {}.", "numbering", "ordinal")
TABLES = ("csv", "tsv", "parquet")  # whose rows are read without empty cells


@dataclass(frozen=True, repr=False)
class Queries:
    """Queries: texts with ids.

    Parameters
    ----------
    ids : sequence of str
        The id of each query; ids are unique.
    texts : sequence of str
        The text of each query; an empty one has no candidates.
    source : str, default=""
        The file that the queries were read from.

    Raises
    ------
    DataError
        If the lengths do not agree, or an id is not valid or occurs twice.

    Examples
    --------
    >>> from firstpage.search.queries import Queries
    >>> queries = Queries.from_mapping({"q1": "red shoes", "q2": "rain coat"})
    >>> queries
    Queries(2: 'q1', 'q2')
    >>> for query, text in queries:
    ...     print(query, text)
    q1 red shoes
    q2 rain coat
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    source: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", tuple(self.ids))
        object.__setattr__(self, "texts", tuple(self.texts))
        if len(self.ids) != len(self.texts):
            raise DataError(
                f"There are {len(self.ids)} ids of queries and {len(self.texts)} texts."
            )
        seen: set[str] = set()
        for query, text in self:
            if not isinstance(text, str):
                raise DataError(
                    f"The text of query {query!r} must be a string; got {type(text).__name__}."
                )
            if not isinstance(query, str) or identifier(query, f"query {query!r}") != query:
                raise DataError(f"The id of a query is a text without blanks around it: {query!r}.")
            if query in seen:
                raise DataError(f"The query id {query!r} occurs twice; ids must be unique.")
            seen.add(query)

    @classmethod
    def from_mapping(cls, texts: Mapping[str, str], source: str = "") -> Queries:
        """Return the queries of a mapping from id to text.

        Parameters
        ----------
        texts : mapping of str to str
            The text of each query by its id.
        source : str, default=""
            Where the queries come from, for messages.

        Returns
        -------
        Queries
            The queries in the order of the mapping.
        """
        return cls(tuple(texts), tuple(texts.values()), source)

    @classmethod
    def from_list(cls, texts: Iterable[str], source: str = "") -> Queries:
        """Return queries with the ids "1", "2" and so on.

        Parameters
        ----------
        texts : iterable of str
            The text of each query.
        source : str, default=""
            Where the queries come from, for messages.

        Returns
        -------
        Queries
            The queries in the order of the texts.
        """
        texts = tuple(texts)
        return cls(tuple(str(number) for number in range(1, len(texts) + 1)), texts, source)

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.ids, self.texts, strict=True)

    def __repr__(self) -> str:
        shown = ", ".join(repr(query) for query in self.ids[:3])
        colon = ": " if shown else ""
        return f"Queries({len(self)}{colon}{shown}{', ..' if len(self) > 3 else ''})"


def read_queries(
    path: str | os.PathLike[str],
    format: str | None = None,
    numbering: Literal["ids", "ordinal"] = "ids",
    topic_parts: Sequence[str] = ("title",),
) -> Queries:
    """Return the queries of a file.

    Read are JSON lines, tables (CSV, TSV), Parquet, TREC topics, SMART and NPL, all of them also
    compressed (.gz, .xz, .zst).  The id of a query is its `id`, `_id`, `qid` or `query_id`, its
    text the `text`, `query` or `title`, in this order and in any case.  If it has a `text` and none
    of these ids, its id is its `query`.  A .tsv file whose first line names no id has lines of id,
    tab and text.

    Parameters
    ----------
    path : path
        The file.
    format : {"jsonl", "csv", "tsv", "parquet", "trec", "smart", "npl", "lines"}, optional
        The format; by default it is recognized by the suffix or the first bytes.  Plain text with a
        query per line is read with `"lines"` only; the id is the number of the line.
    numbering : {"ids", "ordinal"}, default="ids"
        Whether queries have the ids of the file, or are numbered "1", "2" and so on, as the
        judgments of some old collections (Cranfield) number them.
    topic_parts : sequence of str, default=("title",)
        The parts of a TREC topic that make up the text: "title", "desc" (or "description"), "narr"
        (or "narrative") or any other tag.

    Returns
    -------
    Queries
        The queries in the order of the file.  Queries without text are among them; a warning names
        the first.

    Raises
    ------
    DataError
        If the file cannot be read, its format is not recognized, a query has no id or text, or an
        id occurs twice; the message names the file and line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from firstpage.search.queries import read_queries
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "cran.qry"
    >>> _ = path.write_text(".I 001\\n.W\\nheated aircraft\\n.I 004\\n.W\\nheat in slabs\\n")
    >>> dict(read_queries(path))
    {'001': 'heated aircraft', '004': 'heat in slabs'}
    >>> read_queries(path, numbering="ordinal").ids
    ('1', '2')
    """
    path = Path(path)
    if format is not None:
        check_choice("format", format, FORMATS)
    check_choice("numbering", numbering, NUMBERINGS)
    if isinstance(topic_parts, str):
        topic_parts = (topic_parts,)
    notes = Notes()
    located: dict[str, str] = {}  # where each id stands
    texts: list[str] = []
    empty: list[str] = []
    with open_bytes(path) as (stream, _):
        format = format or recognize(path, stream, FORMATS, "queries")
        rows = list(_rows(path, stream, format, topic_parts, notes))
    if not rows:
        raise DataError(f"{path}: contains no queries.")
    if format in TABLES:
        rows = _completed(rows)
    for where, row in rows:
        raw_id, text = _id_and_text(where, row, numbering, notes)
        query = str(len(texts) + 1) if numbering == "ordinal" else identifier(raw_id, where)
        if query in located:
            raise DataError(
                f"{where}: the query id {query!r} occurs also in {located[query]}; ids must be "
                "unique: rename one.",
                ORDINAL,
            )
        located[query] = where
        texts.append(clean(text, where, notes).strip())
        if not texts[-1]:
            empty.append(query)
    if empty:
        notes.once(
            "empty",
            f"{path}: {len(empty):,} of {len(texts):,} queries have no text and so no candidates; "
            f"the first is {empty[0]!r} ({located[empty[0]]}).",
        )
    return Queries(tuple(located), tuple(texts), str(path))


def _rows(
    path: Path, stream: Any, format: str, topic_parts: Sequence[str], notes: Notes
) -> Iterator[LocatedRow]:
    name = str(path)
    if format == "jsonl":
        return read_json_rows(name, stream, NO_LIMITS)
    if format == "parquet":
        return read_parquet(path, stream)
    if format == "smart":
        return smart_records(name, read_old_lines(name, stream, notes), notes)
    if format == "npl":
        return npl_records(name, read_old_lines(name, stream, notes))
    if format == "trec":
        topics = trec_topics(name, read_old_lines(name, stream, notes), notes)
        return _topic_rows(topics, topic_parts)
    if format == "lines":
        numbered = read_lines(name, stream, NO_LIMITS)
        return ((location(name, n), {"id": n, "text": line}) for n, line in numbered)
    if format == "tsv" and _has_no_header(bytes(stream.peek(PEEK_BYTES))):
        return _id_tab_text(name, stream)
    return read_csv_rows(name, stream, NO_LIMITS)


def _has_no_header(head: bytes) -> bool:
    """Return whether the first line of a file is an id, a tab and a text."""
    first = next(
        (line for line in head.decode("utf-8", "replace").splitlines() if line.strip()), ""
    )
    cells = {cell.strip(' "\ufeff').casefold() for cell in first.split("\t")}
    return "\t" in first and not cells & set(QUERY_ID_KEYS) and not cells >= LABELING_KEYS


def _id_tab_text(name: str, stream: Any) -> Iterator[LocatedRow]:
    """Yield the rows of a table without header, where quotes are part of the text (MS MARCO)."""
    for number, line in read_lines(name, stream, NO_LIMITS):
        if line.strip():
            cells = line.split("\t")
            if len(cells) != 2:
                raise DataError(
                    f"{location(name, number)}: has {len(cells)} cells; lines of a table without "
                    "header are an id, a tab and a text. A header names an id and a text."
                )
            yield location(name, number), {"id": cells[0], "text": cells[1]}


def _completed(rows: Sequence[LocatedRow]) -> list[LocatedRow]:
    """Return rows of a table with None in the cells that are empty."""
    columns = dict.fromkeys(column for _, row in rows for column in row)
    return [(where, {column: row.get(column) for column in columns}) for where, row in rows]


def _topic_rows(topics: Iterable[LocatedRow], parts: Sequence[str]) -> Iterator[LocatedRow]:
    """Yield the number of each topic as its id, and the wanted parts as its text."""
    for where, topic in topics:
        tags = [TOPIC_PARTS.get(part, part) for part in parts]
        missing = next((tag for tag in tags if tag not in topic), None)
        if missing is not None:
            raise DataError(
                f"{where}: the topic has no <{missing}>; it has {', '.join(topic) or 'no tags'}. "
                "Name others in topic_parts."
            )
        row = {"text": " ".join(filter(None, (topic[tag] for tag in tags)))}
        yield where, ({"id": topic["num"], **row} if "num" in topic else row)


def _id_and_text(
    where: str, row: Mapping[str, Any], numbering: str, notes: Notes
) -> tuple[object, str]:
    """Return the id and the text of a query."""
    id_key, text_key = key_among(row, QUERY_ID_KEYS), key_among(row, TEXT_KEYS)
    if id_key is None and text_key is not None and text_key.casefold() == "text":
        id_key = key_among(row, ["query"])
    raw_id = None if id_key is None else row[id_key]
    if raw_id is None and numbering == "ids":
        raise DataError(
            f"{where}: the query has no id; give it one of {', '.join(QUERY_ID_KEYS)}.", ORDINAL
        )
    if text_key is None:
        raise DataError(f"{where}: the query has no text; give it one of {', '.join(TEXT_KEYS)}.")
    text = row[text_key]
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        text = identifier(text, where)
    if text is not None and not isinstance(text, str):
        raise DataError(
            f"{where}: the text of the query must be a string; got {type(text).__name__}."
        )
    others = [name for name in row if name not in (id_key, text_key)]
    if others:
        shown = ", ".join(repr(name) for name in others[:5]) + (", .." if len(others) > 5 else "")
        notes.once("others", f"{where}: only {text_key!r} is the query; not read: {shown}.")
    return raw_id, text or ""
