"""The streaming reader behind `read_letor`: parses chunks of text into the arrays of a Dataset."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from firstpage.core import Advice, Array, Bytes, DataError, Ints, Progress, location, warn
from firstpage.core.kernels.parsing import fallback_number, number_tables
from firstpage.core.kernels.parsing import letor as kernel
from firstpage.data.dataset import INTERLEAVED, Dataset
from firstpage.data.formats.feature_buffers import FLOAT64_COMMAND, DenseSink, SparseSink, too_wide
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.io.files import BOM, open_bytes
from firstpage.data.suspicious import warn_about

CHUNK_BYTES = 1 << 20
MIN_LINES_TO_COMPARE = 3  # what fewer lines have in common may be a coincidence
LINE_FEED, BLANK = 10, 32
FEATURE_NAME = re.compile(rb"#\s*(\d{1,10})\s*:\s*(.*)")  # a line of the header: `#1: bm25`

ERROR_MESSAGES = {
    kernel.BAD_LABEL: (
        "the line must begin with a number, the label; got {got}. Any number will do if the "
        "documents are only to be ranked."
    ),
    kernel.NO_QID: "'qid:' must follow the label; got {got}.",
    kernel.EMPTY_QID: "'qid:' must be followed by a query id.",
    kernel.BAD_INDEX: "a feature must have the form 'number:value'; got {got}.",
    kernel.BAD_VALUE: "the value of a feature must be a number; got {got}.",
    kernel.HUGE_INDEX: "the feature number in {got} is larger than 2147483647.",
}


class FeatureZero(DataError):
    """A feature 0 occurs where features count from 1."""


@dataclass
class _Buffers:
    """Buffers for the values of one chunk of text, large enough for any text of that size."""

    size: int

    def __post_init__(self) -> None:
        rows, values = self.size // 7 + 2, self.size // 4 + 2  # "0 qid:1" and " 1:0"
        self.text = np.empty(self.size + 1, np.uint8)  # room for a missing final line feed
        self.labels = np.empty(rows)
        self.row_ends = np.empty(rows, np.int64)
        self.indices = np.empty(values, np.int64)
        self.values = np.empty(values)
        self.query_rows = np.empty(rows, np.int64)
        self.query_ends = np.empty(rows, np.int64)
        self.query_names = np.empty(self.size, np.uint8)
        self.id_ends = np.empty(rows, np.int64)
        self.ids = np.empty(self.size, np.uint8)
        self.fallbacks = np.empty(3 * (rows + values), np.int64)

    def doubled(self) -> _Buffers:
        new = _Buffers(2 * self.size)
        new.text[: self.size] = self.text[: self.size]
        return new


@dataclass
class _LineSizes:
    """Numbers of features and lengths of document ids: minima, and those of the last line."""

    lines: int = 0
    min_features: int = 2**62  # of all lines but the last
    min_id: int = 2**62
    last_features: int = 2**62
    last_id: int = 2**62

    def add(self, features: Ints, ids: Ints) -> None:
        """Add the lines of a chunk."""
        self.lines += len(features)
        previous = min(self.min_features, self.last_features)
        self.min_features = int(features[:-1].min(initial=previous))
        self.min_id = int(ids[:-1].min(initial=min(self.min_id, self.last_id)))
        self.last_features, self.last_id = int(features[-1]), int(ids[-1])

    def last_line_defect(self) -> str | None:
        """Return in words what only the last line lacks, or None."""
        if self.lines <= MIN_LINES_TO_COMPARE:
            return None
        if self.min_id > 0 and not self.last_id:
            return "no document id, unlike all others"
        if self.last_features < self.min_features:
            return f"fewer features ({self.last_features}) than any other line"
        return None


def _complete_lines(text: Bytes, size: int) -> int:
    """Return the length of the complete lines in text[:size], searching from the end."""
    window = 4096
    while True:
        start = max(size - window, 0)
        last = text[start:size].tobytes().rfind(b"\n")
        if last >= 0 or start == 0:
            return start + last + 1 if last >= 0 else 0
        window *= 4


class LetorReader:
    """Reads one file once.

    `first` is the number of the first feature; `warnings` are the messages about the file.
    """

    def __init__(
        self,
        path: Path,
        dtype: np.dtype[Any],
        sparse: bool | None,
        n_features: int | None,
        zero_based: bool | None,
    ) -> None:
        self.path = path
        self.dtype = dtype
        self.sparse = sparse
        self.n_features = n_features
        self.first = 0 if zero_based else 1
        self.zero_based = zero_based
        self.datasets_taken = 0
        self.state = np.zeros(kernel.STATE_SIZE, np.int64)
        self.state[kernel.MAX_INDEX], self.state[kernel.MIN_INDEX] = -1, 2**62
        self.lines = 0
        self.unterminated = False  # no line feed at the end of the file
        self.line_sizes = _LineSizes()
        self.warnings: list[str] = []
        self.header: list[tuple[int, str]] = []  # numbers and names of features
        self.in_header = True
        self.names: tuple[str, ...] | None = None
        self._reset(sparse)

    def _reset(self, sparse: bool | None) -> None:
        """Start an empty dataset."""
        self.sink: DenseSink | SparseSink = (
            SparseSink(self.dtype) if sparse else DenseSink(self.dtype)
        )
        self.rows = 0
        self.labels: list[Array] = []
        self.id_bytes: list[Bytes] = []
        self.id_sizes: list[Ints] = []
        self.queries: dict[bytes, int] = {}
        self.segments: list[tuple[int, int]] = []  # (query, first row)

    def read(self, progress: Progress | None) -> Dataset:
        """Return the whole file."""
        for _ in self.chunks(progress):
            pass
        return self.take()

    def chunks(self, progress: Progress | None) -> Iterator[None]:
        """Read the file, yielding after each chunk of text; `take` returns what was read so far."""
        with open_bytes(self.path) as (stream, position):
            total = self.path.stat().st_size
            # A small file needs small buffers; the size of a pipe is unknown.
            buffers = _Buffers(
                min(CHUNK_BYTES, max(total, 64)) if self.path.is_file() else CHUNK_BYTES
            )
            size = 0
            while True:
                if size == buffers.size:  # one line is longer than the chunk
                    buffers = buffers.doubled()
                count = stream.readinto(buffers.text[size : buffers.size].data)
                size += count
                if not count and size and buffers.text[size - 1] != LINE_FEED:
                    buffers.text[size] = LINE_FEED
                    size += 1
                    self.unterminated = True
                used = _complete_lines(buffers.text, size)
                if used:
                    if not self.lines and bytes(buffers.text[:3]) == BOM:
                        buffers.text[:3] = BLANK
                    self._parse(buffers, used)
                    if isinstance(self.sink, DenseSink) and not self.datasets_taken:
                        self.sink.expect(self.rows * total // max(position(), 1))
                    size -= used
                    buffers.text[:size] = buffers.text[used : used + size].copy()
                if progress is not None:
                    progress(position(), total)
                if not count:
                    break
                yield
        self._check_last_line()

    def _parse(self, b: _Buffers, size: int) -> None:
        """Parse the first `size` bytes of the text, which are complete lines."""
        if self.in_header:
            self._read_header(bytes(b.text[:size]))
        state = self.state
        state[kernel.LINES] = 0
        code = kernel.parse_letor(
            buf=b.text,
            size=size,
            **number_tables(),
            labels=b.labels,
            row_ends=b.row_ends,
            indices=b.indices,
            values=b.values,
            query_rows=b.query_rows,
            query_ends=b.query_ends,
            query_names=b.query_names,
            id_ends=b.id_ends,
            ids=b.ids,
            fallbacks=b.fallbacks,
            state=state,
        )
        if code:
            self._fail(code, b.text, size)
        rows, values = int(state[kernel.ROWS]), int(state[kernel.VALUES])
        self._parse_hard_numbers(b, int(state[kernel.FALLBACKS]))
        self._check_labels(b, size, rows)
        self.labels.append(b.labels[:rows].copy())
        self._add_queries(b, int(state[kernel.QUERIES]))
        if state[kernel.UNSORTED]:
            self._check_repeated_features(b, size, rows, values)
        if rows:
            self.id_sizes.append(np.diff(b.id_ends[:rows], prepend=0))
            self.line_sizes.add(np.diff(b.row_ends[:rows], prepend=0), self.id_sizes[-1])
            self.id_bytes.append(b.ids[: state[kernel.ID_BYTES]].copy())
        self._add_features(b, size, rows, values)
        self.rows += rows
        self.lines += int(state[kernel.LINES])

    def _read_header(self, text: bytes) -> None:
        """Collect the names of features in the comments before the first document."""
        start = 0
        while start < len(text):
            end = text.index(b"\n", start)
            line = text[start:end].strip()
            if line and not line.startswith(b"#"):
                self.in_header = False
                self._set_names()
                return
            if match := FEATURE_NAME.fullmatch(line):
                self.header.append((int(match[1]), match[2].decode("utf-8", "surrogateescape")))
            start = end + 1

    def _set_names(self) -> None:
        """Accept names of features that count from 0 or 1 without gaps; else warn."""
        numbers, names = [n for n, _ in self.header], [name for _, name in self.header]
        if not numbers:
            return
        first = 0 if self.zero_based else 1
        if self.zero_based is None and numbers[0] == 0:
            first = 0
        if numbers != list(range(first, first + len(numbers))):
            problem = f"are not numbered {first}, {first + 1}, .."
        elif len(set(names)) < len(names) or not all(names):
            problem = "are empty or not distinct"
        elif self.n_features is not None and len(names) != self.n_features:
            problem = f"are {len(names)} for n_features={self.n_features}"
        else:
            self.names, self.first = tuple(names), first
            return
        self._ignore_names(f"the feature names in its first lines {problem}")

    def _ignore_names(self, problem: str) -> None:
        self.names = None
        self.warnings.append(f"{problem}; they are ignored.")
        warn_about(str(self.path), self.warnings[-1:])

    @property
    def min_width(self) -> int | None:
        """The smallest number of features, if it is known."""
        return self.n_features if self.names is None else len(self.names)

    def _add_features(self, b: _Buffers, size: int, rows: int, values: int) -> None:
        smallest, largest = int(self.state[kernel.MIN_INDEX]), int(self.state[kernel.MAX_INDEX])
        if smallest < self.first:
            if self.zero_based is False:
                self._raise_value(
                    b,
                    size,
                    int(np.argmin(b.indices[:values])),
                    "a feature 0 occurs, but zero_based=False means that features count from 1.",
                    error=FeatureZero,
                )
            self.sink.shift()  # so far features counted from 1: insert feature 0 in front
            self.first = 0
            self._drop_names(b, size, int(np.argmin(b.indices[:values])))
        width = max(largest + 1 - self.first, self.min_width or 0)
        if self.names is not None and width > len(self.names):
            over = int(np.argmax(b.indices[:values] - self.first >= len(self.names)))
            self._drop_names(b, size, over)
        if self.n_features is not None and width > self.n_features:
            over = int(np.argmax(b.indices[:values] - self.first >= self.n_features))
            self._raise_value(
                b,
                size,
                over,
                f"the feature number {b.indices[over]} exceeds n_features={self.n_features}.",
            )
        if isinstance(self.sink, DenseSink) and too_wide(
            self.rows + rows, width, self.sink.values + values
        ):
            if self.sparse is False:
                raise DataError(
                    f"{self.path}: {width} features are too many for a dense array.",
                    Advice("Read it with {}.", "sparse", True),
                )
            self.sink = self.sink.to_sparse()
        columns = b.indices[:values] - self.first
        overflow = self.sink.add(b.row_ends[:rows], columns, b.values[:values], width)
        if overflow is not None:
            self._raise_value(
                b,
                size,
                overflow,
                f"{b.values[overflow]} does not fit into float32; {FLOAT64_COMMAND}.",
                advice=Advice("Read it with {}.", "dtype", "float64"),
            )

    def _drop_names(self, b: _Buffers, size: int, value: int) -> None:
        """Ignore the names since a feature has none; an error if datasets with names were taken."""
        if self.names is None:
            return
        number = int(b.indices[value])
        if self.datasets_taken:
            message = f"feature {number} has no name, unlike the {len(self.names)} above."
            self._raise_value(b, size, value, message)
        self._ignore_names(
            f"the first lines name {len(self.names)} features, and feature {number} has no name"
        )

    def _add_queries(self, b: _Buffers, count: int) -> None:
        names = b.query_names[: self.state[kernel.QID_BYTES]].tobytes()
        start = 0
        for row, end in zip(
            b.query_rows[:count].tolist(), b.query_ends[:count].tolist(), strict=True
        ):
            number = self.queries.setdefault(names[start:end], len(self.queries))
            start = end
            if not self.segments or self.segments[-1][0] != number:
                self.segments.append((number, self.rows + row))

    def _parse_hard_numbers(self, b: _Buffers, count: int) -> None:
        """Parse the numbers that the kernel left to Python."""
        for target, start, end in b.fallbacks[:count].reshape(-1, 3).tolist():
            word = bytes(b.text[start:end])
            value = fallback_number(word)
            if value is None:
                before = bytes(b.text[:start])
                line = self.lines + before.count(b"\n") + 1
                column = start - before.rfind(b"\n")
                message = ERROR_MESSAGES[kernel.BAD_LABEL if target < 0 else kernel.BAD_VALUE]
                got = repr(word[:40].decode("utf-8", "replace"))
                raise DataError(f"{location(self.path, line, column)}: {message.format(got=got)}")
            if target < 0:
                b.labels[-1 - target] = value
            else:
                b.values[target] = value

    def _check_repeated_features(self, b: _Buffers, size: int, rows: int, values: int) -> None:
        """Refuse a feature that occurs twice in a line; features may be in any order."""
        row = np.repeat(np.arange(rows), np.diff(b.row_ends[:rows], prepend=0))
        order = np.lexsort((b.indices[:values], row))
        r, index = row[order], b.indices[:values][order]
        repeated = np.flatnonzero((r[1:] == r[:-1]) & (index[1:] == index[:-1])) + 1
        if len(repeated):
            value = int(order[repeated].min())
            message = f"the feature {b.indices[value]} occurs twice in this line."
            self._raise_value(b, size, value, message, last=True)

    # --- errors

    def _check_last_line(self) -> None:
        """Warn if the file seems truncated: its last line is unterminated and lacks something."""
        defect = self.line_sizes.last_line_defect() if self.unterminated else None
        if defect is not None:
            self.warnings.append(
                f"may be truncated: its last line does not end in a line feed, and has {defect}."
            )
            warn_about(str(self.path), self.warnings[-1:])

    def _check_labels(self, b: _Buffers, size: int, rows: int) -> None:
        finite = np.isfinite(b.labels[:rows])
        if not finite.all():
            row = int(np.argmin(finite))
            line, start = self._locate_row(b.text, size, row)
            raw = bytes(b.text[start:size]).split(b"\n", 1)[0]
            column = len(raw) - len(raw.lstrip()) + 1
            raise DataError(
                f"{location(self.path, line, column)}: the label must be finite; got "
                f"{b.labels[row]}."
            )

    def _locate_row(self, text: Bytes, size: int, row: int) -> tuple[int, int]:
        """Return the line number of a row, and where it starts in the chunk."""
        start, current = 0, -1
        for number, raw in enumerate(bytes(text[:size]).split(b"\n")):
            stripped = raw.strip()
            if stripped and not stripped.startswith(b"#"):
                current += 1
                if current == row:
                    return self.lines + number + 1, start
            start += len(raw) + 1
        raise AssertionError("the row is in the chunk")

    def _raise_value(
        self,
        b: _Buffers,
        size: int,
        value: int,
        message: str,
        last: bool = False,
        error: type[DataError] = DataError,
        advice: Advice | None = None,
    ) -> NoReturn:
        """Raise an error at the value-th feature of the chunk; `last`: at its last occurrence."""
        rows = int(self.state[kernel.ROWS])
        row = int(np.searchsorted(b.row_ends[:rows], value, side="right"))
        line, start = self._locate_row(b.text, size, row)
        raw = bytes(b.text[start:size]).split(b"\n", 1)[0].split(b"#", 1)[0]
        matches = list(re.finditer(rb"(?<=\s)0*%d:" % int(b.indices[value]), raw))
        column = matches[-1 if last else 0].start() + 1 if matches else 1
        raise error(f"{location(self.path, line, column)}: {message}", advice)

    def _fail(self, code: int, text: Bytes, size: int) -> NoReturn:
        """Raise the error that the kernel reported."""
        pos, start = int(self.state[kernel.ERROR_AT]), int(self.state[kernel.USED])
        line = self.lines + int(self.state[kernel.LINES]) + 1
        line_start = bytes(text[start : min(start + 200, size)]).lstrip()
        if code in (kernel.BAD_LABEL, kernel.NO_QID) and line_start.startswith(b"qid:"):
            code, pos = kernel.BAD_LABEL, start
        got = bytes(text[pos : min(pos + 200, size)]).split(b"\n", 1)[0].split()
        word = repr(got[0][:40].decode("utf-8", "replace")) if got else "the end of the line"
        raise DataError(
            f"{location(self.path, line, pos - start + 1)}: {ERROR_MESSAGES[code].format(got=word)}"
        )

    # --- the result

    def take(self) -> Dataset:
        """Return what was read since the last call; the reader starts an empty dataset."""
        dataset = self._dataset()
        self.datasets_taken += 1
        self._reset(dataset.is_sparse)
        return dataset

    def _dataset(self) -> Dataset:
        if not self.rows:
            raise DataError(f"{self.path}: contains no documents.")
        y = np.concatenate(self.labels)
        numbers = np.array([query for query, _ in self.segments], np.int64)
        starts = np.array([row for _, row in self.segments], np.int64)
        lengths = np.diff(starts, append=self.rows)
        counts = np.bincount(numbers, weights=lengths).astype(np.int64)
        offsets = offsets_from_lengths(counts)
        ids = None
        if any(chunk.any() for chunk in self.id_sizes):
            ends = np.cumsum(np.concatenate(self.id_sizes), dtype=np.int64)
            ids = Ids.from_packed(np.concatenate(self.id_bytes), ends)
        X = self.sink.finish(self.min_width)
        order = None
        if len(self.queries) < len(self.segments):
            warn(INTERLEAVED.format(source=self.path))
            order = np.argsort(np.repeat(numbers, lengths), kind="stable")
            X, y = X[order], y[order]
            ids = None if ids is None else ids[order].compact()
        queries = Ids.from_values(self.queries)
        return Dataset(
            X,
            y,
            offsets,
            queries,
            ids,
            self.names,
            str(self.path),
            order,
            zero_based=self.first == 0,
        )
