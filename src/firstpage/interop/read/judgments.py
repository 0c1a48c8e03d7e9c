"""Judgments of other programs: Quepid's ratings, and clicks as preferences.

Who was clicked beats those that were seen above it and not clicked: Joachims' "click > skip above"
(KDD 2002).  People look at the first places most, and trust them: such pairs only ever say that a
lower document beats a higher one, and pairs that were never shown in both orders say nothing of the
other.  They are evidence relative to the order that was shown, not judgments.
"""

from __future__ import annotations

import math
import os
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from firstpage.data.formats.trec import Qrels
from firstpage.data.ids import encode_text
from firstpage.data.io.files import suffix_of, write_bytes
from firstpage.errors import DataError, FirstpageWarning
from firstpage.interop.read.rows import Json, Names, json_values, name_of, table

RATING_COLUMNS = {
    "query": ("query", "query_text", "query text"),
    "document": ("docid", "doc_id", "doc id"),
    "rating": ("rating", "judgment", "judgment", "grade"),
}


def read_quepid(path: str | os.PathLike[str]) -> Qrels:
    """Judgments of Quepid's basic export.

    Rows without a rating are left out; blanks in queries and document ids become "_".
    """
    file = Path(path)
    query, document = Names("query"), Names("document id")
    found: dict[str, dict[str, float]] = {}
    unrated = 0
    for where, row in table(file, RATING_COLUMNS):
        if not row["rating"]:
            unrated += 1
            continue
        try:
            rating = float(row["rating"].replace("_", "?"))  # which Python would read over
        except ValueError:
            rating = math.nan
        if not math.isfinite(rating):
            raise DataError(f"{where}: the rating {row['rating']!r} is no number.")
        docs = found.setdefault(query(row["query"], where), {})
        if docs.setdefault(document(row["document"], where), rating) != rating:
            raise DataError(
                f"{where}: {row['document']!r} has another rating for {row['query']!r} "
                "above; export one rating a document."
            )
    if not found:
        raise DataError(f"{file}: holds no ratings.")
    if unrated:
        warnings.warn(
            f"{file}: {unrated} rows without a rating are left out.", FirstpageWarning, stacklevel=2
        )
    return Qrels.from_dict(found, file.name)


CLICK_COLUMNS = {
    "query": ("query", "qid"), "document": ("docid", "doc_id", "document"),
    "position": ("position", "rank"), "clicked": ("clicked", "click", "clicks"),
}  # fmt: skip
YES, NO = ("1", "true", "yes"), ("0", "false", "no", "")
Pair = tuple[str, str, str]
"""(query, better document, worse document)."""


def read_clicks(path: str | os.PathLike[str]) -> list[Pair]:
    """Skip-above pairs, one for each time that a click says so.

    JSON lines {"query": .., "ranking": [documents], "clicks": [documents]}, one a list shown; or
    a .csv or .tsv table with the columns query, docid, position, clicked, where a list ends as the
    query changes or the position goes back to where it began, or before.
    """
    file = Path(path)
    read = _table if suffix_of(file)[0] in (".csv", ".tsv") else _json
    found: list[Pair] = []
    for query, shown, clicked in read(file):
        for place, document in enumerate(shown):
            if document in clicked:
                found += [(query, document, d) for d in shown[:place] if d not in clicked]
    if not found:
        raise DataError(f"{file}: no click has a skipped document above it.")
    return found


def write_pairs(pairs: list[Pair], path: str | os.PathLike[str]) -> None:
    """As votes, topic,arg1,arg2,vote: `firstpage label simulate --votes` reads them."""
    with write_bytes(Path(path)) as out:
        out.write(b"topic,arg1,arg2,vote\n")
        for pair in pairs:
            out.write(encode_text(",".join([*map(_quoted, pair), "a1"]) + "\n"))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text


def _json(file: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    for where, held in json_values(file):
        for row in held if isinstance(held, list) else [held]:
            fields = row if isinstance(row, dict) else {}
            try:
                query, shown = _filled(fields["query"]), _documents(fields["ranking"])
                clicked = set(_documents(fields["clicks"]))
            except (KeyError, TypeError):
                raise DataError(
                    f"{where}: must have query, ranking and clicks, the last two lists of "
                    "documents, none of them empty."
                ) from None
            twice = next((d for d, times in Counter(shown).items() if times > 1), None)
            if twice is not None:
                raise DataError(f"{where}: {twice!r} is twice in one list.")
            if not clicked <= set(shown):
                lost = min(clicked - set(shown))
                raise DataError(f"{where}: {lost!r} is clicked, and was not shown.")
            yield query, shown, clicked


def _documents(value: Json) -> list[str]:
    if not isinstance(value, list):
        raise TypeError
    return [_filled(one) for one in value]


def _filled(value: Json) -> str:
    """A name that is not blank."""
    name = name_of(value)
    if not name.strip():
        raise TypeError
    return name


def _table(file: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    query, first, last, shown, clicked = "", 0, 0, list[str](), set[str]()
    starts: set[int] = set()
    for where, row in table(file, CLICK_COLUMNS):
        position, click = _row(row, where)
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
            raise DataError(f"{where}: {row['document']!r} is twice in one list.")
        shown.append(row["document"])
        if click:
            clicked.add(row["document"])
    if shown:
        yield query, shown, clicked
    if len(starts) > 1:
        warnings.warn(
            f"{file}: lists begin at positions from {min(starts)} to {max(starts)}: were all rows "
            "of a list kept, and sorted by position?",
            FirstpageWarning,
            stacklevel=3,
        )


def _row(row: dict[str, str], where: str) -> tuple[int, bool]:
    """(position, clicked)"""
    if not row["query"] or not row["document"]:
        raise DataError(f"{where}: a query or a document is empty.")
    try:
        position = int(row["position"].replace("_", "?"))  # which Python would read over
    except ValueError:
        raise DataError(f"{where}: the position {row['position']!r} is no whole number.") from None
    if position < 0:
        raise DataError(f"{where}: the position {position} is below 0.")
    said = row["clicked"].lower()
    if said not in YES + NO:
        raise DataError(f"{where}: clicked must be 0 or 1; got {row['clicked']!r}.")
    return position, said in YES
