"""Documents from rows of JSON lines, CSV or Parquet.

A row of queries has an id (see `queries.py`), `text` and optionally `description` (`desc`) and
`narrative` (`narr`), which are shown together.  A row of documents has `query`, `document` and
`text` (or other names of `data/column_names.py`) or `html`, optionally `title`, `kind`, `url`,
`image` (a file name), `prior` (a score; higher is better), `fields` (of a card) or `items` (of a
list).  Other columns of a card are its fields; otherwise they are not read, and a note says so.
An item may have an integer `grade`, which is never shown; a measure can be learned from it.
Rows of known answers are gold questions about a project's documents, or practice questions with
their own texts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from firstpage.core import DataError
from firstpage.data import DOCUMENT_IDS, QUERY_NAMES, TEXT_NAMES
from firstpage.data.formats import LocatedRow
from firstpage.labeling.app.imports.pictures import Pictures
from firstpage.labeling.app.store.texts import GRADE, IDS, KINDS, DocumentRecord, QueryRecord
from firstpage.labeling.planning.tasks import format_names
from firstpage.search import Notes

DESCRIPTION = (("description", "desc"), ("narrative", "narr"))
MAX_KEY = 200  # characters
MAX_TEXT = 2_000_000  # characters
MIN_GRADE, MAX_GRADE = -9, 99


class TrackedRow(Mapping[str, Any]):
    """A row that records which of its columns are read."""

    def __init__(self, row: Mapping[str, Any]) -> None:
        self._row = row
        self._read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self._read.add(name)
        return self._row[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._row)

    def __len__(self) -> int:
        return len(self._row)

    @property
    def unread(self) -> list[str]:
        """The columns that have a value and were not read."""
        return [n for n, v in self._row.items() if n not in self._read and has_value(v)]


def has_value(value: Any) -> bool:
    """Return whether a cell has a value: NaN stands for a missing one in tables of numbers."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return not is_nan and value not in (None, "")


class FileNotes(Notes):
    """Collects each kind of correction of one file."""

    def __init__(self, messages: list[str]) -> None:
        super().__init__()
        self._messages = messages

    def report(self, message: str) -> None:
        self._messages.append(message)


class ImportNotes:
    """Collects the notes on all files: corrections, and columns that are not read."""

    def __init__(self) -> None:
        self._corrections: list[str] = []
        self._columns: dict[str, Counter[str]] = {}

    def of_file(self) -> Notes:
        """Return the notes for the corrections of one file."""
        return FileNotes(self._corrections)

    def tracked(self, source: str, rows: Iterable[LocatedRow]) -> Iterator[tuple[str, TrackedRow]]:
        """Yield the rows of a file; columns that the caller does not read are counted."""
        for location, row in rows:
            tracked = TrackedRow(row)
            yield location, tracked
            self.count(source, tracked)

    def count(self, source: str, row: TrackedRow) -> None:
        """Count the unread columns of a row."""
        self._columns.setdefault(source, Counter()).update(row.unread)

    def notes(self) -> Iterator[str]:
        """Yield the corrections, and a note per file with unread columns."""
        yield from self._corrections
        for source, columns in self._columns.items():
            if columns:
                names = format_names(
                    f"{name!r} ({count:,} rows)" for name, count in columns.items()
                )
                yield f"{source}: columns that are not read: {names}."


def description_of(location: str, row: Mapping[str, Any]) -> str:
    """Return the description of a query with its narrative, as in TREC topics."""
    texts = (first_text(location, row, names) for names in DESCRIPTION)
    return " ".join(text for text in texts if text)


def documents_from(
    rows: Iterable[LocatedRow], pictures: Pictures
) -> dict[str, list[DocumentRecord]]:
    """Return the documents of a file by query."""
    by_query: dict[str, dict[str, DocumentRecord]] = {}
    for location, row in rows:
        query = key_of(location, row, QUERY_NAMES, "query")
        document = document_from(location, row, pictures)
        documents = by_query.setdefault(query, {})
        if document.key in documents:
            raise DataError(f"{location}: duplicate document {document.key!r} of query {query!r}.")
        documents[document.key] = document
    return {query: list(documents.values()) for query, documents in by_query.items()}


def attach_documents(
    queries: Mapping[str, QueryRecord], documents: Mapping[str, list[DocumentRecord]]
) -> list[QueryRecord]:
    """Return queries with their documents; raise if a document has none of the queries given."""
    unknown = [key for key in documents if key not in queries]
    if queries and unknown:
        raise DataError(
            f"there are documents of query {unknown[0]!r}, which is not among the queries."
        )
    all_queries = queries or {key: QueryRecord(key, key) for key in documents}
    return [
        QueryRecord(q.key, q.text, q.description, tuple(documents.get(q.key, ())))
        for q in all_queries.values()
    ]


def document_from(
    location: str,
    row: Mapping[str, Any],
    pictures: Pictures,
    key: str | None = None,
    body_names: tuple[str, ...] = TEXT_NAMES,
) -> DocumentRecord:
    """Return a row as a document; without `kind` its columns determine it."""
    key = key_of(location, row, IDS, "document") if key is None else key
    picture = text_of(location, row, "image")
    kind = text_of(location, row, "kind") or _inferred_kind(row)
    if kind not in KINDS:
        raise DataError(f"{location}: kind must be one of {', '.join(KINDS)}; got {kind!r}.")
    if kind == "image" and not picture:
        raise DataError(f"{location}: an image document needs 'image', a file name.")
    body = text_of(location, row, "html") if kind == "html" else ""
    body = body or first_text(location, row, body_names)
    url = text_of(location, row, "url") or None
    return DocumentRecord(
        key,
        text_of(location, row, "title"),
        kind,
        body,
        _fields(location, row, kind),
        url,
        pictures.digest(location, picture) if picture else None,
        _prior(location, row),
    )


def _inferred_kind(row: Mapping[str, Any]) -> str:
    for name, kind in (("items", "list"), ("fields", "card"), ("image", "image"), ("html", "html")):
        if has_value(row.get(name)) and row[name]:
            return kind
    return "text"


def _fields(location: str, row: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    """Return the labels and values of a card, or the items of a list."""
    if kind == "list":
        items = row.get("items")
        if not isinstance(items, list) or not all(isinstance(i, str | dict) for i in items):
            raise DataError(
                f"{location}: a list needs 'items', strings or objects with title and text."
            )
        return {"items": [_item(location, i) for i in items]}
    if kind != "card":
        return None
    fields = row.get("fields")
    if fields is None:
        reserved = {*QUERY_NAMES, *IDS, *TEXT_NAMES, "title", "kind", "url", "image", "prior"}
        fields = {k: v for k, v in row.items() if k not in reserved and v is not None}
    if not isinstance(fields, dict):
        raise DataError(f"{location}: the fields of a card must be an object of labels and values.")
    return {
        check_text(location, "fields", str(k)): _value(location, str(k), v, nested=False)
        for k, v in fields.items()
    }


def _item(location: str, item: str | dict[str, Any]) -> dict[str, Any]:
    """Return an item of a list with all its values."""
    try:
        fields: dict[str, Any] = _value(
            location, "items", {"title": item} if isinstance(item, str) else item
        )
    except RecursionError:
        raise DataError(f"{location}: 'items' are nested too deeply; flatten them.") from None
    if fields.get(GRADE) is not None:
        fields[GRADE] = grade_of(location, fields[GRADE])
    return fields


def grade_of(location: str, value: Any) -> int:
    """Return a grade, given as a number or a string."""
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not number.is_integer() or not MIN_GRADE <= number <= MAX_GRADE:
        raise DataError(
            f"{location}: a grade must be an integer from {MIN_GRADE} to {MAX_GRADE}, or absent "
            f"for unjudged items; got {repr(value)[:40]}."
        )
    return int(number)


def _value(location: str, name: str, value: Any, nested: bool = True) -> Any:
    """Return a value of a card or list if both databases can store it."""
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(
            f"{location}: {name!r} contains {value}, which is not a number; leave it out."
        )
    if value is None or isinstance(value, bool):
        return value if nested or value is not None else "None"
    if isinstance(value, int | float):
        return _number(location, name, value)
    if nested and isinstance(value, dict):
        return {
            check_text(location, name, str(k)): _value(location, name, v) for k, v in value.items()
        }
    if nested and isinstance(value, list):
        return [_value(location, name, v) for v in value]
    return check_text(location, name, str(value))


def _number(location: str, name: str, value: float) -> float:
    if abs(value) >= 10**300:  # beyond it other programs may read infinity
        raise DataError(
            f"{location}: {name!r} contains a number that is too large; write it as a string."
        )
    return value


def _prior(location: str, row: Mapping[str, Any]) -> float | None:
    value = row.get("prior")
    if value is None or value == "":
        return None
    try:
        prior = float(value)
    except (TypeError, ValueError, OverflowError):
        prior = math.nan
    if not math.isfinite(prior):
        shown = repr(value)[:40]
        raise DataError(f"{location}: prior must be a number (higher is better); got {shown}.")
    return prior


def key_of(location: str, row: Mapping[str, Any], names: tuple[str, ...], noun: str) -> str:
    """Return the id in the first of these columns that the row has."""
    value = next((row[name] for name in names if has_value(row.get(name))), None)
    return check_identifier(location, value, noun if noun in names else names[0], noun)


def check_identifier(location: str, value: Any, name: str, noun: str) -> str:
    """Return an id without blanks around it, if databases and files of all formats can store it."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # numeric ids of tables
    not_finite = isinstance(value, float) and not math.isfinite(value)
    if value is None or not_finite or isinstance(value, bool | dict | list):
        raise DataError(f"{location}: the id of the {noun} is missing; name its column {name!r}.")
    text = check_text(location, name, str(value), MAX_KEY).strip()
    if not text:
        raise DataError(f"{location}: the id of the {noun} is empty.")
    control = next((c for c in text if c < " " or c in "\x7f\x85\u2028\u2029"), None)
    if control is not None:
        raise DataError(
            f"{location}: the id of the {noun} contains the character {control!r}; ids are texts "
            "without tabs and line ends."
        )
    return text


def text_of(location: str, row: Mapping[str, Any], name: str) -> str:
    """Return a text of a row; empty if it has none."""
    value = row.get(name)
    if not has_value(value):
        return ""
    if isinstance(value, dict | list):
        raise DataError(f"{location}: {name!r} must be a string; got a {type(value).__name__}.")
    return check_text(location, name, str(value))


def first_text(location: str, row: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the text in the first of these columns that has one; the others are not read."""
    return next((text for name in names if (text := text_of(location, row, name))), "")


def check_text(location: str, name: str, text: str, max_length: int = MAX_TEXT) -> str:
    """Return a text if it is not too long and both databases can store it."""
    if len(text) > max_length:
        raise DataError(
            f"{location}: {name!r} has {len(text):,} characters; at most {max_length:,} are "
            "allowed."
        )
    if "\x00" in text:
        raise DataError(f"{location}: {name!r} contains the character NUL; remove it.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(f"{location}: {name!r} contains a lone surrogate; remove it.") from None
    return text


INTEGER = re.compile(r"[+-]?[0-9]{1,9}")
OUTCOMES = {"left": 1, "right": -1, "tie": 0, "equal": 0}


@dataclass(frozen=True)
class KnownAnswer:
    """A question with its answer; a practice question has its own query."""

    location: str
    query: str
    left: str
    right: str | None
    outcome: int
    explanation: str
    query_record: QueryRecord | None = None


def gold_questions_from(
    rows: Iterable[LocatedRow], grades: Sequence[str], outcomes: Sequence[int]
) -> list[KnownAnswer]:
    """Return gold questions.

    `grades` are the names of the project's grades, worst first, and `outcomes` those of a
    comparison that it offers.

    Columns: `query`, `left`, `right` (documents), `outcome` (1, 0, -1) or `grade`, `explanation`.
    """
    gold_questions = []
    for location, row in rows:
        graded = not has_value(row.get("right"))
        right = None if graded else key_of(location, row, ("right",), "document")
        gold_questions.append(
            KnownAnswer(
                location,
                key_of(location, row, QUERY_NAMES, "query"),
                key_of(location, row, ("left", *DOCUMENT_IDS), "document"),
                right,
                _answer(location, row, right is None, grades, outcomes),
                text_of(location, row, "explanation"),
            )
        )
    return gold_questions


def training_from(
    source: str,
    rows: Iterable[LocatedRow],
    pictures: Pictures,
    reading: ImportNotes,
    grades: Sequence[str],
    outcomes: Sequence[int],
) -> list[KnownAnswer]:
    """Return practice questions; `grades` and `outcomes` as for `gold_questions_from`.

    Columns: `text` (the query), `left` and `right` (texts, or objects like documents), `outcome` or
    `grade`, `explanation`.
    """
    questions = []
    for number, (location, row) in enumerate(rows, 1):
        key = f"training {number}"
        sides = []
        for side in ("left", "right"):
            value = row.get(side)
            if has_value(value) and value:
                tracked = TrackedRow(value if isinstance(value, dict) else {"text": value})
                sides.append(document_from(location, tracked, pictures, side))
                reading.count(source, tracked)
        if not sides or sides[0].key != "left":
            raise DataError(f"{location}: a practice question needs 'left', a string or an object.")
        query = QueryRecord(
            key,
            first_text(location, row, ("text", "query")),
            description_of(location, row),
            tuple(sides),
        )
        right = "right" if len(sides) == 2 else None
        questions.append(
            KnownAnswer(
                location,
                key,
                "left",
                right,
                _answer(location, row, right is None, grades, outcomes),
                text_of(location, row, "explanation"),
                query,
            )
        )
    return questions


def _answer(
    location: str,
    row: Mapping[str, Any],
    graded: bool,
    grades: Sequence[str],
    outcomes: Sequence[int],
) -> int:
    """Return a grade, by its number or name, or the answer to a comparison that is offered."""
    name, words = "outcome", OUTCOMES
    low, high = min(outcomes), max(outcomes)
    if graded:
        name, words = "grade", {word.lower(): i for i, word in enumerate(grades)}
        low, high = 0, len(grades) - 1
    given = row.get(name, row.get("outcome"))
    value = given
    if isinstance(given, str):
        text = given.strip().lower()
        value = words.get(text, int(text) if INTEGER.fullmatch(text) else None)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise DataError(
            f"{location}: {name} must be an integer from {low} to {high}, or one of "
            f"{', '.join(words)}; got {repr(given)[:40]}."
        )
    if not graded and value not in outcomes:
        raise DataError(
            f"{location}: the outcome is {value}, and this project offers no tie; allow ties, or "
            "leave the question out."
        )
    return value
