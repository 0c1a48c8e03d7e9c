"""TREC files: `qrels` (query, iteration, document, grade) and `run` (.., rank, score, tag).

Files are read at once into columns; uploads are read line by line, with limits.  Both accept the
same lines and raise the same errors.

`trec_tabs` has the rule by which blanks or tabs separate the fields, `trec_writer` the writers.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import numpy as np

from firstpage.data.dataset import INTERLEAVED, Dataset
from firstpage.data.formats.classic_qrels import as_trec
from firstpage.data.formats.row_reader import ByteStream, ReadLimits, read_lines
from firstpage.data.formats.trec_tabs import hide_blanks, split_fields
from firstpage.data.groups import (
    check_offsets,
    check_query_weights,
    group_rows,
    offsets_from_lengths,
    query_rows,
)
from firstpage.data.ids import Ids
from firstpage.data.io.files import read_all
from firstpage.errors import DataError, FirstpageWarning, location
from firstpage.kernels.parsing import trec as kernel
from firstpage.kernels.parsing.numbers import fallback_number, powers
from firstpage.types import Bytes, Floats, Ints

ColumnType = TypeVar("ColumnType", bound="Column")


@dataclass(frozen=True, eq=False)
class Column:
    """One value per document of each query, grouped by query: the base of `Qrels` and `Run`.

    Parameters
    ----------
    queries : Ids
        The id of each query.
    offsets : ndarray of shape (n_queries + 1,)
        Query `q` owns the rows `offsets[q]:offsets[q + 1]`.
    docids : Ids
        The id of each document.
    values : ndarray of shape (n_docs,)
        The value of each document; NaN is an error.
    name : str, default ""
        The name of the system, a run's tag.
    source : str, default ""
        The file that the data were read from.

    Raises
    ------
    DataError
        If the lengths do not agree, or a value is NaN.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.Run.from_dict({"q1": {"a": 0.5, "b": 2.0}}, name="bm25")
    Run(bm25: 1 queries, 2 documents)
    """

    queries: Ids
    offsets: Ints
    docids: Ids
    values: Floats
    name: str = ""
    source: str = field(default="", repr=False)

    value_name: ClassVar[str] = "value"
    fields: ClassVar[tuple[str, ...]] = ()  # fields of a line of the file

    def __post_init__(self) -> None:
        for name in ("offsets", "values"):
            view = getattr(self, name).view()
            view.setflags(write=False)
            object.__setattr__(self, name, view)
        if not len(self.docids) == len(self.values) == int(self.offsets[-1]):
            raise DataError(
                f"{self.source or self.name}: {len(self.docids)} documents, {len(self.values)} "
                f"{self.value_name}s and {int(self.offsets[-1])} rows in queries; the three must "
                "be equal."
            )
        check_offsets(self.offsets, self.queries, len(self.values), self.source or self.value_name)
        bad = np.isnan(self.values)
        if bad.any():
            row = int(np.argmax(bad))
            query = self.queries[int(np.searchsorted(self.offsets, row, side="right")) - 1]
            raise DataError(
                f"{self.source or self.value_name}: the {self.value_name} of document "
                f"{self.docids[row]!r} in query {query!r} is not a number (NaN)."
            )

    def __len__(self) -> int:
        """Return the number of queries."""
        return len(self.queries)

    def __repr__(self) -> str:
        label = self.name or self.source
        return f"{type(self).__name__}({label}: {len(self)} queries, {len(self.values)} documents)"

    @classmethod
    def from_dict(cls, table: Mapping[str, Mapping[str, float]], name: str = "") -> Self:
        """Return the column of nested mappings, the form of pytrec_eval and ranx.

        Parameters
        ----------
        table : mapping of str to mapping of str to float
            {query: {document: value}}.
        name : str, default ""
            The name of the system.

        Returns
        -------
        Qrels or Run
            An object of this class.

        Raises
        ------
        DataError
            If a value is not a number, or two keys denote one query.

        Examples
        --------
        >>> import firstpage as fp
        >>> fp.Qrels.from_dict({"q1": {"a": 2, "b": 0}}).labels.tolist()
        [2.0, 0.0]
        """
        if len({str(query) for query in table}) < len(table):
            raise DataError("two keys denote the same query id, such as 1 and '1'.")
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
    def from_arrays(cls, qid: Any, docid: Any, values: Any, name: str = "") -> Self:
        """Return the column of arrays with one entry per document, in any order.

        Parameters
        ----------
        qid : array_like of shape (n_docs,)
            Query ids.
        docid : iterable of length n_docs
            Document ids.
        values : array_like of shape (n_docs,)
            Grades or scores.
        name : str, default ""
            The name of the system.

        Returns
        -------
        Qrels or Run
            An object of this class.

        Raises
        ------
        DataError
            If the lengths do not agree.
        """
        numbers = np.array(values, np.float64)
        queries, offsets, order = group_rows(qid, len(numbers))
        ids = Ids.from_values(docid)
        if len(ids) != len(numbers):
            raise DataError(f"{len(ids)} document ids for {len(numbers)} {cls.value_name}s.")
        if order is not None:
            numbers, ids = numbers[order], ids[order]
        return cls(queries, offsets, ids, numbers, name)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return nested dictionaries, the form of pytrec_eval and ranx.

        Returns
        -------
        dict
            {query: {document: value}}.
        """
        names, values = list(self.docids), self.values.tolist()
        ends = self.offsets.tolist()
        return {
            query: dict(zip(names[lo:hi], values[lo:hi], strict=True))
            for query, lo, hi in zip(self.queries, ends, ends[1:], strict=False)
        }

    def select_queries(self, queries: Ints) -> Self:
        """Return the queries of these numbers, in this order.

        Parameters
        ----------
        queries : ndarray of int
            The indices of the queries.

        Returns
        -------
        Qrels or Run
            An object of this class.
        """
        return self._selected(queries)

    def _selected(self, queries: Ints) -> Self:
        rows = query_rows(self.offsets, queries)
        return replace(
            self,
            queries=self.queries[queries],
            offsets=offsets_from_lengths(np.diff(self.offsets)[queries]),
            docids=self.docids[rows],
            values=self.values[rows],
        )


@dataclass(frozen=True, eq=False, repr=False)
class Qrels(Column):
    """Relevance judgments: one grade per judged document.

    Parameters
    ----------
    queries : Ids
        The id of each query.
    offsets : ndarray of shape (n_queries + 1,)
        Query `q` owns the rows `offsets[q]:offsets[q + 1]`.
    docids : Ids
        The id of each document.
    values : ndarray of shape (n_docs,)
        The grade of each document.
    name : str, default ""
        A name, optional.
    source : str, default ""
        The file that the judgments were read from.
    query_weights : ndarray of shape (n_queries,), optional
        The weight of each query in training, such as the confidence of its judgments.

    Attributes
    ----------
    labels : ndarray of shape (n_docs,)
        The grades.

    Examples
    --------
    >>> import firstpage as fp
    >>> qrels = fp.Qrels.from_dict({"q1": {"a": 2, "b": 0}})
    >>> len(qrels), qrels.to_dict()
    (1, {'q1': {'a': 2.0, 'b': 0.0}})
    """

    value_name: ClassVar[str] = "grade"
    fields: ClassVar[tuple[str, ...]] = ("query", "iteration", "document", "grade")

    query_weights: Floats | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_query_weights(self.query_weights, len(self), self.source or "judgments")

    def _selected(self, queries: Ints) -> Self:
        weights = self.query_weights
        selected = super(Qrels, replace(self, query_weights=None))._selected(queries)
        return replace(selected, query_weights=None if weights is None else weights[queries])

    @property
    def labels(self) -> Floats:
        """The grades."""
        return self.values


class Run(Column):
    """The result of a retrieval system: one score per retrieved document.

    Parameters
    ----------
    queries : Ids
        The id of each query.
    offsets : ndarray of shape (n_queries + 1,)
        Query `q` owns the rows `offsets[q]:offsets[q + 1]`.
    docids : Ids
        The id of each document.
    values : ndarray of shape (n_docs,)
        The score of each document; larger is better.
    name : str, default ""
        The name of the system, the run's tag.
    source : str, default ""
        The file that the run was read from.

    Attributes
    ----------
    scores : ndarray of shape (n_docs,)
        The scores.

    Examples
    --------
    >>> import firstpage as fp
    >>> run = fp.Run.from_dict({"q1": {"a": 0.5, "b": 2.0}})
    >>> fp.evaluate(run, {"q1": {"a": 0, "b": 1}}, measures=["RR"])["RR"]
    1.0
    """

    value_name = "score"
    fields = ("query", "Q0", "document", "rank", "score", "tag")

    @property
    def scores(self) -> Floats:
        """The scores."""
        return self.values


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    """Read relevance judgments: lines of `query iteration document grade`.

    Also read, with a note, are the judgments of classic collections: SMART's lines of
    `query document 0 0` (CISI, CACM), and NPL's lists of relevant documents that end with `/`.

    Parameters
    ----------
    path : path
        The file, plain or compressed.

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


def read_run(path: str | os.PathLike[str]) -> Run:
    """Read a run: lines of `query Q0 document rank score tag`.

    The order comes from the scores alone, as in trec_eval; a warning says if the ranks contradict
    them.

    Parameters
    ----------
    path : path
        The file, plain or compressed.

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
    return _read(Run, Path(path))


def read_uploaded_rows(
    kind: type[Column], name: str, stream: ByteStream, limits: ReadLimits
) -> Iterator[tuple[str, str, str, float]]:
    """Yield the location (file:line), query, document and finite value of each line."""
    value_field = kind.fields.index(kind.value_name)
    for number, line in read_lines(name, stream, limits):
        words = split_fields(line.encode(), kind)
        if not words:
            continue
        if len(words) <= value_field:
            raise _too_few_fields(kind, location(name, number), len(words))
        if kind is Qrels and len(words) > len(kind.fields):
            raise _too_many_fields(kind, location(name, number))
        value = fallback_number(words[value_field])
        if value is None or not math.isfinite(value):
            raise _not_a_number(kind, location(name, number), words[value_field])
        yield location(name, number), words[0].decode(), words[2].decode(), value


def _read(cls: type[ColumnType], path: Path) -> ColumnType:
    """Return the column of a TREC file."""
    raw = read_all(path)
    if cls is Qrels:
        raw = as_trec(raw, str(path))
    original = np.frombuffer(raw if raw.endswith(b"\n") else raw + b"\n", np.uint8)
    text = hide_blanks(original, cls) if b"\t" in raw else original
    n_lines = int(np.count_nonzero(text == 10))
    query, starts, ends, values = (np.empty(n_lines, t) for t in "qqqd")
    ranks = np.empty(n_lines, np.int64)
    hashes = np.empty(n_lines, np.uint64)
    query_starts, query_ends = np.empty(n_lines, np.int64), np.empty(n_lines, np.int64)
    table = np.full(max(16, 1 << (2 * n_lines - 1).bit_length()), -1, np.int64)
    cell = np.zeros(1, np.uint64)
    fallbacks = np.empty(3 * n_lines, np.int64)
    state = np.zeros(5, np.int64)
    code = kernel.parse_trec(
        text, len(text), cls.fields.index(cls.value_name), int(cls is Qrels),
        *powers(), cell, cell.view(np.float64),
        query, starts, ends, hashes, values, ranks, query_starts, query_ends, table, fallbacks,
        state,
    )  # fmt: skip
    if code:
        raise _error(cls, path, original, text, code, state)
    rows, queries = int(state[kernel.ROWS]), int(state[kernel.QUERIES])
    if not rows:
        raise DataError(f"{path}: contains no {cls.value_name}s.")
    for row, start, end in fallbacks[: state[kernel.FALLBACKS]].reshape(-1, 3).tolist():
        value = fallback_number(bytes(text[start:end]))
        if value is None:
            state[kernel.ERROR_AT] = start
            raise _error(cls, path, original, text, kernel.BAD_NUMBER, state)
        values[row] = value
    _check_not_nan(path, text, values[:rows], starts, cls.value_name)
    query = query[:rows]
    if cls is Run:
        _check_ranks(path, query, ranks[:rows], values[:rows])
    docids = Ids(original, starts[:rows], ends[:rows], hashes[:rows] if text is original else None)
    values = values[:rows]
    if not np.all(query[1:] >= query[:-1]):
        warnings.warn(INTERLEAVED.format(source=path), FirstpageWarning, stacklevel=3)
        order = np.argsort(query, kind="stable")
        docids, values = docids[order], values[order]
    offsets = offsets_from_lengths(np.bincount(query, minlength=queries))
    names = Ids(original, query_starts[:queries].copy(), query_ends[:queries].copy())
    tag = _tag(original) if cls is Run else ""
    return cls(names, offsets.astype(np.int64), docids, values, tag, str(path))


def _check_ranks(path: Path, query: Ints, ranks: Ints, scores: Floats) -> None:
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
        warnings.warn(
            f"{path}: ranks contradict the scores in {len(against)} of {queries} queries; the "
            "order comes from the scores, as in trec_eval.",
            FirstpageWarning,
            stacklevel=4,
        )
    elif later.any() and (scores[1:] == scores[:-1])[query[1:] == query[:-1]].all():
        warnings.warn(
            f"{path}: all documents of a query have the same score, despite their ranks; the order "
            "comes from the scores, as in trec_eval, so all are tied.",
            FirstpageWarning,
            stacklevel=4,
        )


def _tag(text: Bytes) -> str:
    """Return the tag: the sixth field of the first line."""
    for line in bytes(text[:4096]).split(b"\n"):
        words = split_fields(line, Run)
        if words:
            return words[5].decode("utf-8", "replace") if len(words) > 5 else ""
    return ""


def _check_not_nan(path: Path, text: Bytes, values: Floats, starts: Ints, name: str) -> None:
    bad = np.isnan(values)
    if bad.any():
        row = int(np.argmax(bad))
        line = int(np.count_nonzero(text[: starts[row]] == 10)) + 1
        raise DataError(f"{location(path, line)}: the {name} is not a number (NaN).")


def _error(
    kind: type[Column], path: Path, original: Bytes, text: Bytes, code: int, state: Ints
) -> DataError:
    """Return the error of the kernel; `text` is the original with hidden blanks."""
    pos = int(state[kernel.ERROR_AT])
    before = bytes(text[:pos])
    line, column = before.count(b"\n") + 1, pos - (before.rfind(b"\n") + 1) + 1
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
        "is it a run (--run) instead of judgments?"
    )


def _not_a_number(kind: type[Column], where: str, word: bytes) -> DataError:
    shown = word[:60].decode("utf-8", "replace")
    return DataError(f"{where}: the {kind.value_name} must be a number; got {shown!r}.")


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
    warnings.warn(
        f"{data.source}: {unnamed} of {data.n_docs} documents have no id; they are named by their "
        "query and position, such as 1-3.",
        FirstpageWarning,
        stacklevel=3,
    )
    names = data.docids if data.docids is not None else [""] * data.n_docs
    position = np.arange(data.n_docs) - np.repeat(data.offsets[:-1], data.lengths) + 1
    queries = data.queries.repeat(data.lengths)
    return Ids.from_values(
        name or f"{query}-{number}"
        for name, query, number in zip(names, queries, position.tolist(), strict=True)
    )
