"""Where a learned measure is read from: `measure.json, form=weights, segment=news`.

Measures, losses and rankers write it alike, so it stands below them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import get_args

from firstpage.data.utility import Form, Utility, read_utility
from firstpage.errors import DataError

OPTIONS = ("file", "form", "segment")
NAMES = "(?:file|form|segment|gain|discount)"
# A comma parts items only before a name: those in file names, in names of segments and between
# quotes do not.
ITEM = re.compile(
    rf"\s*(?:({NAMES})\s*=\s*)?(\"[^\"]*\"|'[^']*'|.*?)\s*(?:,\s*(?={NAMES}\s*=)|\Z)", re.DOTALL
)


@dataclass(frozen=True)
class Source:
    """A measure file, and what is meant of it.

    file     its path; empty where a Utility is at hand
    form     gains or weights; None: what the file says
    segment  a kind of queries; None: all
    """

    file: str = ""
    form: Form | None = None
    segment: str | None = None

    @classmethod
    def parse(cls, text: str) -> Source:
        """From the text between the brackets; `file=` may be left out."""
        given: dict[str, str] = {}
        for name, value in _items(text):
            if name not in OPTIONS:
                raise DataError(f"{name} does not go with a measure file, which has its own.")
            if name in given:
                raise DataError(f"{name} is given twice.")
            given[name] = _bare(value)
        form = given.get("form")
        if form not in (None, *get_args(Form)):
            raise DataError(f"form must be gains or weights; got {form!r}.")
        return cls(given.get("file", ""), form, given.get("segment"))  # type: ignore[arg-type]

    def __str__(self) -> str:
        """What `parse` reads back, in the plainest way."""
        form = [] if self.form is None else [f"form={self.form}"]
        files = [self.file, f"file={self.file}", f'file="{self.file}"'] if self.file else [""]
        parts = ["", ""]
        if self.segment is not None:
            parts = [f"segment={self.segment}", f'segment="{self.segment}"']
        texts = [", ".join(filter(None, [f, *form, part])) for part in parts for f in files]
        return next((text for text in texts if self._is(text)), texts[-1])

    def _is(self, text: str) -> bool:
        try:
            return (not self.file or names_file(text)) and Source.parse(text) == self
        except DataError:
            return False

    def read(self) -> Utility:
        """The utility of the file, or of its segment."""
        if not self.file:
            raise DataError("no measure file is named, as in DCG(measure.json)@10.")
        return self.pick(read_utility(self.file), f"{self.file}: ")

    def pick(self, utility: Utility, where: str = "") -> Utility:
        """The segment's part of a utility."""
        try:
            return utility if self.segment is None else utility.segment(self.segment)
        except DataError as error:
            raise DataError(f"{where}{error}") from None


def names_file(inside: str) -> bool:
    """Whether the text between the brackets of a measure names a file, or speaks of one.

    A name alone does so if it could not be anything else: by a point, a slash or quotes.
    """
    if re.match(rf"\s*(?!{NAMES}\s*=)\w+\s*=", inside):
        return False  # another parameter
    given = [(match[1], match[2]) for match in ITEM.finditer(inside)]
    return any(name in OPTIONS for name, _ in given) or (
        given[0][0] is None and any(mark in given[0][1] for mark in "./\\\"'")
    )


def _items(text: str) -> list[tuple[str, str]]:
    """Names and values; the first needs no name."""
    found = [(match[1] or "file", match[2]) for match in ITEM.finditer(text)]
    return [item for item in found if item != ("file", "")]


def _bare(value: str) -> str:
    """Without the quotes around it."""
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value
