"""TREC files: `qrels` (query, iteration, document, grade) and `run` (.., rank, score, tag).

A file is read whole into columns; an upload line by line, with limits.  Both take the same lines
and say the same of others.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from firstpage.data.dataset import INTERLEAVED, Dataset
from firstpage.data.formats.letor import check_identifier
from firstpage.data.formats.row_reader import ByteStream, ReadLimits, read_lines
from firstpage.data.groups import (
    check_offsets,
    duplicate_rows,
    group_rows,
    offsets_from_lengths,
)
from firstpage.data.ids import Ids, encode_text
from firstpage.data.io.files import read_all, write_bytes
from firstpage.errors import DataError, FirstpageWarning, at
from firstpage.kernels.parsing import trec as kernel
from firstpage.kernels.parsing.numbers import powers, spelled_number
from firstpage.types import Bytes, Floats, Ints

Self = TypeVar("Self", bound="Column")


@dataclass(frozen=True, eq=False)
class Column:
    """One number for each named document of each query, grouped by query."""

    queries: Ids
    offsets: Ints
    docids: Ids
    values: Floats
    name: str = ""
    source: str = field(default="", repr=False)

    value_name: ClassVar[str] = "value"
    fields: ClassVar[tuple[str, ...]] = ()  # of a line of its file

    def __post_init__(self) -> None:
        for name in ("offsets", "values"):
            view = getattr(self, name).view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)
        if not len(self.docids) == len(self.values) == int(self.offsets[-1]):
            raise DataError(
                f"{self.source or self.name}: {len(self.docids)} documents, {len(self.values)} "
                f"{self.value_name}s and {int(self.offsets[-1])} rows in queries; they must be equal."
            )
        check_offsets(self.offsets, self.queries, len(self.values), self.source or self.value_name)
        bad = np.isnan(self.values)
        if bad.any():
            row = int(np.argmax(bad))
            query = self.queries[int(np.searchsorted(self.offsets, row, side="right")) - 1]
            raise DataError(
                f"{self.source or self.value_name}: the {self.value_name} of document {self.docids[row]!r} in "
                f"query {query!r} is not a number (NaN)."
            )

    def __len__(self) -> int:
        """The number of queries."""
        return len(self.queries)

    def __repr__(self) -> str:
        label = self.name or self.source
        return f"{type(self).__name__}({label}: {len(self)} queries, {len(self.values)} documents)"

    @classmethod
    def from_dict(
        cls: type[Self], table: Mapping[str, Mapping[str, float]], name: str = ""
    ) -> Self:
        """From {query: {document: value}}, the form of pytrec_eval and ranx."""
        if len({str(query) for query in table}) < len(table):
            raise DataError("two keys read as the same query id, such as 1 and '1'.")
        for query, docs in table.items():
            if not isinstance(docs, Mapping):
                raise DataError(f"query {query!r} must map documents to numbers; got {docs!r}.")
        lengths = [len(docs) for docs in table.values()]
        offsets = offsets_from_lengths(lengths)
        docids = Ids.from_values(doc for docs in table.values() for doc in docs)
        try:
            values = np.array([v for docs in table.values() for v in docs.values()], np.float64)
        except (TypeError, ValueError) as error:
            raise DataError(f"every {cls.value_name} must be a number ({error}).") from error
        return cls(Ids.from_values(table), offsets, docids, values, name)

    @classmethod
    def from_arrays(cls: type[Self], qid: Any, docid: Any, values: Any, name: str = "") -> Self:
        """From one query id, document id and value a row, in any order."""
        numbers = np.array(values, np.float64)
        queries, offsets, order = group_rows(qid, len(numbers))
        ids = Ids.from_values(docid)
        if len(ids) != len(numbers):
            raise DataError(f"{len(ids)} document ids for {len(numbers)} {cls.value_name}s.")
        if order is not None:
            numbers, ids = numbers[order], ids[order]
        return cls(queries, offsets, ids, numbers, name)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """{query: {document: value}}."""
        names, values = list(self.docids), self.values.tolist()
        ends = self.offsets.tolist()
        return {
            query: dict(zip(names[lo:hi], values[lo:hi], strict=True))
            for query, lo, hi in zip(self.queries, ends, ends[1:], strict=False)
        }


class Qrels(Column):
    """Relevance judgments: a grade for each judged document."""

    value_name = "grade"
    fields = ("query", "iteration", "document", "grade")

    @property
    def labels(self) -> Floats:
        return self.values


class Run(Column):
    """What a system retrieved: a score for each document; `name` is its tag."""

    value_name = "score"
    fields = ("query", "Q0", "document", "rank", "score", "tag")

    @property
    def scores(self) -> Floats:
        return self.values


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """Read `query iteration document grade` lines; plain or compressed."""
    return _read(Qrels, Path(path))


def read_run(path: str | os.PathLike[str]) -> Run:
    """Read `query Q0 document rank score tag` lines; the order comes from the scores alone."""
    return _read(Run, Path(path))


def read_uploaded_rows(
    kind: type[Column], name: str, stream: ByteStream, limits: ReadLimits
) -> Iterator[tuple[str, str, str, float]]:
    """Yield where each line stands (file:line), its query, its document and its finite value."""
    at_value = kind.fields.index(kind.value_name)
    for number, line in read_lines(name, stream, limits):
        words = line.encode().split()
        if not words:
            continue
        if len(words) <= at_value:
            raise _too_few(kind, at(name, number), len(words))
        if kind is Qrels and len(words) > len(kind.fields):
            raise _too_many(kind, at(name, number))
        value = spelled_number(words[at_value])
        if value is None or not math.isfinite(value):
            raise _no_number(kind, at(name, number), words[at_value])
        yield at(name, number), words[0].decode(), words[2].decode(), value


def _read(cls: type[Self], path: Path) -> Self:
    raw = read_all(path)
    text = np.frombuffer(raw if raw.endswith(b"\n") else raw + b"\n", np.uint8)
    most = int(np.count_nonzero(text == 10))  # rows, one per line
    query, starts, ends, values = (np.empty(most, t) for t in "qqqd")
    ranks = np.empty(most, np.int64)
    hashes = np.empty(most, np.uint64)
    query_starts, query_ends = np.empty(most, np.int64), np.empty(most, np.int64)
    table = np.full(max(16, 1 << (2 * most - 1).bit_length()), -1, np.int64)
    cell = np.zeros(1, np.uint64)
    hards = np.empty(3 * most, np.int64)
    state = np.zeros(5, np.int64)
    code = kernel.parse_trec(
        text, len(text), cls.fields.index(cls.value_name), int(cls is Qrels),
        *powers(), cell, cell.view(np.float64),
        query, starts, ends, hashes, values, ranks, query_starts, query_ends, table, hards, state,
    )  # fmt: skip
    if code:
        raise _error(cls, path, text, code, state)
    rows, queries = int(state[kernel.ROWS]), int(state[kernel.QUERIES])
    if not rows:
        raise DataError(f"{path}: there is no {cls.value_name} in it.")
    for row, start, end in hards[: state[kernel.HARDS]].reshape(-1, 3).tolist():
        value = spelled_number(bytes(text[start:end]))
        if value is None:
            state[kernel.TROUBLE] = start
            raise _error(cls, path, text, kernel.BAD_NUMBER, state)
        values[row] = value
    _check_finite(path, text, values[:rows], starts, cls.value_name)
    query = query[:rows]
    if cls is Run:
        _check_ranks(path, query, ranks[:rows], values[:rows])
    docids = Ids(text, starts[:rows], ends[:rows], hashes[:rows])
    values = values[:rows]
    if not np.all(query[1:] >= query[:-1]):
        warnings.warn(INTERLEAVED.format(what=path), FirstpageWarning, stacklevel=3)
        order = np.argsort(query, kind="stable")
        docids, values = docids[order], values[order]
    offsets = offsets_from_lengths(np.bincount(query, minlength=queries))
    names = Ids(text, query_starts[:queries].copy(), query_ends[:queries].copy())
    tag = _tag(text) if cls is Run else ""
    return cls(names, offsets.astype(np.int64), docids, values, tag, str(path))


def _check_ranks(path: Path, query: Ints, ranks: Ints, scores: Floats) -> None:
    """Warn of ranks that say another order than the scores, which alone count (as in trec_eval)."""
    same = query[1:] == query[:-1]
    if (~same | ((ranks[1:] > ranks[:-1]) & (scores[1:] < scores[:-1]))).all():
        return
    order = np.lexsort((-scores, ranks, query))
    query, ranks, scores = query[order], ranks[order], scores[order]
    later = (query[1:] == query[:-1]) & (ranks[1:] > ranks[:-1])
    against = np.unique(query[1:][later & (scores[1:] > scores[:-1])])
    if len(against):
        queries = len(np.unique(query))
        warnings.warn(
            f"{path}: ranks contradict the scores in {len(against)} of {queries} queries; the "
            "order comes from the scores, as in trec_eval.",
            FirstpageWarning,
            stacklevel=4,
        )
    elif later.any() and (scores[1:] == scores[:-1])[query[1:] == query[:-1]].all():
        warnings.warn(
            f"{path}: all documents of a query have the same score, whatever their rank; the order "
            "comes from the scores, as in trec_eval, so all are tied.",
            FirstpageWarning,
            stacklevel=4,
        )


def _tag(text: Bytes) -> str:
    """The sixth field of the first line that has one."""
    for line in bytes(text[:4096]).split(b"\n"):
        words = line.split()
        if words:
            return words[5].decode("utf-8", "replace") if len(words) > 5 else ""
    return ""


def _check_finite(path: Path, text: Bytes, values: Floats, starts: Ints, what: str) -> None:
    bad = np.isnan(values)
    if bad.any():
        row = int(np.argmax(bad))
        line = int(np.count_nonzero(text[: starts[row]] == 10)) + 1
        raise DataError(f"{at(path, line)}: the {what} is not a number (NaN).")


def _error(kind: type[Column], path: Path, text: Bytes, code: int, state: Ints) -> DataError:
    pos = int(state[kernel.TROUBLE])
    before = bytes(text[:pos])
    line, column = before.count(b"\n") + 1, pos - (before.rfind(b"\n") + 1) + 1
    where = at(path, line, column)
    if code == kernel.TOO_FEW:
        return _too_few(kind, where, int(state[kernel.FIELD]))
    if code == kernel.TOO_MANY:
        return _too_many(kind, where)
    return _no_number(kind, where, bytes(text[pos : pos + 60]).split()[0])


def _too_few(kind: type[Column], where: str, count: int) -> DataError:
    return DataError(
        f"{where}: the line has {count} field{'s' * (count != 1)} and must have "
        f"{len(kind.fields)}: {' '.join(kind.fields)}."
    )


def _too_many(kind: type[Column], where: str) -> DataError:
    return DataError(
        f"{where}: the line has more than the {len(kind.fields)} fields {' '.join(kind.fields)}; "
        "is this a run (--run), not judgments?"
    )


def _no_number(kind: type[Column], where: str, word: bytes) -> DataError:
    shown = word[:60].decode("utf-8", "replace")
    return DataError(f"{where}: the {kind.value_name} must be a number, and is {shown!r}.")


# --- writing


def write_qrels(qrels: Qrels | Dataset, path: str | os.PathLike[str]) -> None:
    """Write judgments; a dataset needs document ids."""
    table = qrels if isinstance(qrels, Column) else to_qrels(qrels)
    ends = table.offsets.tolist()
    _check_names(table)
    with write_bytes(Path(path)) as out:
        for query, lo, hi in zip(table.queries, ends, ends[1:], strict=False):
            rows = zip(table.docids[slice(lo, hi)], table.values[lo:hi].tolist(), strict=True)
            out.write(encode_text("".join(f"{query} 0 {doc} {_plain(v)}\n" for doc, v in rows)))


def write_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run, best score first; tied documents in the order of their names, downward."""
    ends = run.offsets.tolist()
    tag = run.name or "firstpage"
    _check_names(run)
    check_identifier(tag, "tag", "a TREC file")
    with write_bytes(Path(path)) as out:
        for query, lo, hi in zip(run.queries, ends, ends[1:], strict=False):
            rows = zip(run.values[lo:hi].tolist(), run.docids[slice(lo, hi)], strict=True)
            ranked = (
                f"{query} Q0 {doc} {rank} {score!r} {tag}\n"
                for rank, (score, doc) in enumerate(sorted(rows, reverse=True), 1)
            )
            out.write(encode_text("".join(ranked)))


def _check_names(table: Column) -> None:
    """Refuse what a TREC file cannot hold: ids with spaces, a document twice in a query."""
    repeated = duplicate_rows(table.docids.hashes, table.offsets, np.ones(len(table.values), bool))
    if len(repeated):
        row = int(repeated[0])
        query = table.queries[int(np.searchsorted(table.offsets, row, side="right")) - 1]
        raise DataError(
            f"{table.source or table.name}: document {table.docids[row]!r} stands twice in query "
            f"{query!r}, and a TREC file names it once; drop one."
        )
    for names, what in ((table.queries, "query id"), (table.docids, "document id")):
        for name in names:
            check_identifier(name, what, "a TREC file")


def _plain(value: float) -> str:
    return str(int(value)) if value.is_integer() else repr(value)


def to_qrels(data: Dataset) -> Qrels:
    """The labels of a dataset as judgments."""
    return Qrels(data.queries, data.offsets, complete_docids(data), data.y, "", data.source)


def to_run(data: Dataset, scores: Iterable[float], name: str = "") -> Run:
    """Scores for the documents of a dataset as a run."""
    values = np.asarray(scores, np.float64)
    return Run(data.queries, data.offsets, complete_docids(data), values, name, data.source)


def complete_docids(data: Dataset) -> Ids:
    """The document ids; documents without one are called by their place, `query-3`, with a
    warning."""
    bare = data.n_docs
    if data.docids is not None:
        bare = int((data.docids.ends == data.docids.starts).sum())
    if not bare:
        return data.docids  # type: ignore[return-value]
    warnings.warn(
        f"{data.source}: {bare} of {data.n_docs} documents have no id; they are called by their "
        "query and place, such as 1-3.",
        FirstpageWarning,
        stacklevel=3,
    )
    names = data.docids if data.docids is not None else [""] * data.n_docs
    place = np.arange(data.n_docs) - np.repeat(data.offsets[:-1], data.lengths) + 1
    queries = data.queries.repeat(data.lengths)
    return Ids.from_values(
        name or f"{query}-{number}"
        for name, query, number in zip(names, queries, place.tolist(), strict=True)
    )
