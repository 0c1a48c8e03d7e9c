"""SMART files, the format of the classic collections: `.I 1`, then `.T`, `.W` and so on."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from firstpage.core import DataError, location
from firstpage.data.formats import LocatedRow
from firstpage.search.sources import MAX_RECORD_CHARACTERS, Notes

SECTIONS = {
    "T": "title",
    "W": "text",
    "A": "author",
    "B": "bibliography",
    "K": "keywords",
    "N": "notes",
    "C": "categories",
}
CROSS_REFERENCES = "X"
_RECORD = re.compile(r"\.I(?:\s+(.*))?$")
_SECTION = re.compile(r"\.([A-Z])\s*$")


def smart_records(
    name: str, lines: Iterable[tuple[int, str]], notes: Notes
) -> Iterator[LocatedRow]:
    """Yield the records of a SMART file: the id, and the text of each section.

    A section begins with a line of a dot and a capital letter alone.  Sections of unknown letters
    are named by the letter in lower case; a repeated section continues the first.
    """
    where = ""
    sections: dict[str, list[str]] = {}
    current: list[str] | None = None
    size = 0
    for number, line in lines:
        record = section = None
        if line[:1] == ".":
            record, section = _RECORD.match(line), _SECTION.match(line)
        if record is None and section is None:
            if current is not None:
                size += len(line) + 1
                if size > MAX_RECORD_CHARACTERS:
                    raise DataError(
                        f"{where}: is longer than {MAX_RECORD_CHARACTERS:,} characters."
                    )
                current.append(line)
            elif line.strip():
                raise DataError(
                    f"{location(name, number)}: {line.strip()!r:.60} belongs to no section; a "
                    "SMART file has records of a line '.I 1' and sections such as '.T' and '.W'."
                )
        elif record is not None:
            if where:
                yield where, _texts(sections)
            where, size, current = location(name, number), 0, None
            sections = {"id": [record[1] or ""]}
        elif not where:
            raise DataError(
                f"{location(name, number)}: {line.strip()} stands before the first '.I'."
            )
        elif section is not None:
            current = _section(section[1], sections, where, notes)
    if not where:
        raise DataError(f"{name}: contains no record; a record of a SMART file begins with '.I 1'.")
    yield where, _texts(sections)


def _section(letter: str, sections: dict[str, list[str]], where: str, notes: Notes) -> list[str]:
    """Return the list that takes the lines of a section."""
    if letter == CROSS_REFERENCES:
        notes.once(
            "cross references", f"{where}: cross references (.X) are ignored, here and below."
        )
        return []
    return sections.setdefault(SECTIONS.get(letter, letter.lower()), [])


def _texts(sections: dict[str, list[str]]) -> dict[str, str]:
    return {name: "\n".join(lines).strip() for name, lines in sections.items()}
