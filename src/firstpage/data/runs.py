"""Runs and judgments in memory: one value per document of each query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from firstpage.core import Advice, Bools, DataError, Floats, Ints, inherit_sections, location
from firstpage.data.column_names import DOCUMENT_NAMES, QUERY_NAMES, SCORE_NAMES
from firstpage.data.frames import find_column, frame_numbers, grade_names
from firstpage.data.groups import (
    check_offsets,
    check_query_weights,
    duplicate_rows,
    group_rows,
    offsets_from_lengths,
    query_rows,
)
from firstpage.data.ids import Ids, is_missing

LINE_FEED = 10
MAX_ID_BYTES = 4096  # of the fields before the document in a line


class Documents(Protocol):
    """Documents with ids, grouped by query: a Run, Qrels, or a Dataset with document ids."""

    @property
    def queries(self) -> Ids: ...
    @property
    def offsets(self) -> Ints: ...
    @property
    def docids(self) -> Ids: ...
    @property
    def source(self) -> str: ...


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
    numbered : bool, default False
        Whether the document ids are ranges of the text of that file, so that errors name lines.

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
    numbered: bool = field(default=False, repr=False, kw_only=True)

    value_name: ClassVar[str] = "value"
    fields: ClassVar[tuple[str, ...]] = ()  # fields of a line of the file

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        inherit_sections(cls)

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

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        qid: str | None = None,
        docid: str | None = None,
        value: str | None = None,
        name: str = "",
    ) -> Self:
        """Return the column of a data frame (pandas, polars) with one row per document.

        Parameters
        ----------
        frame : data frame
            The rows, in any order.
        qid, docid, value : str, optional
            The columns of query ids, document ids and values.  By default they are found by the
            names that PyTerrier, ir_measures and ranx use, such as `qid`, `docno` and `score`.
        name : str, default ""
            The name of the system.

        Returns
        -------
        Qrels or Run
            An object of this class.

        Raises
        ------
        DataError
            If a column is missing, an id is missing, or a value is not a number.
        """
        source = cls.__name__.lower() if cls is not Column else "values"
        query = qid or find_column(frame, QUERY_NAMES, "query ids", source)
        document = docid or find_column(frame, DOCUMENT_NAMES, "document ids", source)
        values = grade_names(frame) if cls is Qrels else SCORE_NAMES
        number = value or find_column(frame, values, f"{cls.value_name}s", source)
        ids = np.asarray(frame[document])
        missing = [row for row, key in enumerate(ids.tolist()) if is_missing(key)]
        if missing:
            raise DataError(f"{document} of row {missing[0]} of the {source} is missing.")
        return cls.from_arrays(
            np.asarray(frame[query]), ids, frame_numbers(frame, number, source), name
        )

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return nested dictionaries, the form of pytrec_eval and ranx.

        Returns
        -------
        dict
            {query: {document: value}}.

        Raises
        ------
        DataError
            If a document occurs twice in a query.
        """
        names, values = list(self.docids), self.values.tolist()
        ends = self.offsets.tolist()
        nested = {
            query: dict(zip(names[lo:hi], values[lo:hi], strict=True))
            for query, lo, hi in zip(self.queries, ends, ends[1:], strict=False)
        }
        if sum(map(len, nested.values())) < len(values):
            raise self._duplicate_error()
        return nested

    def _duplicate_error(self) -> DataError:
        every = np.ones(len(self.values), bool)
        row = int(duplicate_rows(self.docids.hashes, self.offsets, every)[0])
        return duplicate_error(self, row, "the run" if isinstance(self, Run) else "qrels")

    def line_of(self, row: int) -> int | None:
        """Return the line of the file that a row was read from; None where it is unknown.

        Parameters
        ----------
        row : int
            The index of the document.

        Returns
        -------
        int or None
            The number of the line, from 1.
        """
        if not self.numbered:
            return None
        before = self.docids.data[: self.docids.starts[row]]
        return int(np.count_nonzero(before == LINE_FEED)) + 1

    def second_field(self, row: int) -> str:
        """Return the second field of the line that a row was read from; "" where it is unknown.

        Parameters
        ----------
        row : int
            The index of the document.

        Returns
        -------
        str
            The iteration of judgments, or the subtopic of diversity judgments.
        """
        if not self.numbered:
            return ""
        start = int(self.docids.starts[row])
        before = bytes(self.docids.data[max(0, start - MAX_ID_BYTES) : start])
        words = before.rpartition(b"\n")[2].split()
        return words[-1].decode("utf-8", "replace") if len(words) > 1 else ""

    def select_rows(self, selected: Bools) -> Self:
        """Return the documents of the rows that are true; a query may be left without any.

        Parameters
        ----------
        selected : ndarray of bool of shape (n_docs,)
            Whether each row is selected.

        Returns
        -------
        Qrels or Run
            An object of this class, with the same queries.
        """
        rows = np.flatnonzero(selected)
        offsets = offsets_from_lengths(selected)[self.offsets]
        return replace(self, offsets=offsets, docids=self.docids[rows], values=self.values[rows])

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


def duplicate_error(column: Documents, row: int, name: str) -> DataError:
    """Return the error for a document that a query repeats; `name` is "the run" for a run."""
    query = column.queries[int(np.searchsorted(column.offsets, row, side="right")) - 1]
    line_of = getattr(column, "line_of", None)  # a Run or Qrels, read from a file
    line = None if line_of is None else line_of(row)
    where = location(column.source, line) if column.source else name
    hint, advice = "", None
    if name == "the run":
        hint = "; drop one"
        if line is not None:
            advice = Advice("Or read the run with {}, which says which line counts.", "duplicates")
    elif _has_subtopics(column, row):
        hint = (
            "; their second fields differ, so these may be judgments of subtopics, which "
            "fp.read_diversity_qrels and measures such as alpha-nDCG@10 read"
        )
    return DataError(
        f"{where}: document {column.docids[row]!r} occurs twice in query {query!r}{hint}.", advice
    )


def _has_subtopics(column: Documents, row: int) -> bool:
    """Return whether the lines of a repeated document differ in the second field."""
    second_field = getattr(column, "second_field", None)
    if second_field is None:
        return False
    query = int(np.searchsorted(column.offsets, row, side="right")) - 1
    rows = range(int(column.offsets[query]), int(column.offsets[query + 1]))
    same = [other for other in rows if column.docids[other] == column.docids[row]]
    return len({second_field(other) for other in same}) > 1
