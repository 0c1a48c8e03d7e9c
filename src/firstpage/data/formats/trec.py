"""TREC files: `qrels` (query, iteration, document, grade) and `run` (.., rank, score, tag).

Files are read at once into columns; uploads are read line by line, with limits.  Both accept the
same lines and raise the same errors.

A line with exactly one tab between its fields (3 in qrels, 5 in runs) is split at the tabs, so that
ids may contain blanks.  `trec_writer` writes such files where an id contains a blank; trec_eval
does not read them.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal, TypeVar, cast, get_args

import numpy as np

from firstpage.core import Bytes, DataError, Floats, Ints, location, warn
from firstpage.core.kernels.parsing import fallback_number, number_tables
from firstpage.core.kernels.parsing import trec as kernel
from firstpage.data.dataset import INTERLEAVED, Dataset
from firstpage.data.formats.classic_qrels import as_trec
from firstpage.data.formats.row_reader import ByteStream, ReadLimits, read_lines
from firstpage.data.groups import duplicate_rows, offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.io.files import BOM, decompressed, read_all
from firstpage.data.runs import Column, Qrels, Run

Duplicates = Literal["refuse", "first", "best"]


def resolve_duplicates(run: Run, duplicates: Duplicates) -> Run:
    """Return a run in which a document occurs once per query, with a warning about the others.

    "refuse" returns the run as it is: joining it with judgments raises an error.
    """
    if duplicates not in get_args(Duplicates):
        raise DataError(f"duplicates must be refuse, first or best; got {duplicates!r}.")
    if duplicates == "refuse":
        return run
    order = np.arange(len(run.values))
    if duplicates == "best":  # among equal scores, the first line
        query = np.repeat(np.arange(len(run)), np.diff(run.offsets))
        order = np.lexsort((-run.values, query))
    repeated = order[
        duplicate_rows(run.docids.hashes[order], run.offsets, np.ones(len(order), bool))
    ]
    if not len(repeated):
        return run
    row = int(repeated.min())
    query_id = run.queries[int(np.searchsorted(run.offsets, row, side="right")) - 1]
    counts = "that of the first line" if duplicates == "first" else "the best score"
    warn(
        f"{run.source or run.name or 'the run'}: {len(repeated):,} lines repeat a document of "
        f"their query, such as {run.docids[row]!r} in query {query_id!r}{_at_line(run, row)}; "
        f"{counts} counts."
    )
    remaining = np.ones(len(run.values), bool)
    remaining[repeated] = False
    return run.select_rows(remaining)


def _at_line(run: Run, row: int) -> str:
    line = run.line_of(row)
    return "" if line is None else f" (line {line})"


SECOND_FIELD = b"\t0"
HEAD_BYTES = 1 << 16  # in which the first line is looked for
TAB, LINE_FEED = 9, 10


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


STANDARD_INPUT = "-"
RANKS = "{source}: lines of three fields are read as query, document and rank (MS MARCO)."
IS_IT_A_RUN = "is it a run instead of judgments?"
ColumnType = TypeVar("ColumnType", bound="Column")


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """Read relevance judgments: lines of `query iteration document grade`.

    Also read, with a note, are the judgments of classic collections: SMART's lines of
    `query document 0 0` (CISI, CACM), and NPL's lists of relevant documents that end with `/`.

    Parameters
    ----------
    path : path
        The file, plain or compressed; "-" is standard input.

    Returns
    -------
    Qrels
        The judgments.

    Raises
    ------
    DataError
        If the file cannot be read or a line is malformed; the message names file, line and column.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "test.qrels")
    ...     fp.write_qrels(fp.Qrels.from_dict({"q1": {"a": 2, "b": 1}}), path)
    ...     fp.read_qrels(path).to_dict()
    {'q1': {'a': 2.0, 'b': 1.0}}
    """
    return _read(Qrels, Path(path))


def read_run(path: str | os.PathLike[str], duplicates: Duplicates = "refuse") -> Run:
    """Read a run: lines of `query Q0 document rank score tag`.

    The order comes from the scores alone, as in trec_eval; a warning says if the ranks contradict
    them.  Lines of `query document rank`, the form of MS MARCO, are also read, with a warning: the
    scores are then the negative ranks.

    Parameters
    ----------
    path : path
        The file, plain or compressed; "-" is standard input.
    duplicates : {"refuse", "first", "best"}, default "refuse"
        What a document that occurs twice in a query means: an error when the run is measured, the
        first line, or the line with the best score.

    Returns
    -------
    Run
        The run; its name is the tag of the first line.

    Raises
    ------
    DataError
        If the file cannot be read or a line is malformed; the message names file, line and column.

    Examples
    --------
    >>> import os, tempfile
    >>> import firstpage as fp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "bm25.run")
    ...     fp.write_run(fp.Run.from_dict({"q1": {"a": 2, "b": 1}}), path)
    ...     fp.read_run(path).to_dict()
    {'q1': {'a': 2.0, 'b': 1.0}}
    """
    return resolve_duplicates(_read(Run, Path(path)), duplicates)


def read_uploaded_rows(
    kind: type[Column], name: str, stream: ByteStream, limits: ReadLimits, notes: list[str]
) -> Iterator[tuple[str, str, str, float]]:
    """Yield the location (file:line), query, document and finite value of each line.

    How lines of three fields, and judgments of a classic format, are read is added to the notes.
    """
    first = True
    lines: Iterable[tuple[int, str]] = read_lines(name, stream, limits)
    for number, line in _classic_lines(name, lines, notes) if kind is Qrels else lines:
        raw = line.encode()
        words = raw.split() if kind is RankedLines else split_fields(raw, kind)
        if not words:
            continue
        if first and kind is Run and has_three_columns(raw):
            kind, words = RankedLines, raw.split()
            notes.append(RANKS.format(source=name))
        first = False
        where, value_field = location(name, number), kind.fields.index(kind.value_name)
        if len(words) <= value_field:
            raise _too_few_fields(kind, where, len(words))
        if kind is not Run and len(words) > len(kind.fields):
            raise _too_many_fields(kind, where)
        value = fallback_number(words[value_field])
        if value is None or not math.isfinite(value):
            raise _not_a_number(kind, where, words[value_field])
        if kind is RankedLines:
            if value < 0 or not value.is_integer():
                raise _not_a_rank(where, value)
            value = -value
        yield where, words[0].decode(), words[kind.fields.index("document")].decode(), value


def _classic_lines(
    name: str, lines: Iterable[tuple[int, str]], notes: list[str]
) -> Iterable[tuple[int, str]]:
    """Return the numbered lines of judgments in TREC's format."""
    numbered = list(lines)
    raw, note = as_trec("\n".join(line for _, line in numbered).encode(), name)
    if not note:
        return numbered
    notes.append(note)
    return enumerate(raw.decode().splitlines(), 1)


def _read(cls: type[ColumnType], path: Path) -> ColumnType:
    """Return the column of a TREC file, or of standard input."""
    piped = str(path) == STANDARD_INPUT
    source = "standard input" if piped else str(path)
    content = _standard_input() if piped else read_all(path)
    if cls is not Qrels:
        if has_three_columns(content):
            return cast("ColumnType", _ranked_run(content, source))
        return _parse(cls, content, source)
    content, note = as_trec(content, source)
    if not note:
        return _parse(cls, content, source)
    warn(note)
    return replace(_parse(cls, content, source), numbered=False)


def _standard_input() -> bytes:
    """Return standard input, decompressed, without its byte-order mark."""
    return decompressed(sys.stdin.buffer.read(), "standard input").removeprefix(BOM)


def _ranked_run(content: bytes, source: str) -> Run:
    """Return a run of lines `query document rank`; its scores are the negative ranks."""
    ranked = _parse(RankedLines, with_second_field(content), source)
    wrong = np.flatnonzero((ranked.values < 0) | (ranked.values != np.floor(ranked.values)))
    if len(wrong):
        row = int(wrong[0])
        raise _not_a_rank(location(source, ranked.line_of(row)), ranked.values[row])
    warn(RANKS.format(source=source))
    columns = (ranked.queries, ranked.offsets, ranked.docids, -ranked.values)
    return Run(*columns, "", source, numbered=True)


def _not_a_rank(where: str, value: float) -> DataError:
    return DataError(
        f"{where}: {value:g} is not a rank; lines of three fields are query, document and rank. "
        f"Scores need six fields: {' '.join(Run.fields)}."
    )


def _parse(cls: type[ColumnType], raw: bytes, source: str) -> ColumnType:
    """Return the column of the text of a TREC file."""
    original = np.frombuffer(raw if raw.endswith(b"\n") else raw + b"\n", np.uint8)
    tabbed = b"\t" in raw and cls is not RankedLines  # whose ids have no blanks
    text = hide_blanks(original, cls) if tabbed else original
    n_lines = int(np.count_nonzero(text == 10))
    query, starts, ends, values = (np.empty(n_lines, t) for t in "qqqd")
    ranks = np.empty(n_lines, np.int64)
    hashes = np.empty(n_lines, np.uint64)
    query_starts, query_ends = np.empty(n_lines, np.int64), np.empty(n_lines, np.int64)
    table = np.full(max(16, 1 << (2 * n_lines - 1).bit_length()), -1, np.int64)
    fallbacks = np.empty(3 * n_lines, np.int64)
    state = np.zeros(5, np.int64)
    value_field = cls.fields.index(cls.value_name) + (cls is RankedLines)
    code = kernel.parse_trec(
        buf=text,
        size=len(text),
        value_field=value_field,
        closed=int(cls is not Run),
        **number_tables(),
        query=query,
        doc_starts=starts,
        doc_ends=ends,
        doc_hashes=hashes,
        values=values,
        ranks=ranks,
        query_starts=query_starts,
        query_ends=query_ends,
        table=table,
        fallbacks=fallbacks,
        state=state,
    )
    if code:
        raise _error(cls, source, original, text, code, state)
    rows, queries = int(state[kernel.ROWS]), int(state[kernel.QUERIES])
    if not rows:
        raise DataError(f"{source}: contains no {cls.value_name}s.")
    for row, start, end in fallbacks[: state[kernel.FALLBACKS]].reshape(-1, 3).tolist():
        value = fallback_number(bytes(text[start:end]))
        if value is None:
            state[kernel.ERROR_AT] = start
            raise _error(cls, source, original, text, kernel.BAD_NUMBER, state)
        values[row] = value
    _check_not_nan(source, text, values[:rows], starts, cls.value_name)
    query = query[:rows]
    if cls is Run:
        _check_ranks(source, query, ranks[:rows], values[:rows])
    docids = Ids(original, starts[:rows], ends[:rows], hashes[:rows] if text is original else None)
    values = values[:rows]
    if not np.all(query[1:] >= query[:-1]):
        warn(INTERLEAVED.format(source=source))
        order = np.argsort(query, kind="stable")
        docids, values = docids[order], values[order]
    offsets = offsets_from_lengths(np.bincount(query, minlength=queries))
    names = Ids(original, query_starts[:queries].copy(), query_ends[:queries].copy())
    tag = _tag(original) if cls is Run else ""
    return cls(names, offsets.astype(np.int64), docids, values, tag, source, numbered=True)


def _check_ranks(path: str, query: Ints, ranks: Ints, scores: Floats) -> None:
    """Warn if ranks contradict the scores, which alone decide the order (as in trec_eval)."""
    same = query[1:] == query[:-1]
    if (~same | ((ranks[1:] > ranks[:-1]) & (scores[1:] < scores[:-1]))).all():
        return
    order = np.lexsort((-scores, ranks, query))
    query, ranks, scores = query[order], ranks[order], scores[order]
    later = (query[1:] == query[:-1]) & (ranks[1:] > ranks[:-1])
    against = np.unique(query[1:][later & (scores[1:] > scores[:-1])])
    if len(against):
        queries = len(np.unique(query))
        warn(
            f"{path}: ranks contradict the scores in {len(against)} of {queries} queries; the "
            "order comes from the scores, as in trec_eval."
        )
    elif later.any() and (scores[1:] == scores[:-1])[query[1:] == query[:-1]].all():
        warn(
            f"{path}: all documents of a query have the same score, despite their ranks; the order "
            "comes from the scores, as in trec_eval, so all are tied."
        )


def _tag(text: Bytes) -> str:
    """Return the tag: the sixth field of the first line."""
    for line in bytes(text[:4096]).split(b"\n"):
        words = split_fields(line, Run)
        if words:
            return words[5].decode("utf-8", "replace") if len(words) > 5 else ""
    return ""


def _check_not_nan(path: str, text: Bytes, values: Floats, starts: Ints, name: str) -> None:
    bad = np.isnan(values)
    if bad.any():
        row = int(np.argmax(bad))
        line = int(np.count_nonzero(text[: starts[row]] == 10)) + 1
        raise DataError(f"{location(path, line)}: the {name} is not a number (NaN).")


def _error(
    kind: type[Column], path: str, original: Bytes, text: Bytes, code: int, state: Ints
) -> DataError:
    """Return the error of the kernel; `text` is the original with hidden blanks."""
    pos = int(state[kernel.ERROR_AT])
    before = bytes(text[:pos])
    line, column = before.count(b"\n") + 1, pos - (before.rfind(b"\n") + 1) + 1
    if kind is RankedLines:  # the kernel reads lines with one field more
        column -= len(SECOND_FIELD)
        state[kernel.FIELD] -= 1
    where = location(path, line, column)
    if code == kernel.TOO_FEW:
        return _too_few_fields(kind, where, int(state[kernel.FIELD]))
    if code == kernel.TOO_MANY:
        return _too_many_fields(kind, where)
    word = bytes(text[pos : pos + 60]).split()[0]
    return _not_a_number(kind, where, bytes(original[pos : pos + len(word)]))


def _too_few_fields(kind: type[Column], where: str, count: int) -> DataError:
    problem = (
        f"{where}: the line has {count} field{'s' * (count != 1)} instead of "
        f"{len(kind.fields)}: {' '.join(kind.fields)}."
    )
    if kind is Qrels and count == 3:
        problem += (
            " If they are query, document and grade, convert them by awk '{print $1, 0, $2, $3}'; "
            "larger grades must be better, so write 5 - $3 for Cranfield's codes, of which 1 is "
            "the best."
        )
    if kind is Qrels and count == 2:
        problem += (
            " If they are query and relevant document, convert them by awk '{print $1, 0, $2, 1}'."
        )
    return DataError(problem)


def _too_many_fields(kind: type[Column], where: str) -> DataError:
    return DataError(
        f"{where}: the line has more than the {len(kind.fields)} fields {' '.join(kind.fields)}; "
        + ("they must be the same in all lines." if kind is RankedLines else IS_IT_A_RUN)
    )


def _not_a_number(kind: type[Column], where: str, word: bytes) -> DataError:
    shown = word[:60].decode("utf-8", "replace")
    return DataError(f"{where}: the {kind.value_name} must be a number; got {shown!r}.")


def split_fields(line: bytes, kind: type[Column]) -> list[bytes]:
    """Return the fields of a line, split at its tabs if it has one between any two fields."""
    if line.count(b"\t") != len(kind.fields) - 1:
        return line.split()
    return [field for field in map(bytes.strip, line.split(b"\t")) if field]


def hide_blanks(text: Bytes, kind: type[Column]) -> Bytes:
    """Return the text with placeholders for the blanks inside fields that tabs separate.

    Blanks then separate all fields, as the kernel expects.  The length of the text does not change.
    """
    tabs = np.flatnonzero(text == TAB)
    blank = (text == 32) | ((text >= 11) & (text <= 13))
    line_feeds = np.flatnonzero(text == LINE_FEED)
    tabs_per_line = np.diff(np.searchsorted(tabs, line_feeds), prepend=0)
    tabbed = tabs_per_line == len(kind.fields) - 1
    blank &= np.repeat(tabbed, np.diff(line_feeds, prepend=-1))
    edges = np.flatnonzero(np.diff(blank.view(np.int8), prepend=0, append=0))
    starts, ends = edges[::2], edges[1::2]  # of runs of blanks; a line feed ends the text
    around = np.stack([text[starts - 1], text[ends]])
    inside = ((around != TAB) & (around != LINE_FEED)).all(axis=0)
    if not inside.any():
        return text
    change = np.zeros(len(text), np.int8)
    change[starts[inside]], change[ends[inside]] = 1, -1
    hidden = text.copy()
    positions = np.flatnonzero(np.cumsum(change, dtype=np.int8))
    hidden[positions] = text[positions] % 8 + 1  # distinct, and neither blanks nor line feeds
    return hidden


def to_qrels(data: Dataset) -> Qrels:
    """Return the labels of a dataset as judgments."""
    return Qrels(data.queries, data.offsets, complete_docids(data), data.y, "", data.source)


def to_run(data: Dataset, scores: Iterable[float], name: str = "") -> Run:
    """Return scores of the documents of a dataset as a run."""
    values = np.asarray(scores, np.float64)
    return Run(data.queries, data.offsets, complete_docids(data), values, name, data.source)


def complete_docids(data: Dataset) -> Ids:
    """Return the document ids; documents without one are named `query-3`, with a warning."""
    unnamed = data.n_docs
    if data.docids is not None:
        unnamed = int((data.docids.ends == data.docids.starts).sum())
    if not unnamed:
        return data.docids  # type: ignore[return-value]
    warn(
        f"{data.source}: {unnamed} of {data.n_docs} documents have no id; they are named by their "
        "query and position, such as 1-3."
    )
    names = data.docids if data.docids is not None else [""] * data.n_docs
    position = np.arange(data.n_docs) - np.repeat(data.offsets[:-1], data.lengths) + 1
    queries = data.queries.repeat(data.lengths)
    return Ids.from_values(
        name or f"{query}-{number}"
        for name, query, number in zip(names, queries, position.tolist(), strict=True)
    )
