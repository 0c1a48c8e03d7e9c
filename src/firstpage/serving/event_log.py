"""The event log: queries and events, appended to one file by one thread.

A request is acknowledged after its rows are on disk.  Requests that arrive while the disk is busy
share the next commit: one write, and one wait for the disk.  A full file is renamed and compressed,
so that the log is `events.jsonl` and the segments `events-00000001.jsonl.gz`, and so on.

After a crash of the process, the log has every acknowledged row once; a line without an end is
removed.  After a loss of power the same holds as far as the disk keeps what it reported as written.
"""

from __future__ import annotations

import gzip
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, closing, contextmanager
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path

import msgspec

from firstpage.core import DataError, warn
from firstpage.serving import event_rows
from firstpage.serving.event_rows import AHEAD, STORED, Row
from firstpage.serving.feedback import AppendedRows, occupy, sync_folder
from firstpage.serving.limits import Refusal

log = logging.getLogger("firstpage.serving")
CURRENT, ROTATE = "events.jsonl", "rotate"
SEGMENT = re.compile(r"events-(\d{8})\.jsonl(\.gz)?")
SEGMENT_BYTES, LOG_BYTES = 8 << 20, 16 << 30
MAX_KNOWN = 500_000  # ids of the last rows
MAX_PENDING = 20_000  # rows that wait for the disk
DELAY = 0.1  # seconds for which rows that nobody waits for are collected, without a wake-up
PATIENCE = 60.0  # seconds for a server to rotate


class EventLog:
    """The event log of a folder, with one writer.

    Parameters
    ----------
    folder : path
        The folder, which is created if absent.
    fields : collection of str
        What is stored besides ids, times and positions.
    segment_bytes, log_bytes : int
        The size at which a file is renamed, and the size of the whole log; then rows are refused.

    Raises
    ------
    DataError
        If another process writes to the folder, or a file is not one of the log.
    """

    def __init__(
        self,
        folder: Path,
        fields: Iterable[str] = STORED,
        segment_bytes: int = SEGMENT_BYTES,
        log_bytes: int = LOG_BYTES,
    ) -> None:
        self.folder, self.fields = folder, frozenset(fields)
        self.stored = self.known = self.commits = self.dropped = 0
        self._segment_bytes, self._log_bytes = segment_bytes, log_bytes
        self._resources = ExitStack()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._resources.callback(occupy(folder, "events"))
            for part in folder.glob("*.part"):  # of an interrupted process
                part.unlink()
            _try_to_complete(folder)
            self._file = AppendedRows(folder / CURRENT, "events")
            self._resources.callback(lambda: self._file.close())
            self._known = dict.fromkeys(reversed(list(islice(self._last_ids(), MAX_KNOWN))))
        except (OSError, DataError) as error:
            self._resources.close()
            if isinstance(error, DataError):
                raise
            raise DataError(f"{folder}: cannot be used for events ({error.strerror}).") from None
        self._file.rows.clear()
        self._older = sum(path.stat().st_size for path in segments(folder))
        self._pending: list[tuple[Sequence[Row], Future[int]]] = []
        self._pending_rows, self._closing, self._urgent = 0, False, False
        self._wake = threading.Condition()
        self._writer = threading.Thread(target=self._run, name="events", daemon=True)
        self._writer.start()

    @property
    def size(self) -> int:
        """The bytes of all files."""
        return self._older + self._file.size

    def counts(self) -> dict[str, int]:
        """Return the counts of the log for the metrics."""
        names = ("stored", "known", "dropped", "commits", "size")
        return {name: getattr(self, name) for name in names}

    def _last_ids(self) -> Iterator[str]:
        """Yield the ids of the rows, the last first."""
        yield from (row["event_id"] for row in reversed(self._file.rows))
        for path in reversed(segments(self.folder)):
            yield from (row["event_id"] for row in reversed(list(rows_of(path))))

    def submit(self, rows: Sequence[Row], urgent: bool = True) -> Future[int]:
        """Append rows whose ids are new; the result is their number, once they are on disk.

        Rows that are not urgent may share a later commit, before any row that follows.
        """
        with self._wake:
            if self._closing or self._pending_rows + len(rows) > MAX_PENDING:
                self.dropped += len(rows)
                raise Refusal("too many events wait for the disk; try again.", 503, retry_after="1")
            future = Future[int]()
            if urgent:
                self._wake.notify()
            self._urgent |= urgent
            self._pending.append((rows, future))
            self._pending_rows += len(rows)
        return future

    def _run(self) -> None:
        """Commit what is pending, until the log is closed."""
        while True:
            with self._wake:
                if not self._urgent and not self._closing:
                    self._wake.wait(DELAY)
                batch, self._pending, self._pending_rows = self._pending, [], 0
                self._urgent = False
                ends = self._closing and not batch
            if batch:
                self._commit([each for each in batch if each[1].set_running_or_notify_cancel()])
            requested = (self.folder / ROTATE).exists()
            if self._file.size > (0 if requested else self._segment_bytes):
                self._rotate()
            if requested:
                (self.folder / ROTATE).unlink(missing_ok=True)
            if ends:
                return

    def _commit(self, batch: list[tuple[Sequence[Row], Future[int]]]) -> None:
        """Append the new rows of several requests, and answer them."""
        fresh: dict[str, Row] = {}
        counts = []
        for rows, _ in batch:
            before = len(fresh)
            for row in rows:
                if row["event_id"] not in self._known:
                    fresh.setdefault(row["event_id"], row)
            counts.append(len(fresh) - before)
        try:
            if fresh and self.size > self._log_bytes:
                raise Refusal("the event log is full; prune it, or move segments away.", 507)
            if fresh:
                self._file.append(fresh.values())
        except Exception as error:
            self.dropped += len(fresh)
            for _, future in batch:
                future.set_exception(error)
            return
        self._known.update(dict.fromkeys(fresh))
        for old in list(islice(self._known, max(0, len(self._known) - MAX_KNOWN))):
            del self._known[old]
        self.commits += bool(fresh)
        self.stored += len(fresh)
        self.known += sum(len(rows) for rows, _ in batch) - len(fresh)
        for (_, future), count in zip(batch, counts, strict=True):
            future.set_result(count)

    def _rotate(self) -> None:
        """Rename the file and compress it; if that fails, the next commit tries again."""
        try:
            self._file = rotated(self.folder, self._file)
            _try_to_complete(self.folder)
            self._older = sum(path.stat().st_size for path in segments(self.folder))
        except OSError as error:
            log.error("%s: cannot begin a new segment (%s).", self.folder, error.strerror)

    def close(self) -> None:
        """Commit what is pending, close the file and release the folder."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._writer.join()
        self._resources.close()


def segments(folder: Path) -> list[Path]:
    """Return the files of the log that no process writes, the oldest first."""
    return sorted(path for path in folder.iterdir() if SEGMENT.fullmatch(path.name))


def rows_of(path: Path) -> Iterator[Row]:
    """Yield the rows of a segment."""
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as lines:
        try:
            for line in lines:
                yield msgspec.json.decode(line, type=dict)
        except (ValueError, EOFError, OSError) as error:
            raise DataError(f"{path}: is not a segment of the event log ({error}).") from None


def rotated(folder: Path, file: AppendedRows) -> AppendedRows:
    """Rename the current file, and return a new one."""
    numbers = [int(match[1]) for path in segments(folder) if (match := SEGMENT.match(path.name))]
    target = folder / f"events-{max(numbers, default=0) + 1:08d}.jsonl"
    os.rename(folder / CURRENT, target)
    try:
        new = AppendedRows(folder / CURRENT, "events")
    except OSError:
        os.rename(target, folder / CURRENT)
        raise
    file.close()
    return new


def complete_segments(folder: Path) -> None:
    """Compress the segments that are not yet."""
    for path in segments(folder):
        if path.suffix == ".gz":
            continue
        packed = path.with_name(f"{path.name}.gz")
        if not packed.exists():
            with open(path, "rb") as rows:
                write_segment(packed, iter(lambda: rows.read(1 << 20), b""))
        path.unlink()


def _try_to_complete(folder: Path) -> None:
    """Compress the segments if the disk has room; they are read without, too."""
    try:
        complete_segments(folder)
    except OSError as error:
        log.error("%s: a segment cannot be compressed (%s).", folder, error.strerror)


def write_segment(path: Path, parts: Iterator[bytes]) -> None:
    """Write a compressed segment: the old one, if any, is replaced in one step."""
    part = path.with_name(f"{path.name}.part")
    try:
        with open(part, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as raw:
            with gzip.GzipFile("", "wb", 6, raw, 0) as out:
                for each in parts:
                    out.write(each)
            raw.flush()
            os.fsync(raw.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


@contextmanager
def _settled(folder: Path) -> Iterator[list[Path]]:
    """Move all rows to segments, by the server that writes the log or by this process."""
    if not (folder / CURRENT).exists():
        raise DataError(f"{folder}: has no event log (there is no {CURRENT}).")
    with ExitStack() as resources:
        try:
            resources.callback(occupy(folder, "events"))
        except DataError:
            _request_rotation(folder)
            suffixes = [".gz"]  # the server compresses the others
        else:
            suffixes = [".gz", ".jsonl"]
            file = resources.enter_context(closing(AppendedRows(folder / CURRENT, "events")))
            if file.size:
                rotated(folder, file).close()
            _try_to_complete(folder)
        try:
            yield [path for path in segments(folder) if path.suffix in suffixes]
        except OSError as error:
            raise DataError(f"{folder}: rows cannot be removed ({error.strerror}).") from None


def _request_rotation(folder: Path) -> None:
    """Wait until the server that writes the log has begun a new segment."""
    (folder / ROTATE).touch()
    end = time.monotonic() + PATIENCE
    while (folder / ROTATE).exists():
        if time.monotonic() > end:
            raise DataError(f"{folder}: is in use, and the server that writes it does not answer.")
        time.sleep(DELAY)


def _remove(paths: Iterable[Path], is_removed: Callable[[Row], bool]) -> int:
    """Remove rows of segments, and segments without rows; return the number of rows."""
    removed = 0
    for path in paths:
        flags = [is_removed(row) for row in rows_of(path)]
        removed += sum(flags)
        if all(flags):
            path.unlink()
            sync_folder(path.parent)
        elif any(flags):
            kept = (row for row, flag in zip(rows_of(path), flags, strict=True) if not flag)
            packed = path if path.suffix == ".gz" else Path(f"{path}.gz")
            write_segment(packed, (msgspec.json.encode(row) + b"\n" for row in kept))
            if packed != path:
                path.unlink()
    return removed


def prune(folder: Path, days: float, ahead: bool = False) -> int:
    """Remove the rows that are older; return their number.

    Rows of a clock that was fast are removed with `ahead`; otherwise a warning counts them.
    """
    now, kept = event_rows.clock(), 0

    def is_removed(row: Row) -> bool:
        nonlocal kept
        time = msgspec.convert(row["timestamp"], datetime)
        is_ahead = time > now + AHEAD
        kept += is_ahead and not ahead
        return time < now - timedelta(days=days) or (is_ahead and ahead)

    with _settled(folder) as paths:
        removed = _remove(paths, is_removed)
    if kept:
        warn(
            f"{kept:,} rows have times more than a day ahead of the clock of this machine, so that "
            "their age is unknown; they are kept. --ahead removes them, too."
        )
    return removed


def erase(folder: Path, people: Collection[str]) -> int:
    """Remove all rows of clients or users, and those of their queries; return their number."""

    def is_theirs(row: Row) -> bool:
        return row.get("client_id") in people or row.get("user_id") in people

    with _settled(folder) as paths:
        rows = (row for path in paths for row in rows_of(path) if is_theirs(row))
        queries = {row["query_id"] for row in rows if "query_id" in row}
        return _remove(paths, lambda row: is_theirs(row) or row.get("query_id") in queries)
