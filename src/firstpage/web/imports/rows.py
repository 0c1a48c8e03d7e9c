"""Rows of tables, from JSON lines or CSV or Parquet, as queries and documents.

A row of queries has `query` (its id; also `qid`, `query_id`, `id`), `text` and perhaps
`description` (`desc`) and `narrative` (`narr`), which are shown together.  A row of documents has
`query`, `document` (`docid`, `doc_id`, `id`) and `text` (`body`, `content`, `contents`) or `html`,
perhaps `title`, `kind`, `url`, `image` (a file's name), `prior` (a score; bigger is better),
`fields` (of a card) or `items` (of a list).  What else a row has is a field of its card; other
columns are not read, which a note says.
An item may have a `grade`, a whole number: never shown, but a measure can be learned from it.
Rows of known answers are gold questions about a project's documents, or training with own texts.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from firstpage.data.formats.row_reader import LocatedRow
from firstpage.errors import DataError
from firstpage.labeling.planning.tasks import listed
from firstpage.labeling.strategies.exhaustive import GRADES
from firstpage.web.imports.pictures import Pictures
from firstpage.web.store.texts import GRADE, IDS, KINDS, Document, Query

QUERY = ("query", "qid", "query_id", "queryid", "topic")
DOCUMENT = IDS
BODY = ("text", "body", "content", "contents")
DESCRIPTION = (("description", "desc"), ("narrative", "narr"))
LONGEST_KEY = 200
LONGEST_TEXT = 2_000_000
LOWEST, HIGHEST = -9, 99  # grades


class WatchedRow(Mapping[str, Any]):
    """A row that notes which of its columns are read."""

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
        """The columns that hold something and were not read."""
        return [n for n, v in self._row.items() if n not in self._read and v not in (None, "")]


class Unread:
    """The columns of all files that nothing reads."""

    def __init__(self) -> None:
        self._columns: dict[str, Counter[str]] = {}

    def watched(self, source: str, rows: Iterable[LocatedRow]) -> Iterator[tuple[str, WatchedRow]]:
        """Yield the rows of a file; what a row's reader has not read by the next one is counted."""
        for where, row in rows:
            watched = WatchedRow(row)
            yield where, watched
            self.count(source, watched)

    def count(self, source: str, row: WatchedRow) -> None:
        self._columns.setdefault(source, Counter()).update(row.unread)

    def notes(self) -> Iterator[str]:
        """Yield a line for each file."""
        for source, columns in self._columns.items():
            if columns:
                names = listed(f"{name!r} ({count:,} rows)" for name, count in columns.items())
                yield f"{source}: columns that are not read: {names}."


def queries_from(rows: Iterable[LocatedRow]) -> dict[str, Query]:
    """The queries of a file, by id; one may be without a text."""
    found: dict[str, Query] = {}
    for where, row in rows:
        key = key_of(where, row, (*QUERY, "id"), "query")
        if key in found:
            raise DataError(f"{where}: a second query {key!r}; give each once.")
        text = first_text(where, row, ("text", "title"))
        found[key] = Query(key, text, description_of(where, row))
    return found


def description_of(where: str, row: Mapping[str, Any]) -> str:
    """Return the description of a query with its narrative, as TREC topics have them."""
    parts = (first_text(where, row, names) for names in DESCRIPTION)
    return " ".join(part for part in parts if part)


def documents_from(rows: Iterable[LocatedRow], pictures: Pictures) -> dict[str, list[Document]]:
    """The documents of a file, by query."""
    found: dict[str, dict[str, Document]] = {}
    for where, row in rows:
        query = key_of(where, row, QUERY, "query")
        made = document_from(where, row, pictures)
        mine = found.setdefault(query, {})
        if made.key in mine:
            raise DataError(f"{where}: a second document {made.key!r} of query {query!r}.")
        mine[made.key] = made
    return {query: list(mine.values()) for query, mine in found.items()}


def joined(found: Mapping[str, Query], documents: Mapping[str, list[Document]]) -> list[Query]:
    """Queries with their documents; documents of no query are refused, if queries were given."""
    strange = [key for key in documents if key not in found]
    if found and strange:
        raise DataError(
            f"there are documents of query {strange[0]!r}, which the queries do not have."
        )
    everyone = found or {key: Query(key, key) for key in documents}
    return [
        Query(q.key, q.text, q.description, tuple(documents.get(q.key, ())))
        for q in everyone.values()
    ]


def document_from(
    where: str, row: Mapping[str, Any], pictures: Pictures, key: str | None = None
) -> Document:
    """One row as a document; its kind is given, or follows from what it has."""
    key = key_of(where, row, DOCUMENT, "document") if key is None else key
    picture = text_of(where, row, "image")
    kind = text_of(where, row, "kind") or _guessed(row)
    if kind not in KINDS:
        raise DataError(f"{where}: kind is one of {', '.join(KINDS)}; got {kind!r}.")
    if kind == "image" and not picture:
        raise DataError(f"{where}: an image needs 'image', the name of its file.")
    body = text_of(where, row, "html") if kind == "html" else ""
    body = body or first_text(where, row, BODY)
    url = text_of(where, row, "url") or None
    return Document(
        key, text_of(where, row, "title"), kind, body, _fields(where, row, kind), url,
        pictures.digest(where, picture) if picture else None, _prior(where, row),
    )  # fmt: skip


def _guessed(row: Mapping[str, Any]) -> str:
    for name, kind in (("items", "list"), ("fields", "card"), ("image", "image"), ("html", "html")):
        if row.get(name):
            return kind
    return "text"


def _fields(where: str, row: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    """Labels and values of a card; the items of a list, each a text or {title, text, url}."""
    if kind == "list":
        items = row.get("items")
        if not isinstance(items, list) or not all(isinstance(i, str | dict) for i in items):
            raise DataError(f"{where}: a list needs 'items', texts or objects with title and text.")
        return {"items": [_item(where, i) for i in items]}
    if kind != "card":
        return None
    fields = row.get("fields")
    if fields is None:
        known = {*QUERY, *DOCUMENT, *BODY, "title", "kind", "url", "image", "prior"}
        fields = {k: v for k, v in row.items() if k not in known and v is not None}
    if not isinstance(fields, dict):
        raise DataError(f"{where}: the fields of a card are an object of labels and values.")
    return {
        checked(where, "fields", str(k)): _value(where, str(k), v, nested=False)
        for k, v in fields.items()
    }


def _item(where: str, item: str | dict[str, Any]) -> dict[str, Any]:
    """One of a list, whatever else than title and text it has."""
    try:
        found: dict[str, Any] = _value(
            where, "items", {"title": item} if isinstance(item, str) else item
        )
    except RecursionError:
        raise DataError(f"{where}: 'items' are nested too deeply; flatten them.") from None
    if found.get(GRADE) is not None:
        found[GRADE] = grade_of(where, found[GRADE])
    return found


def grade_of(where: str, value: Any) -> int:
    """A grade, as it is written or as tables hold whole numbers."""
    try:
        number = float(value) if isinstance(value, int | float | str) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if isinstance(value, bool) or not number.is_integer() or not LOWEST <= number <= HIGHEST:
        raise DataError(
            f"{where}: a grade is a whole number from {LOWEST} to {HIGHEST}, or absent where "
            f"nobody has judged; got {repr(value)[:40]}."
        )
    return int(number)


def _value(where: str, name: str, value: Any, nested: bool = True) -> Any:
    """A value of a card or list as both databases keep it; what they cannot keep is refused."""
    if isinstance(value, float) and not math.isfinite(value):
        raise DataError(f"{where}: {name!r} holds {value}, which is no number; leave it out.")
    if value is None or isinstance(value, bool):
        return value if nested or value is not None else "None"
    if isinstance(value, int | float):
        return _number(where, name, value)
    if nested and isinstance(value, dict):
        return {checked(where, name, str(k)): _value(where, name, v) for k, v in value.items()}
    if nested and isinstance(value, list):
        return [_value(where, name, v) for v in value]
    return checked(where, name, str(value))


def _number(where: str, name: str, value: float) -> float:
    if abs(value) >= 10**300:  # beyond it programs that read the copy see infinity
        raise DataError(f"{where}: {name!r} holds a number that is too large; write it as a text.")
    return value


def _prior(where: str, row: Mapping[str, Any]) -> float | None:
    value = row.get("prior")
    if value is None or value == "":
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        found = math.nan
    if not math.isfinite(found):
        got = repr(value)[:40]
        raise DataError(f"{where}: prior is a number, bigger is better; got {got}.")
    return found


def key_of(where: str, row: Mapping[str, Any], names: tuple[str, ...], what: str) -> str:
    """The id under the first of these names that the row has."""
    value = next((row[name] for name in names if row.get(name) not in (None, "")), None)
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # ids of numbers, from tables
    if value is None or isinstance(value, bool | dict | list):
        raise DataError(f"{where}: a {what}'s id is missing; name the column {names[0]!r}.")
    return checked(where, names[0], str(value), LONGEST_KEY)


def text_of(where: str, row: Mapping[str, Any], name: str) -> str:
    """A text of a row, empty where it has none."""
    value = row.get(name)
    if value is None:
        return ""
    if isinstance(value, dict | list):
        raise DataError(f"{where}: {name!r} is a text; got a {type(value).__name__}.")
    return checked(where, name, str(value))


def first_text(where: str, row: Mapping[str, Any], names: Iterable[str]) -> str:
    """The text under the first of these names that has one; the others are not read."""
    return next((text for name in names if (text := text_of(where, row, name))), "")


def checked(where: str, name: str, text: str, longest: int = LONGEST_TEXT) -> str:
    """A text as it came, if both databases can keep it."""
    if len(text) > longest:
        raise DataError(f"{where}: {name!r} has {len(text):,} characters; at most {longest:,}.")
    if "\x00" in text:
        raise DataError(f"{where}: {name!r} holds the character NUL; take it out.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{where}: {name!r} holds half a character (a lone surrogate); take it out."
        ) from None
    return text


WHOLE = re.compile(r"[+-]?[0-9]{1,9}")
WORDS = {"left": 1, "right": -1, "tie": 0, "equal": 0}


@dataclass(frozen=True)
class Known:
    """A question and its answer; a training question has its own texts, in a query of its own."""

    where: str
    query: str
    left: str
    right: str | None
    outcome: int
    explanation: str
    own: Query | None = None


def golds_from(rows: Iterable[LocatedRow]) -> list[Known]:
    """`query`, `left`, `right` (documents), `outcome` (1, 0, -1) or `grade`, `explanation`."""
    found = []
    for where, row in rows:
        right = text_of(where, row, "right") or None
        found.append(Known(
            where, key_of(where, row, ("query", "qid"), "query"),
            key_of(where, row, ("left", "document", "docid"), "document"), right,
            _outcome(where, row, right is None), text_of(where, row, "explanation"),
        ))  # fmt: skip
    return found


def training_from(
    source: str, rows: Iterable[LocatedRow], pictures: Pictures, unread: Unread
) -> list[Known]:
    """`text` (the query), `left` and `right` (texts, or objects like documents), the answer."""
    found = []
    for number, (where, row) in enumerate(rows, 1):
        key = f"training {number}"
        sides = []
        for side in ("left", "right"):
            given = row.get(side)
            if given:
                shown = WatchedRow(given if isinstance(given, dict) else {"text": given})
                sides.append(document_from(where, shown, pictures, side))
                unread.count(source, shown)
        if not sides or sides[0].key != "left":
            raise DataError(f"{where}: a training question needs 'left', a text or an object.")
        query = Query(
            key, first_text(where, row, ("text", "query")), description_of(where, row),
            tuple(sides),
        )  # fmt: skip
        right = "right" if len(sides) == 2 else None
        found.append(Known(
            where, key, "left", right, _outcome(where, row, right is None),
            text_of(where, row, "explanation"), query,
        ))  # fmt: skip
    return found


def _outcome(where: str, row: Mapping[str, Any], graded: bool) -> int:
    name = "grade" if graded else "outcome"
    value = row.get(name, row.get("outcome"))
    words = {word: i for i, word in enumerate(GRADES)} if graded else WORDS
    if isinstance(value, str):
        text = value.strip().lower()
        value = words.get(text, int(text) if WHOLE.fullmatch(text) else None)
    low, high = (0, len(GRADES) - 1) if graded else (-2, 2)
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise DataError(
            f"{where}: {name} is a whole number from {low} to {high}, or one of "
            f"{', '.join(words)}; got {repr(row.get(name, row.get('outcome')))[:40]}."
        )
    return value
