"""Feedback of people who search: preferences between two pages, and queries to judge.

All of it is written to one folder, as JSON lines that are appended:

- `preferences.jsonl`: pairs of result lists, for `firstpage dcglearn learn --qrels`
- `queries.jsonl` and `documents.jsonl`: for `firstpage label setup --queries --documents`

A row is acknowledged after it is on disk.  A server that is killed while it writes leaves a line
without an end, or documents without their query; neither was acknowledged, and the next server
removes them.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import stat
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from firstpage.core import DataError
from firstpage.serving.limits import Refusal

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

log = logging.getLogger("firstpage.serving")
PREFERENCES, QUERIES, DOCUMENTS = "preferences.jsonl", "queries.jsonl", "documents.jsonl"
MAX_FILE_BYTES = 1 << 30
MAX_KEY = 200  # characters of an id that a labeling project accepts
MAX_TEXT = 1_000_000  # characters of a text; longer ones are cut
SLUG_LENGTH = 40
PERIOD = 60.0  # seconds
PER_NETWORK, IN_ALL = 30, 300  # rows per period
MAX_NETWORKS = 10_000
ALL = "all networks"

Row = Mapping[str, Any]


def query_id(text: str) -> str:
    """Return the id of a typed query: its words, and a digest.  TREC files need ids without blanks.

    Texts that differ only in blanks and case have the same id.
    """
    folded = " ".join(text.casefold().split())
    ascii_text = unicodedata.normalize("NFKD", folded).encode("ascii", "ignore").decode()
    slug = re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-")[:SLUG_LENGTH].strip("-")
    digest = hashlib.sha256(folded.encode("utf-8", "replace")).hexdigest()[:8]
    return f"{slug}-{digest}" if slug else digest


class AppendedRows:
    """A file of JSON lines to which rows are appended; a line without an end is removed first.

    `noun` says in messages what the rows are.

    Attributes
    ----------
    rows : list of dict
        The rows that the file had when it was opened.
    """

    def __init__(self, path: Path, noun: str = "feedback") -> None:
        self.path, self.noun = path, noun
        is_new = not path.exists()
        content = b"" if is_new else path.read_bytes()
        self._size = content.rfind(b"\n") + 1
        lines = content[: self._size].split(b"\n")[:-1]
        self._ends: list[int] = []
        self.rows: list[dict[str, Any]] = []
        end = 0
        for number, line in enumerate(lines, 1):
            end += len(line) + 1
            self.rows.append(_row(path, number, line, noun))
            self._ends.append(end)
        self._before, self._failed = self._size, False
        self._stream = open(path, "ab", 0, opener=_private_file)  # noqa: SIM115 (see `close`)
        mode = stat.S_IMODE(os.fstat(self._stream.fileno()).st_mode)
        if os.name == "posix" and mode & 0o077:
            log.warning(
                "%s: other users of this machine may read it (mode %o); use chmod 600.", path, mode
            )
        if self._size < len(content):
            log.warning("%s: an incomplete last line was removed.", path)
            self._stream.truncate(self._size)
        if is_new:
            sync_folder(path.parent)

    @property
    def size(self) -> int:
        """The bytes of the committed rows."""
        return self._size

    def keep(self, count: int) -> None:
        """Remove all rows after the first `count` that the file had when it was opened."""
        if count < len(self.rows):
            log.warning("%s: %d incomplete rows were removed.", self.path, len(self.rows) - count)
            self._size = self._ends[count - 1] if count else 0
            self._stream.truncate(self._size)
            del self.rows[count:]

    def append(self, rows: Iterable[Row]) -> None:
        """Append rows, all of them or none, and wait until they are on disk."""
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        data = text.encode("utf-8", "backslashreplace")
        if self._size + len(data) > MAX_FILE_BYTES:
            raise Refusal(f"the file of {self.noun} is full; move it away and start again.", 507)
        try:
            done = 0
            while done < len(data):
                done += self._stream.write(data[done:]) or 0
            os.fsync(self._stream.fileno())
        except OSError as error:
            self.undo()
            if not self._failed:  # once, however many requests arrive
                log.error("%s: cannot be written (%s).", self.path, error.strerror)
            self._failed = True
            raise Refusal(f"the {self.noun} cannot be stored ({error.strerror}).", 507) from None
        self._before, self._size = self._size, self._size + len(data)
        self._failed = False

    def undo(self) -> None:
        """Remove what was written after the last committed row."""
        try:
            self._stream.truncate(self._size)
        except OSError as error:
            log.error("%s: cannot be truncated (%s).", self.path, error.strerror)

    def undo_last(self) -> None:
        """Remove what the last `append` added."""
        self._size = self._before
        self.undo()

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def _private_file(path: str, flags: int) -> int:
    """Open a file that only its owner may read and write if it is created."""
    return os.open(path, flags, 0o600)


def _row(path: Path, number: int, line: bytes, noun: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict):
        raise DataError(f"{path}:{number}: is not a row of {noun}; correct or move the file.")
    return row


def sync_folder(folder: Path) -> None:
    """Wait until the names of new files are on disk."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def occupy(folder: Path, noun: str) -> Callable[[], None]:
    """Make this process the only writer of a folder; return what releases it."""
    if fcntl is None:
        return lambda: None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise DataError(
            f"{folder}: another server writes its {noun} here; name another folder."
        ) from None
    return lambda: os.close(handle)


class FeedbackFolder:
    """The files of feedback, with one writer.

    Parameters
    ----------
    folder : path
        The folder, which is created if absent.

    Raises
    ------
    DataError
        If another server writes to the folder, or a file is not one of feedback.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._resources = ExitStack()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._resources.callback(occupy(folder, "feedback"))
            self._preferences, self._queries, self._documents = (
                self._resources.enter_context(closing(AppendedRows(folder / name)))
                for name in (PREFERENCES, QUERIES, DOCUMENTS)
            )
        except (OSError, DataError) as error:
            self._resources.close()
            if isinstance(error, DataError):
                raise
            raise DataError(f"{folder}: cannot be used for feedback ({error.strerror}).") from None
        self._known_preferences = {row.get("id") for row in self._preferences.rows}
        self._known_queries = {row.get("query") for row in self._queries.rows}
        complete = len(self._documents.rows)
        while (
            complete and self._documents.rows[complete - 1].get("query") not in self._known_queries
        ):
            complete -= 1
        self._documents.keep(complete)
        for file in (self._preferences, self._queries, self._documents):
            file.rows.clear()

    def add_preference(self, row: Row) -> bool:
        """Store a preference; return False if one with its `id` is stored already."""
        with self._lock:
            if row["id"] in self._known_preferences:
                return False
            self._preferences.append([row])
            self._known_preferences.add(row["id"])
            return True

    def add_query(self, text: str, documents: Iterable[Row]) -> bool:
        """Store a query to judge and its documents; return False if it is stored already."""
        name = query_id(text)
        with self._lock:
            if name in self._known_queries:
                return False
            self._documents.append([{"query": name, **row} for row in documents])
            try:
                self._queries.append([{"query": name, "text": text}])
            except Refusal:
                self._documents.undo_last()
                raise
            self._known_queries.add(name)
            return True

    def close(self) -> None:
        """Close the files and release the folder."""
        with self._lock:
            self._resources.close()


def document_row(name: str, source: Row, text_fields: Iterable[str], title: str | None) -> Row:
    """Return a document as a labeling project imports it: title, text, and other fields."""
    if len(name) > MAX_KEY:
        raise Refusal(
            f"a document has an id of {len(name):,} characters; labeling projects accept {MAX_KEY}."
        )
    row: dict[str, Any] = {"document": name}
    if title is not None and title in source:
        row["title"] = _text(source[title])
    texts = [field for field in text_fields if field != title and field in source]
    if texts:
        row["text"] = _text(source[texts[0]])
    others = {k: v for k, v in source.items() if k != title and k not in texts[:1]}
    if others:
        row["fields"] = {key: _value(value) for key, value in others.items()}
    return row


def _value(value: Any) -> Any:
    if isinstance(value, str):
        return _text(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(value: Any) -> str:
    text = str(value).replace("\x00", " ")
    if len(text) <= MAX_TEXT:
        return text
    return f"{text[:MAX_TEXT]}\n[cut: {len(text) - MAX_TEXT:,} more characters]"


class RateLimit:
    """Admits so many rows per period, of each network and in all, and refuses further ones.

    What is not used is available later, up to the limit; a request may exceed it once.
    """

    def __init__(
        self, per_network: int = PER_NETWORK, in_all: int = IN_ALL, noun: str = "feedback"
    ) -> None:
        self._per_network, self._in_all, self._noun = per_network, in_all, noun
        self._available: dict[str, tuple[float, float]] = {}  # by network, and when it was so

    def check(self, network: str, count: int = 1) -> None:
        """Count rows of a network, or refuse them."""
        now = time.monotonic()
        if len(self._available) > MAX_NETWORKS:
            recent = {n: row for n, row in self._available.items() if row[1] > now - PERIOD}
            self._available = recent
        levels = {}
        for name, limit in ((network, self._per_network), (ALL, self._in_all)):
            level, since = self._available.get(name, (limit, now))
            levels[name] = min(limit, level + (now - since) * limit / PERIOD) - count, now
            if levels[name][0] + count < 1:
                wait = str(max(1, round((1 - count - levels[name][0]) * PERIOD / limit)))
                detail = f"too much {self._noun} at once; try again in {wait} seconds."
                raise Refusal(detail, 429, retry_after=wait)
        self._available |= levels
