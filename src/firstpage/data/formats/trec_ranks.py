"""Runs of three fields, `query document rank`: the form in which MS MARCO takes submissions."""

from __future__ import annotations

import numpy as np

from firstpage.data.formats.trec_columns import Column

SECOND_FIELD = b"\t0"
HEAD_BYTES = 1 << 16  # in which the first line is looked for
LINE_FEED = 10


class RankedLines(Column):
    """One rank per document, before it becomes a score."""

    value_name = "rank"
    fields = ("query", "document", "rank")


def has_three_columns(content: bytes) -> bool:
    """Return whether the first line that is not blank has three fields."""
    lines = content[:HEAD_BYTES].splitlines()
    return len(next((words for line in lines if (words := line.split())), [])) == 3


def with_second_field(content: bytes) -> bytes:
    """Return the lines with a field after the first one, where TREC files have one."""
    text = np.frombuffer(content if content.endswith(b"\n") else content + b"\n", np.uint8)
    blank = (text == 32) | ((text >= 9) & (text <= 13))
    starts = np.flatnonzero(~blank & np.concatenate([[True], blank[:-1]]))  # of fields
    ends = np.flatnonzero(blank & np.concatenate([[False], ~blank[:-1]]))
    line_feeds = np.flatnonzero(text == LINE_FEED)
    line = np.searchsorted(line_feeds, starts)
    first = np.concatenate([[True], line[1:] != line[:-1]]) if len(line) else np.empty(0, bool)
    positions = np.repeat(ends[first], len(SECOND_FIELD))
    inserted = np.tile(np.frombuffer(SECOND_FIELD, np.uint8), int(first.sum()))
    return np.insert(text, positions, inserted).tobytes()
