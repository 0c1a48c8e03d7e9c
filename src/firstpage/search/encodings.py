"""The encoding of a file of text that does not say what it is."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from firstpage.search.html_pages import declared_encoding

BYTE_ORDER_MARKS = (  # UTF-32 first, since its mark begins with that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)  # fmt: skip
INVALID = "invalid in the declared encoding, and read with U+FFFD for the invalid bytes"
GUESS = "cp1252"  # what files without a declaration are that are not UTF-8, as in browsers


@dataclass(frozen=True)
class DecodedFile:
    """The text of a file; None if it is not text.

    `note` says what the file is if it is not UTF-8 by itself or by declaration, or is not valid.
    """

    text: str | None
    note: str = ""


def decode_file(raw: bytes, is_page: bool) -> DecodedFile:
    """Return the text of a file.

    The encoding is that of a byte order mark, else that which a page declares, else UTF-8, else
    Windows-1252.  A file with NUL bytes but without such a mark is not text.
    """
    for mark, encoding in BYTE_ORDER_MARKS:
        if raw.startswith(mark):
            return _decoded(raw, encoding)
    if b"\0" in raw:
        return DecodedFile(None, "left out, since NUL bytes are not text")
    declared = declared_encoding(raw) if is_page else None
    if declared is not None and declared != "utf-8":
        return _decoded(raw, declared)
    try:
        return DecodedFile(raw.decode("utf-8"))
    except UnicodeDecodeError:
        return DecodedFile(raw.decode(GUESS, "replace"), "not UTF-8, and read as Windows-1252")


def _decoded(raw: bytes, encoding: str) -> DecodedFile:
    """Return the text of a file that declares its encoding."""
    try:
        return DecodedFile(raw.decode(encoding))
    except UnicodeDecodeError:
        return DecodedFile(raw.decode(encoding, "replace"), INVALID)
