"""Files of the NPL collection: the number of a record, its text, and a line of `/`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from firstpage.core import DataError, location
from firstpage.data.formats import LocatedRow
from firstpage.search.sources import MAX_RECORD_CHARACTERS

_END = re.compile(r"\s*/\s*$")


def npl_records(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[LocatedRow]:
    """Yield the records: the id, which is a line of its own, and the text up to a line of `/`."""
    where, record, size = "", "", 0
    text: list[str] = []
    for number, line in lines:
        if _END.match(line):
            if not where:
                raise DataError(f"{location(name, number)}: '/' ends no record.")
            yield where, {"id": record, "text": "\n".join(text).strip()}
            where, size, text = "", 0, []
        elif where:
            size += len(line) + 1
            if size > MAX_RECORD_CHARACTERS:
                raise DataError(f"{where}: is longer than {MAX_RECORD_CHARACTERS:,} characters.")
            text.append(line)
        elif line.strip():
            where, record = location(name, number), line.strip()
            if not record.isdigit():
                raise DataError(
                    f"{where}: {record!r:.60} is not the number of a record; a file of NPL has "
                    "records of a number, a text, and a line of '/'."
                )
    if where:
        raise DataError(f"{where}: the record has no end; add a line of '/'.")
