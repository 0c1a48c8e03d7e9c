"""Judgments of other programs: Quepid's ratings, and clicks as preferences.

A clicked document is preferred to the documents above it that were not clicked: "click > skip
above" of Joachims (KDD 2002).  Users examine and trust the top positions most, so such pairs only
ever prefer a lower document to a higher one.  They are evidence relative to the ranking that was
shown, not judgments.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from firstpage.core import DataError, warn
from firstpage.data import DOCUMENT_NAMES, QUERY_NAMES, Qrels
from firstpage.data.io import suffix_of
from firstpage.interop.read.rows import Json, identifier, json_values, name_of, table_rows

RATING_COLUMNS = {
    "query": ("query", "query_text", "query text"),
    "document": ("docid", "doc_id", "doc id"),
    "rating": ("rating", "judgement", "judgment", "grade"),
}


def read_quepid(path: str | os.PathLike[str]) -> Qrels:
    """Read the ratings of Quepid's basic export.

    Rows without a rating are dropped.  The text of a query is its id.

    Parameters
    ----------
    path : path
        A CSV file with the columns query, docid and rating.

    Returns
    -------
    Qrels
        The judgments.

    Raises
    ------
    DataError
        If a column is missing, a rating is not a number, or a document has two ratings.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "ratings.csv")
    ...     _ = path.write_text("query,docid,rating\\nred shoes,d1,3\\n")
    ...     fp.interop.read_quepid(path).to_dict()
    {'red shoes': {'d1': 3.0}}
    """
    file = Path(path)
    ratings: dict[str, dict[str, float]] = {}
    unrated = 0
    for where, row in table_rows(file, RATING_COLUMNS):
        if not row["rating"]:
            unrated += 1
            continue
        try:
            rating = float(row["rating"].replace("_", "?"))  # Python ignores underscores
        except ValueError:
            rating = math.nan
        if not math.isfinite(rating):
            raise DataError(f"{where}: the rating {row['rating']!r} is not a number.")
        query = identifier(row["query"], "query", where)
        document = identifier(row["document"], "document id", where)
        if ratings.setdefault(query, {}).setdefault(document, rating) != rating:
            raise DataError(
                f"{where}: {document!r} has another rating for {query!r} above; export one rating "
                "per document."
            )
    if not ratings:
        raise DataError(f"{file}: contains no ratings.")
    if unrated:
        warn(f"{file}: {unrated} rows without a rating are dropped.")
    return Qrels.from_dict(ratings, file.name)


CLICK_COLUMNS = {
    "query": QUERY_NAMES, "document": DOCUMENT_NAMES,
    "position": ("position", "rank"), "clicked": ("clicked", "click", "clicks"),
}  # fmt: skip
CLICKED, NOT_CLICKED = ("1", "true", "yes"), ("0", "false", "no", "")
Pair = tuple[str, str, str]
"""(query, better document, worse document)."""


def read_clicks(path: str | os.PathLike[str]) -> list[Pair]:
    """Read click logs as "click > skip above" preferences.

    Parameters
    ----------
    path : path
        JSON lines {"query": .., "ranking": [documents], "clicks": [documents]}, one per result
        list; or a .csv or .tsv table with the columns query, docid, position and clicked, in which
        a list ends when the query changes or the position returns to the start.

    Returns
    -------
    list of (str, str, str)
        Query, preferred document and other document, one entry per observation.

    Raises
    ------
    DataError
        If the file is malformed, or if no click has a skipped document above it.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "clicks.jsonl")
    ...     _ = path.write_text('{"query": "q", "ranking": ["a", "b"], "clicks": ["b"]}')
    ...     fp.interop.read_clicks(path)
    [('q', 'b', 'a')]
    """
    file = Path(path)
    read = _read_table if suffix_of(file)[0] in (".csv", ".tsv") else _read_json
    pairs: list[Pair] = []
    for query, shown, clicked in read(file):
        for position, document in enumerate(shown):
            if document in clicked:
                pairs += [(query, document, d) for d in shown[:position] if d not in clicked]
    if not pairs:
        raise DataError(f"{file}: no click has a skipped document above it.")
    return pairs


def _read_json(file: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    """Yield query, documents shown and documents clicked of JSON lines."""
    for where, value in json_values(file):
        for row in value if isinstance(value, list) else [value]:
            fields = row if isinstance(row, dict) else {}
            try:
                query, shown = _nonblank_name(fields["query"]), _documents(fields["ranking"])
                clicked = set(_documents(fields["clicks"]))
            except (KeyError, TypeError):
                raise DataError(
                    f"{where}: must have query, ranking and clicks; the last two are lists "
                    "of document ids, and no id may be empty."
                ) from None
            repeated = next((d for d, times in Counter(shown).items() if times > 1), None)
            if repeated is not None:
                raise DataError(f"{where}: {repeated!r} occurs twice in one list.")
            if not clicked <= set(shown):
                unknown = min(clicked - set(shown))
                raise DataError(f"{where}: {unknown!r} was clicked but not shown.")
            yield query, shown, clicked


def _documents(value: Json) -> list[str]:
    """Return a list of document ids; raise TypeError otherwise."""
    if not isinstance(value, list):
        raise TypeError
    return [_nonblank_name(item) for item in value]


def _nonblank_name(value: Json) -> str:
    """Return a name that is not blank; raise TypeError otherwise."""
    name = name_of(value)
    if not name.strip():
        raise TypeError
    return name


def _read_table(file: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    """Yield query, documents shown and documents clicked of a table."""
    query, first, last, shown, clicked = "", 0, 0, list[str](), set[str]()
    starts: set[int] = set()
    for where, row in table_rows(file, CLICK_COLUMNS):
        position, click = _position_and_click(row, where)
        same = bool(shown) and row["query"] == query
        if same and first < position <= last:
            raise DataError(
                f"{where}: the position {position} comes after {last} in a list that "
                f"began at {first}; sort the rows of each list by position."
            )
        if shown and not (same and position > last):
            yield query, shown, clicked
            shown, clicked = [], set()
        if not shown:
            first = position
            starts.add(first)
        query, last = row["query"], position
        if row["document"] in shown:
            raise DataError(f"{where}: {row['document']!r} occurs twice in one list.")
        shown.append(row["document"])
        if click:
            clicked.add(row["document"])
    if shown:
        yield query, shown, clicked
    if len(starts) > 1:
        warn(
            f"{file}: lists begin at positions from {min(starts)} to {max(starts)}; check that "
            "no rows are missing, and that the rows are sorted by position."
        )


def _position_and_click(row: dict[str, str], where: str) -> tuple[int, bool]:
    """Return the position of a row, and whether it was clicked."""
    if not row["query"] or not row["document"]:
        raise DataError(f"{where}: a query or a document is empty.")
    try:
        position = int(row["position"].replace("_", "?"))  # Python ignores underscores
    except ValueError:
        raise DataError(f"{where}: the position {row['position']!r} is not an integer.") from None
    if position < 0:
        raise DataError(f"{where}: the position {position} is below 0.")
    clicked = row["clicked"].lower()
    if clicked not in CLICKED + NOT_CLICKED:
        raise DataError(f"{where}: clicked must be 0 or 1; got {row['clicked']!r}.")
    return position, clicked in CLICKED
