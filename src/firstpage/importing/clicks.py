"""Clicks as preferences: who was clicked beats those that were seen above it and not clicked.

The rule is Joachims' "click > skip above" (KDD 2002).  People look at the first places most, and
trust them: such pairs only ever say that a lower document beats a higher one, and pairs that were
never shown in both orders say nothing of the other.  They are evidence relative to the order that
was shown, not judgments.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firstpage.data.files import write_bytes
from firstpage.data.ids import encoded
from firstpage.errors import DataError, at
from firstpage.importing.text import json_lines, table

COLUMNS = {
    "query": ("query", "qid"), "document": ("docid", "doc_id", "document"),
    "position": ("position", "rank"), "clicked": ("clicked", "click", "clicks"),
}  # fmt: skip
YES, NO = ("1", "true", "yes"), ("0", "false", "no", "")
Pair = tuple[str, str, str]
"""(query, better document, worse document)."""


def read_clicks(path: str | os.PathLike[str]) -> list[Pair]:
    """Skip-above pairs, one for each time that a click says so.

    JSON lines {"query": .., "ranking": [documents], "clicks": [documents]}, one a list shown; or
    CSV with the columns query, docid, position, clicked, where a list ends as the query changes or
    the position does not rise.
    """
    file = Path(path)
    read = _csv if file.name.lower().removesuffix(".gz").endswith(".csv") else _json
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
            out.write(encoded(",".join([*map(_quoted, pair), "a1"]) + "\n"))


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\r\n') else text


def _json(file: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    for line, held in json_lines(file):
        for row in held if isinstance(held, list) else [held]:
            try:
                query, shown = str(row["query"]), [str(d) for d in _list(row["ranking"])]
                clicked = {str(d) for d in _list(row["clicks"])}
            except (KeyError, TypeError):
                raise DataError(
                    f"{at(file, line)}: must have query, ranking and clicks, the last two lists of "
                    "documents."
                ) from None
            if len(set(shown)) < len(shown) or not clicked <= set(shown):
                raise DataError(
                    f"{at(file, line)}: a document is shown twice, or clicked and not shown."
                )
            yield query, shown, clicked


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _csv(file: Path) -> Iterator[tuple[str, list[str], set[str]]]:
    query, last, shown, clicked = "", 0, list[str](), set[str]()
    for line, row in table(file, COLUMNS):
        try:
            position = int(row["position"])
        except ValueError:
            raise DataError(
                f"{at(file, line)}: the position {row['position']!r} is no whole number."
            ) from None
        said = row["clicked"].lower()
        if said not in YES + NO:
            raise DataError(f"{at(file, line)}: clicked must be 0 or 1; got {row['clicked']!r}.")
        if shown and (row["query"] != query or position <= last):
            yield query, shown, clicked
            shown, clicked = [], set()
        if row["document"] in shown:
            raise DataError(f"{at(file, line)}: {row['document']!r} is twice in one list.")
        query, last = row["query"], position
        shown.append(row["document"])
        if said in YES:
            clicked.add(row["document"])
    if shown:
        yield query, shown, clicked
