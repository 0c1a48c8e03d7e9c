"""The tab rule of TREC files: blanks separate fields, and tabs where ids contain blanks.

A line with exactly one tab between its fields (3 in qrels, 5 in runs) is split at the tabs, so that
ids may contain blanks.  Such files are written where an id contains a blank; trec_eval does not
read them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import numpy as np

from firstpage.core import Bytes, DataError, warn
from firstpage.core.kernels import find_separator
from firstpage.data.groups import duplicate_rows
from firstpage.data.ids import BLANKS

if TYPE_CHECKING:
    from firstpage.data.runs import Column

TAB, LINE_FEED = 9, 10


def split_fields(line: bytes, kind: type[Column]) -> list[bytes]:
    """Return the fields of a line, split at its tabs if it has one between any two fields."""
    if line.count(b"\t") != len(kind.fields) - 1:
        return line.split()
    return [field for field in map(bytes.strip, line.split(b"\t")) if field]


def hide_blanks(text: Bytes, kind: type[Column]) -> Bytes:
    """Return the text with placeholders for the blanks inside fields that tabs separate.

    Blanks then separate all fields, as the kernel expects.  The length of the text does not change.
    """
    tabs = np.flatnonzero(text == TAB)
    blank = (text == 32) | ((text >= 11) & (text <= 13))
    line_feeds = np.flatnonzero(text == LINE_FEED)
    tabs_per_line = np.diff(np.searchsorted(tabs, line_feeds), prepend=0)
    tabbed = tabs_per_line == len(kind.fields) - 1
    blank &= np.repeat(tabbed, np.diff(line_feeds, prepend=-1))
    edges = np.flatnonzero(np.diff(blank.view(np.int8), prepend=0, append=0))
    starts, ends = edges[::2], edges[1::2]  # of runs of blanks; a line feed ends the text
    around = np.stack([text[starts - 1], text[ends]])
    inside = ((around != TAB) & (around != LINE_FEED)).all(axis=0)
    if not inside.any():
        return text
    change = np.zeros(len(text), np.int8)
    change[starts[inside]], change[ends[inside]] = 1, -1
    hidden = text.copy()
    positions = np.flatnonzero(np.cumsum(change, dtype=np.int8))
    hidden[positions] = text[positions] % 8 + 1  # distinct, and neither blanks nor line feeds
    return hidden


def field_separator(table: Column, target: str | os.PathLike[str]) -> str:
    """Return a blank, or a tab if an id contains a blank, with a warning.

    Raises an error for what a TREC file cannot represent: repeated documents, and ids that would
    not be read back unchanged.
    """
    duplicates = duplicate_rows(
        table.docids.hashes, table.offsets, np.ones(len(table.values), bool)
    )
    if len(duplicates):
        row = int(duplicates[0])
        query = table.queries[int(np.searchsorted(table.offsets, row, side="right")) - 1]
        raise DataError(
            f"{table.source or table.name}: document {table.docids[row]!r} occurs twice in query "
            f"{query!r}, which a TREC file does not allow; drop one."
        )
    example = ""
    for names, kind in ((table.queries, "query id"), (table.docids, "document id")):
        filled = bool((names.ends > names.starts).all())
        if filled and find_separator(names.data, names.starts, names.ends, TAB) < 0:
            continue
        for name in names:
            if not name or name != name.strip(BLANKS) or any(c in "\t\n\r" for c in name):
                raise DataError(
                    f"the {kind} {name!r} cannot be written to a TREC file (it is empty, or has a "
                    "tab, a line end or a blank at its start or end)."
                )
            if not example and any(c in BLANKS for c in name):
                example = f"the {kind} {name!r}"
    if not example:
        return " "
    warn(
        f"{os.fspath(target)}: {example} contains a blank, so the fields are separated by tabs; "
        "trec_eval does not read such a file."
    )
    return "\t"
