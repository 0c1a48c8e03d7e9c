"""Documents to index: JSON lines, tables, Parquet, TREC text, SMART, NPL, folders of files."""

from __future__ import annotations

import codecs
import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from firstpage.core import Advice, DataError
from firstpage.data import DOCUMENT_IDS, ROW_IDS
from firstpage.data.formats import NO_LIMITS, LocatedRow, read_csv_rows, read_json_rows
from firstpage.data.io import open_bytes, suffix_of
from firstpage.search.html_pages import declared_encoding, page_values
from firstpage.search.markdown_pages import markdown_values
from firstpage.search.npl import npl_records
from firstpage.search.smart import smart_records
from firstpage.search.sources import (
    Notes,
    check_choice,
    clean,
    identifier,
    key_among,
    read_old_lines,
    read_parquet,
    recognize,
)
from firstpage.search.trec_text import trec_documents

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


FORMATS = {
    "jsonl": "JSON lines: .jsonl, .ndjson",
    "csv": "a table with a header: .csv",
    "tsv": "a table with a header: .tsv",
    "parquet": ".parquet",
    "trec": "TREC text: <DOC> <DOCNO>",
    "smart": "SMART: .I .T .W",
    "npl": "NPL: a number, the text, a line of /",
    "folder": "a folder of text, Markdown and HTML files",
}
ID_KEYS = (*ROW_IDS, *DOCUMENT_IDS)
TREC_ID_KEYS = tuple(dict.fromkeys(("docno", *ID_KEYS)))
MARKDOWN_SUFFIXES = (".md", ".markdown")
PAGE_SUFFIXES = (".html", ".htm")
FILE_SUFFIXES = (".txt", *MARKDOWN_SUFFIXES, *PAGE_SUFFIXES)
MAX_NAMED = 5  # files that a note names
MAX_FILE_BYTES = 16 << 20  # of one document of a folder, decompressed
MAX_EXACT = 2.0**53
MAX_SHAPES = 1000  # sets of field names whose plan is in memory

Value = str | float


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document as it was read: what an index is built from.

    Parameters
    ----------
    id : str
        The id, without blanks around it.
    values : mapping of str to str or float
        Texts and numbers by field; the id is not among them.  A missing value is absent, and so is
        an empty text.
    location : str
        Where the document stands, for messages: `docs.jsonl:12`.

    Examples
    --------
    >>> from firstpage.search.documents import SourceDocument
    >>> shoe = SourceDocument("s1", {"title": "red shoe", "price": 49.5}, "shop.jsonl:1")
    >>> shoe.values["price"]
    49.5
    """

    id: str
    values: Mapping[str, Value]
    location: str


def read_documents(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    format: str | None = None,
    id_field: str | None = None,
    ignore_fields: Collection[str] = (),
) -> Iterator[SourceDocument]:
    """Yield the documents of files and folders, one at a time.

    Read are JSON lines, tables with a header (CSV, TSV), Parquet, TREC text, SMART, NPL, all of
    them also compressed (.gz, .xz, .zst), and folders of text and HTML files.  Texts are UTF-8;
    lines of TREC, SMART and NPL files that are not are Latin-1.  Control characters become blanks.

    - JSON lines, Parquet: numbers stay numbers, true and false are 1 and 0, dates are ISO text, a
      list of texts is joined by line ends.  Other lists and objects are refused.
    - Tables: every cell is a text; empty cells are missing.
    - TREC text: each element of a `<DOC>` is a field, by its name in lower case; headlines are the
      `title`, text outside of elements is appended to `text`.
    - SMART: `.T` is `title`, `.W` `text`, `.A` `author`, `.B` `bibliography`, `.K` `keywords`, `.N`
      `notes`, `.C` `categories`; cross references (`.X`) are ignored; other sections are named by
      their letter.
    - NPL: records of a number, which is the id, the `text`, and a line of `/`.
    - Folders: each .txt, .md, .markdown, .html and .htm file below it is a document, in the order
      of their paths; its id is its path from the folder.  Pages and Markdown have a `title` and a
      `text` without markup.  Files that are not UTF-8 are read by their byte order mark, by the
      encoding that a page declares, or as Windows-1252; files with NUL bytes are left out.  One
      warning of each kind names them.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders, read in this order.
    format : {"jsonl", "csv", "tsv", "parquet", "trec", "smart", "npl", "folder"}, optional
        The format of all paths.  By default it is recognized by the suffix or the first bytes.
    id_field : str, optional
        The field that holds the id.  By default one of `id`, `_id`, `docno`, `docid`, `doc_id`,
        `document_id` and `document`, in this order and in any case; in TREC text `docno` comes
        first.
    ignore_fields : collection of str, default=()
        Fields that are not read; they may hold anything.  A warning names those that no document
        has.

    Yields
    ------
    SourceDocument
        A document.  Ids may repeat.

    Raises
    ------
    DataError
        If a file cannot be read, its format is not recognized, or a document has no valid id or a
        value that is neither text nor number; the message names the file and line.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from firstpage.search.documents import read_documents
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "shop.jsonl"
    >>> _ = path.write_text('{"id": "s1", "title": "red shoe", "price": 49.5, "sold": null}')
    >>> for document in read_documents(path):
    ...     print(document.id, document.values)
    s1 {'title': 'red shoe', 'price': 49.5}
    """
    if format is not None:
        check_choice("format", format, FORMATS)
    if isinstance(ignore_fields, str):
        ignore_fields = (ignore_fields,)
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    ignored = dict.fromkeys(ignore_fields, False)  # whether a document has the field
    return _documents([Path(path) for path in paths], format, id_field, ignored)


def _documents(
    paths: Iterable[Path], format: str | None, id_field: str | None, ignored: dict[str, bool]
) -> Iterator[SourceDocument]:
    notes = Notes()
    for path in paths:
        if path.is_dir():
            yield from _folder(path, format, id_field, ignored, notes)
            continue
        if format == "folder":
            raise DataError(f"{path}: is not a folder, but a file; give the format of the file.")
        with open_bytes(path) as (stream, _):
            chosen = format or recognize(path, stream, FORMATS, "documents")
            convert = _Converter(chosen, id_field, ignored, notes)
            read = False
            for where, row in _rows(path, stream, chosen, notes):
                read = True
                yield convert(where, row)
        if not read:
            notes.once(f"no documents in {path}", f"{path}: contains no documents.")
    absent = [repr(name) for name, is_present in ignored.items() if not is_present]
    if absent:
        notes.once(
            "ignored",
            f"no document has these fields to ignore: {', '.join(absent)}; check their names.",
        )


def documents_from_rows(
    rows: Iterable[SourceDocument | Mapping[str, Any]],
) -> Iterator[SourceDocument]:
    """Yield documents; mappings with an id and fields become documents."""
    convert = _Converter("jsonl", None, {}, Notes())
    for number, row in enumerate(rows, 1):
        yield row if isinstance(row, SourceDocument) else convert(f"document {number}", row)


def _rows(path: Path, stream: Any, format: str, notes: Notes) -> Iterator[LocatedRow]:
    name = str(path)
    if format == "jsonl":
        return read_json_rows(name, stream, NO_LIMITS)
    if format == "parquet":
        return read_parquet(path, stream)
    if format == "trec":
        return trec_documents(name, read_old_lines(name, stream, notes), notes)
    if format == "smart":
        return smart_records(name, read_old_lines(name, stream, notes), notes)
    if format == "npl":
        return npl_records(name, read_old_lines(name, stream, notes))
    return read_csv_rows(name, stream, NO_LIMITS)


class _Converter:
    """Makes documents of rows.

    Rows of a file mostly have the same fields, so the id's key and the fields to read are decided
    once per set of names.
    """

    def __init__(
        self, format: str, id_field: str | None, ignored: dict[str, bool], notes: Notes
    ) -> None:
        self._is_table = format in ("csv", "tsv")
        self._id_keys = TREC_ID_KEYS if format == "trec" else ID_KEYS
        self._id_field = id_field
        self._ignored = ignored
        self._notes = notes
        self._nan_is_missing = format == "parquet"
        self._plans: dict[tuple[str, ...], tuple[str | None, tuple[str, ...]]] = {}

    def __call__(self, where: str, row: Mapping[str, Any]) -> SourceDocument:
        names = tuple(row)
        id_key, fields = self._plans.get(names) or self._plan(names, where)
        raw = None if id_key is None else row[id_key]
        if raw is None:
            raise self._no_id(where, names)
        values: dict[str, Value] = {}
        for name in fields:
            value = row[name]
            kind = type(value)
            if kind is str:
                if value:
                    values[name] = (
                        value if value.isprintable() else clean(value, where, self._notes)
                    )
            elif (kind is float or kind is int) and -MAX_EXACT <= value <= MAX_EXACT:
                values[name] = float(value)
            elif value is not None:
                converted = self._converted(where, name, value)
                if converted != "":
                    values[name] = converted
        return SourceDocument(identifier(raw, where), values, where)

    def _plan(self, names: tuple[str, ...], where: str) -> tuple[str | None, tuple[str, ...]]:
        if self._id_field is None:
            id_key = key_among(names, self._id_keys)
        elif self._id_field in names:
            id_key = self._id_field
        else:
            id_key = key_among(names, [self._id_field.casefold()])
        if any(not name.strip() for name in names):
            self._notes.once("unnamed", f"{where}: a field without a name is ignored.")
        self._ignored |= dict.fromkeys(self._ignored.keys() & set(names), True)
        fields = tuple(n for n in names if n != id_key and n not in self._ignored and n.strip())
        if len(self._plans) >= MAX_SHAPES:
            self._plans.clear()
        self._plans[names] = id_key, fields
        return id_key, fields

    def _no_id(self, where: str, names: tuple[str, ...]) -> DataError:
        if self._id_field is not None:
            return DataError(
                f"{where}: has no value of {self._id_field!r}, the field of the ids; add it or "
                "name another field."
            )
        shown = ", ".join(repr(name[:20]) for name in names[:3])
        header = f" The first line of a table is its header: {shown}." if self._is_table else ""
        return DataError(
            f"{where}: has no id; give each document one of {', '.join(self._id_keys)}.{header}",
            Advice("Or name the field that holds it with {}.", "id_field"),
        )

    def _converted(self, where: str, name: str, value: Any) -> Value:
        """Return the text or number of a value that is not a text; an empty text if missing."""
        if isinstance(value, (int, float, Decimal)):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return number
            if self._nan_is_missing and math.isnan(number):
                return ""
            raise self._refused(
                where, name, "is not a finite number; leave it out if it is missing"
            )
        if isinstance(value, (date, datetime)):
            return value.isoformat()
        if isinstance(value, list):
            texts = [text for text in value if text is not None]
            if all(isinstance(text, str) for text in texts):
                return clean("\n".join(texts), where, self._notes)
            raise self._refused(where, name, "is a list of values that are not texts")
        kind = "a nested object" if isinstance(value, dict) else f"a {type(value).__name__}"
        raise self._refused(where, name, f"is {kind}")

    def _refused(self, where: str, name: str, problem: str) -> DataError:
        return DataError(
            f"{where}: the field {name!r} {problem}. A value is a text, a number or a list of "
            "texts.",
            Advice("Change it, or skip the field with {}.", "ignore_fields", [name]),
        )


def _folder(
    folder: Path, format: str | None, id_field: str | None, ignored: dict[str, bool], notes: Notes
) -> Iterator[SourceDocument]:
    """Yield the text, Markdown and HTML files below a folder in the order of their paths."""
    if format not in (None, "folder"):
        raise DataError(f"{folder}: is a folder; name the {format} files in it.")
    if id_field is not None:
        raise DataError(
            f"{folder}: the id of a file in a folder is its path; another field cannot be named."
        )
    names: list[str] = []
    links: list[str] = []
    others = 0
    for parent, folders, files in os.walk(folder, onerror=_raise):
        others += sum(os.path.islink(os.path.join(parent, name)) for name in folders)
        for name in files:
            path = Path(parent, name)
            if suffix_of(path)[0] in FILE_SUFFIXES and path.is_file():
                names.append(path.relative_to(folder).as_posix())
                if path.is_symlink():
                    links.append(names[-1])
            else:
                others += 1
    if not names:
        raise DataError(
            f"{folder}: contains no {', '.join(FILE_SUFFIXES)} files; "
            "name files of other formats one by one."
        )
    if others:
        notes.once(
            f"others in {folder}",
            f"{folder}: {others:,} {'file is' if others == 1 else 'files are'} not read; documents "
            f"are {', '.join(FILE_SUFFIXES)} files.",
        )
    if links:
        notes.once(
            f"links in {folder}",
            f"{folder}: {len(links):,} of {len(names):,} files are links, such as {links[0]!r}; "
            "what they point to is read.",
        )
    convert = _Converter("folder", None, ignored, notes)
    unusual: dict[str, list[str]] = {}  # names of files by what is reported of them
    for name in sorted(names):
        path = folder / name
        decoded = decode_file(_file_bytes(path), suffix_of(path)[0] in PAGE_SUFFIXES)
        if decoded.note:
            unusual.setdefault(decoded.note, []).append(name)
        if decoded.text is not None:
            values = _file_values(path, decoded.text)
            if not any(values.values()):
                unusual.setdefault("empty, and found by no search", []).append(name)
            yield convert(str(path), {"id": name, **values})
    for note, files in unusual.items():
        verb, more = (
            ("is" if len(files) == 1 else "are"),
            (", .." if len(files) > MAX_NAMED else ""),
        )
        notes.report(
            f"{folder}: {len(files):,} of {len(names):,} files {verb} {note}: "
            f"{', '.join(files[:MAX_NAMED])}{more}."
        )


def _raise(error: OSError) -> None:
    raise DataError(f"{error.filename}: cannot be read ({error.strerror}).") from error


def _file_bytes(path: Path) -> bytes:
    """Return the decompressed bytes of a file of a folder; refuse one that is too long."""
    with open_bytes(path, any_encoding=True) as (stream, _):
        raw: bytes = stream.read(MAX_FILE_BYTES + 1)
    if len(raw) > MAX_FILE_BYTES:
        raise DataError(
            f"{path}: is longer than {MAX_FILE_BYTES:,} bytes, the limit of a document."
        )
    return raw


def _file_values(path: Path, text: str) -> dict[str, str]:
    """Return the text of a file, and the title of a page or Markdown file."""
    suffix = suffix_of(path)[0]
    if suffix in PAGE_SUFFIXES:
        return page_values(text, str(path))
    if suffix in MARKDOWN_SUFFIXES:
        return markdown_values(text, str(path))
    return {"text": text.strip()}
