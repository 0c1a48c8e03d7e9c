"""Questions with known answers: gold ones about a project's documents, training with texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from firstpage.data.formats.row_reader import Row
from firstpage.errors import DataError
from firstpage.labeling.strategies.exhaustive import GRADES
from firstpage.web.imports.pictures import Pictures
from firstpage.web.imports.rows import (
    Unread,
    WatchedRow,
    description_of,
    document_from,
    first_text,
    key_of,
    text_of,
)
from firstpage.web.store.texts import Query

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


def golds_from(rows: Iterable[Row]) -> list[Known]:
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
    source: str, rows: Iterable[Row], pictures: Pictures, unread: Unread
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
