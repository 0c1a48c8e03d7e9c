"""The streaming reader behind `read_letor`: chunks of text to the arrays of a Dataset."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from firstpage.data.dataset import INTERLEAVED, Dataset, warn_about
from firstpage.data.formats.feature_buffers import DenseSink, SparseSink, too_wide
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.io.files import BOM, open_bytes
from firstpage.errors import DataError, FirstpageWarning, at
from firstpage.kernels.parsing import letor as kernel
from firstpage.kernels.parsing.numbers import powers, spelled_number
from firstpage.types import Array, Bytes, Ints, Progress

CHUNK_BYTES = 1 << 20
MIN_LINES_TO_COMPARE = 3  # lines: what they have in common may be chance
LINE_FEED, BLANK = 10, 32

ERROR_MESSAGES = {
    kernel.BAD_LABEL: (
        "the line must begin with a number, the label, and begins with {got}; any number will do "
        "where documents are only ranked."
    ),
    kernel.NO_QID: "after the label 'qid:' must follow, and {got} does.",
    kernel.EMPTY_QID: "'qid:' has no id after it.",
    kernel.BAD_INDEX: "a feature must read 'number:value', and reads {got}.",
    kernel.BAD_VALUE: "the value of a feature must be a number, and is {got}.",
    kernel.HUGE_INDEX: "the feature number in {got} is larger than 2147483647.",
}


class FeatureZero(DataError):
    """There is a feature 0 where features count from 1."""


@dataclass
class _Buffers:
    """Room for what one chunk of text can hold at most."""

    size: int

    def __post_init__(self) -> None:
        rows, values = self.size // 7 + 2, self.size // 4 + 2  # "0 qid:1" and " 1:0"
        self.text = np.empty(self.size + 1, np.uint8)  # and a line feed that a file may lack
        self.labels = np.empty(rows)
        self.row_ends = np.empty(rows, np.int64)
        self.indices = np.empty(values, np.int64)
        self.values = np.empty(values)
        self.query_rows = np.empty(rows, np.int64)
        self.query_ends = np.empty(rows, np.int64)
        self.query_names = np.empty(self.size, np.uint8)
        self.id_ends = np.empty(rows, np.int64)
        self.ids = np.empty(self.size, np.uint8)
        self.hards = np.empty(3 * (rows + values), np.int64)

    def doubled(self) -> _Buffers:
        new = _Buffers(2 * self.size)
        new.text[: self.size] = self.text[: self.size]
        return new


@dataclass
class _LineSizes:
    """What lines hold, the last one apart: features, and the length of the document id."""

    lines: int = 0
    least_features: int = 2**62  # of all lines but the last
    least_id: int = 2**62
    last_features: int = 2**62
    last_id: int = 2**62

    def add(self, features: Ints, ids: Ints) -> None:
        """Take in the lines of a chunk."""
        self.lines += len(features)
        before = min(self.least_features, self.last_features)
        self.least_features = int(features[:-1].min(initial=before))
        self.least_id = int(ids[:-1].min(initial=min(self.least_id, self.last_id)))
        self.last_features, self.last_id = int(features[-1]), int(ids[-1])

    def last_lacks(self) -> str | None:
        """Return what the last line alone lacks, in words; None: nothing."""
        if self.lines <= MIN_LINES_TO_COMPARE:
            return None
        if self.least_id > 0 and not self.last_id:
            return "no document id, as all others have"
        if self.last_features < self.least_features:
            return f"fewer features ({self.last_features}) than any other line"
        return None


def _whole_lines(text: Bytes, held: int) -> int:
    """The length of the whole lines in text[:held], looked for from the end."""
    window = 4096
    while True:
        start = max(held - window, 0)
        found = text[start:held].tobytes().rfind(b"\n")
        if found >= 0 or start == 0:
            return start + found + 1 if found >= 0 else 0
        window *= 4


class LetorReader:
    """Reads one file once."""

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
        self.first = 0 if zero_based else 1  # the number of the first feature
        self.zero_based = zero_based
        self.taken = 0
        self.cell = np.zeros(1, np.uint64)
        self.state = np.zeros(kernel.STATE_SIZE, np.int64)
        self.state[kernel.GREATEST], self.state[kernel.LEAST] = -1, 2**62
        self.lines = 0
        self.unended = False  # no line feed at the end of the file
        self.line_sizes = _LineSizes()
        self.remarks: list[str] = []
        self._forget(sparse)

    def _forget(self, sparse: bool | None) -> None:
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
        for _ in self.chunks(progress):
            pass
        return self.take()

    def chunks(self, progress: Progress | None) -> Iterator[None]:
        """Read on, pausing after each chunk of text; what was read can be taken then."""
        with open_bytes(self.path) as (stream, position):
            total = self.path.stat().st_size
            # A small file needs little room; of a pipe nobody knows the size.
            buffers = _Buffers(
                min(CHUNK_BYTES, max(total, 64)) if self.path.is_file() else CHUNK_BYTES
            )
            held = 0
            while True:
                if held == buffers.size:  # one line is longer than the chunk
                    buffers = buffers.doubled()
                got = stream.readinto(buffers.text[held : buffers.size].data)
                held += got
                if not got and held and buffers.text[held - 1] != LINE_FEED:
                    buffers.text[held] = LINE_FEED
                    held += 1
                    self.unended = True
                used = _whole_lines(buffers.text, held)
                if used:
                    if not self.lines and bytes(buffers.text[:3]) == BOM:
                        buffers.text[:3] = BLANK
                    self._chunk(buffers, used)
                    if isinstance(self.sink, DenseSink) and not self.taken:
                        self.sink.expect(self.rows * total // max(position(), 1))
                    held -= used
                    buffers.text[:held] = buffers.text[used : used + held].copy()
                if progress is not None:
                    progress(position(), total)
                if not got:
                    break
                yield
        self._check_last_line()

    def _chunk(self, b: _Buffers, size: int) -> None:
        state = self.state
        state[kernel.LINES] = 0
        code = kernel.parse_letor(
            b.text, size, *powers(), self.cell, self.cell.view(np.float64),
            b.labels, b.row_ends, b.indices, b.values,
            b.query_rows, b.query_ends, b.query_names, b.id_ends, b.ids, b.hards, state,
        )  # fmt: skip
        if code:
            self._fail(code, b.text, size)
        rows, values = int(state[kernel.ROWS]), int(state[kernel.VALUES])
        self._finish_hard_numbers(b, int(state[kernel.HARDS]))
        self._check_labels(b, size, rows)
        self.labels.append(b.labels[:rows].copy())
        self._take_queries(b, int(state[kernel.QUERIES]))
        if state[kernel.UNSORTED]:
            self._check_repeats(b, size, rows, values)
        if rows:
            self.id_sizes.append(np.diff(b.id_ends[:rows], prepend=0))
            self.line_sizes.add(np.diff(b.row_ends[:rows], prepend=0), self.id_sizes[-1])
            self.id_bytes.append(b.ids[: state[kernel.ID_BYTES]].copy())
        self._take_features(b, size, rows, values)
        self.rows += rows
        self.lines += int(state[kernel.LINES])

    def _take_features(self, b: _Buffers, size: int, rows: int, values: int) -> None:
        least, greatest = int(self.state[kernel.LEAST]), int(self.state[kernel.GREATEST])
        if least < self.first:
            if self.zero_based is False:
                self._raise_value(
                    b,
                    size,
                    int(np.argmin(b.indices[:values])),
                    "there is a feature 0, and zero_based=False says that they count from 1.",
                    kind=FeatureZero,
                )
            self.sink.shift()  # what was read counted from 1: feature 0 comes in front
            self.first = 0
        width = max(greatest + 1 - self.first, self.n_features or 0)
        if self.n_features is not None and width > self.n_features:
            over = int(np.argmax(b.indices[:values] - self.first >= self.n_features))
            self._raise_value(
                b,
                size,
                over,
                f"there is a feature {b.indices[over]}, and n_features={self.n_features}.",
            )
        if isinstance(self.sink, DenseSink) and too_wide(
            self.rows + rows, width, self.sink.values + values
        ):
            if self.sparse is False:
                raise DataError(
                    f"{self.path}: {width} features are too many for a dense array; "
                    "read it with sparse=True."
                )
            self.sink = self.sink.to_sparse()
        columns = b.indices[:values] - self.first
        lost = self.sink.add(b.row_ends[:rows], columns, b.values[:values], width)
        if lost is not None:
            self._raise_value(
                b, size, lost,
                f"{b.values[lost]} does not fit into float32; read it with dtype='float64'.",
            )  # fmt: skip

    def _take_queries(self, b: _Buffers, count: int) -> None:
        names = b.query_names[: self.state[kernel.QID_BYTES]].tobytes()
        start = 0
        for row, end in zip(
            b.query_rows[:count].tolist(), b.query_ends[:count].tolist(), strict=True
        ):
            number = self.queries.setdefault(names[start:end], len(self.queries))
            start = end
            if not self.segments or self.segments[-1][0] != number:
                self.segments.append((number, self.rows + row))

    def _finish_hard_numbers(self, b: _Buffers, count: int) -> None:
        for which, start, end in b.hards[:count].reshape(-1, 3).tolist():
            word = bytes(b.text[start:end])
            value = spelled_number(word)
            if value is None:
                before = bytes(b.text[:start])
                line = self.lines + before.count(b"\n") + 1
                column = start - before.rfind(b"\n")
                says = ERROR_MESSAGES[kernel.BAD_LABEL if which < 0 else kernel.BAD_VALUE]
                got = repr(word[:40].decode("utf-8", "replace"))
                raise DataError(f"{at(self.path, line, column)}: {says.format(got=got)}")
            if which < 0:
                b.labels[-1 - which] = value
            else:
                b.values[which] = value

    def _check_repeats(self, b: _Buffers, size: int, rows: int, values: int) -> None:
        """Features out of order are fine; the same one twice in a row is not."""
        row = np.repeat(np.arange(rows), np.diff(b.row_ends[:rows], prepend=0))
        order = np.lexsort((b.indices[:values], row))
        r, index = row[order], b.indices[:values][order]
        twice = np.flatnonzero((r[1:] == r[:-1]) & (index[1:] == index[:-1])) + 1
        if len(twice):
            at_value = int(order[twice].min())
            says = f"the feature {b.indices[at_value]} stands twice in this line."
            self._raise_value(b, size, at_value, says, last=True)

    # --- errors

    def _check_last_line(self) -> None:
        """Warn where the file seems cut off: its last line does not end, and lacks something."""
        lacks = self.line_sizes.last_lacks() if self.unended else None
        if lacks is not None:
            self.remarks.append(
                f"may be cut off: its last line does not end in a line feed, and has {lacks}."
            )
            warn_about(str(self.path), self.remarks, stacklevel=5)

    def _check_labels(self, b: _Buffers, size: int, rows: int) -> None:
        finite = np.isfinite(b.labels[:rows])
        if not finite.all():
            row = int(np.argmin(finite))
            line, start = self._row_place(b.text, size, row)
            raw = bytes(b.text[start:size]).split(b"\n", 1)[0]
            column = len(raw) - len(raw.lstrip()) + 1
            raise DataError(
                f"{at(self.path, line, column)}: the label is {b.labels[row]}, and must be finite."
            )

    def _row_place(self, text: Bytes, size: int, row: int) -> tuple[int, int]:
        """(line number, start in the chunk) of a row; looked for again, as it is rarely asked."""
        start, seen = 0, -1
        for number, raw in enumerate(bytes(text[:size]).split(b"\n")):
            bare = raw.strip()
            if bare and not bare.startswith(b"#"):
                seen += 1
                if seen == row:
                    return self.lines + number + 1, start
            start += len(raw) + 1
        raise AssertionError("the row is in the chunk")

    def _raise_value(
        self, b: _Buffers, size: int, value: int, says: str, last: bool = False,
        kind: type[DataError] = DataError,
    ) -> NoReturn:  # fmt: skip
        """Fail at the value-th feature of the chunk; `last`: where its number stands last."""
        rows = int(self.state[kernel.ROWS])
        row = int(np.searchsorted(b.row_ends[:rows], value, side="right"))
        line, start = self._row_place(b.text, size, row)
        raw = bytes(b.text[start:size]).split(b"\n", 1)[0].split(b"#", 1)[0]
        found = list(re.finditer(rb"(?<=\s)0*%d:" % int(b.indices[value]), raw))
        column = found[-1 if last else 0].start() + 1 if found else 1
        raise kind(f"{at(self.path, line, column)}: {says}")

    def _fail(self, code: int, text: Bytes, size: int) -> NoReturn:
        pos, start = int(self.state[kernel.TROUBLE]), int(self.state[kernel.USED])
        line = self.lines + int(self.state[kernel.LINES]) + 1
        bare = bytes(text[start : min(start + 200, size)]).lstrip()
        if code in (kernel.BAD_LABEL, kernel.NO_QID) and bare.startswith(b"qid:"):
            code, pos = kernel.BAD_LABEL, start
        got = bytes(text[pos : min(pos + 200, size)]).split(b"\n", 1)[0].split()
        word = repr(got[0][:40].decode("utf-8", "replace")) if got else "the end of the line"
        raise DataError(
            f"{at(self.path, line, pos - start + 1)}: {ERROR_MESSAGES[code].format(got=word)}"
        )

    # --- the result

    def take(self) -> Dataset:
        """What was read so far, or since the last time; the reader forgets it."""
        found = self._dataset()
        self.taken += 1
        self._forget(found.is_sparse)
        return found

    def _dataset(self) -> Dataset:
        if not self.rows:
            raise DataError(f"{self.path}: there is no document in it.")
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
        X = self.sink.finish(self.n_features)
        order = None
        if len(self.queries) < len(self.segments):
            warnings.warn(INTERLEAVED.format(what=self.path), FirstpageWarning, stacklevel=4)
            order = np.argsort(np.repeat(numbers, lengths), kind="stable")
            X, y = X[order], y[order]
            ids = None if ids is None else ids[order].compact()
        queries = Ids.from_values(self.queries)
        return Dataset(X, y, offsets, queries, ids, None, str(self.path), order)
