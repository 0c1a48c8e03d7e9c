"""Wins and losses: the queries that two systems differ on most, with the documents of both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Literal

import numpy as np

from firstpage.core import DataError, Floats, Ints, Table, Tabular
from firstpage.data import Column, Dataset, Ids, Qrels, Run, Truth, group_rows
from firstpage.evaluation.comparison.comparison import TIE_TOLERANCE, Comparison
from firstpage.evaluation.measures.sources import (
    as_column,
    named_systems,
    read_truth,
    resolve_inputs,
)
from firstpage.evaluation.measures.unjudged import condensed

MAX_PAIRS = 6  # pairs of systems whose queries are shown
MAX_SIDES = 4  # systems whose documents are shown for a hard query
Kind = Literal["win", "loss", "hard"]


@dataclass(frozen=True)
class RankedDocument:
    """A document at its rank.

    Attributes
    ----------
    document : str
        Its id; documents without one are numbered by their row, as in "row 7".
    grade : float or None
        Its grade; None where it is unjudged.
    score : float
        Its score.
    """

    document: str
    grade: float | None
    score: float


@dataclass(frozen=True)
class QueryCase:
    """A query, and what systems rank first for it.

    Attributes
    ----------
    kind : {"win", "loss", "hard"}
        Whether the first system wins or loses against the second, or the query is hard for all.
    query : str
        Its id.
    values : dict of str to float
        Value of the measure, by system.
    documents : dict of str to tuple of RankedDocument
        The first documents of each system.
    """

    kind: Kind
    query: str
    values: dict[str, float]
    documents: dict[str, tuple[RankedDocument, ...]]

    @property
    def difference(self) -> float:
        """Value of the first system minus that of the second."""
        first, second = list(self.values.values())[:2]
        return first - second

    def to_dict(self) -> dict[str, Any]:
        """Return the case as a dictionary."""
        documents = {name: [dict(vars(d)) for d in ds] for name, ds in self.documents.items()}
        record = {"kind": self.kind, "query": self.query, "values": self.values}
        more = {} if self.kind == "hard" else {"difference": self.difference}
        return {**record, **more, "documents": documents}

    def table(self, measure: str) -> Table:
        """Return the documents of the systems side by side."""
        values = [f"{name} {value:.4f}" for name, value in self.values.items()]
        title = f"{self.kind}: query {self.query}, {measure} {', '.join(values)}"
        title += "" if self.kind == "hard" else f" ({self.difference:+.4f})"
        head = ["rank", *(cell for name in self.documents for cell in (name, "grade"))]
        rows = []
        for rank, row in enumerate(zip_longest(*self.documents.values()), 1):
            cells = [cell for document in row for cell in _cells(document)]
            rows.append([str(rank), *cells])
        return Table(head, rows, title, left_aligned=len(head))


@dataclass(frozen=True)
class WinsAndLosses(Tabular):
    """Queries to look at, with their documents; the result of `fp.wins_and_losses`.

    Attributes
    ----------
    measure : str
        Text of the measure.
    cases : tuple of QueryCase
        Wins and losses of each pair of systems, largest first, then the hardest queries.
    note : str
        What is left out; empty where nothing is.

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": {"q": {"x": 2, "y": 1}}, "b": {"q": {"x": 1, "y": 2}}}
    >>> qrels = {"q": {"x": 1, "y": 0}}
    >>> comparison = fp.compare(systems, qrels, measures="RR", baseline="a")
    >>> case = fp.wins_and_losses(comparison, systems, qrels).cases[0]
    >>> case.kind, case.query, case.documents["a"][0].document
    ('loss', 'q', 'x')
    """

    measure: str
    cases: tuple[QueryCase, ...]
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the cases as a dictionary.

        Returns
        -------
        dict
            The measure and the cases.
        """
        return {"measure": self.measure, "cases": [case.to_dict() for case in self.cases]}

    def tables(self) -> list[Table]:
        """Return one table of documents per case.

        Returns
        -------
        list of Table
            The documents of the systems side by side.
        """
        return [case.table(self.measure) for case in self.cases]

    def summary_table(self) -> Table:
        rows = [
            [case.kind, case.query, *(" / ".join(part) for part in _named(case.values))]
            for case in self.cases
        ]
        return Table(
            ["kind", "query", "systems", self.measure], rows, note=self.note, left_aligned=3
        )

    def _frame_columns(self) -> dict[str, Any]:
        rows = [
            (case.kind, case.query, name, case.values[name], rank, *vars(document).values())
            for case in self.cases
            for name, documents in case.documents.items()
            for rank, document in enumerate(documents, 1)
        ]
        names = ("kind", "query", "system", self.measure, "rank", "document", "grade", "score")
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        return {name: list(column) for name, column in zip(names, columns, strict=True)}

    def __str__(self) -> str:
        texts = [table.text() for table in self.tables()] or ["no query differs"]
        return "\n\n".join([*texts, *([self.note] if self.note else [])])

    __repr__ = __str__


def wins_and_losses(
    comparison: Comparison,
    systems: Mapping[str, Any] | Iterable[Any],
    truth: Any,
    *,
    qid: Any = None,
    docid: Any = None,
    measure: str | None = None,
    count: int = 3,
    depth: int = 5,
) -> WinsAndLosses:
    """Return the queries that systems differ on most, and the hardest ones, with their documents.

    Parameters
    ----------
    comparison : Comparison
        The systems, as `compare` measured them.
    systems, truth, qid, docid
        What `compare` was given.
    measure : str, optional
        Text of the measure, as it was requested; by default the first.
    count : int, default 3
        Number of wins, of losses and of hard queries.
    depth : int, default 5
        Number of documents of each system; tied ones are in the order of the input.

    Returns
    -------
    WinsAndLosses
        Wins and losses per pair of systems, and the queries with the lowest mean over systems.

    Raises
    ------
    DataError
        If the systems are not those of the comparison, or a number is less than 1.

    Examples
    --------
    >>> import firstpage as fp
    >>> systems = {"a": {"q": {"x": 2, "y": 1}}, "b": {"q": {"x": 1, "y": 2}}}
    >>> qrels = {"q": {"x": 1, "y": 0}}
    >>> comparison = fp.compare(systems, qrels, measures="RR", baseline="a")
    >>> print(fp.wins_and_losses(comparison, systems, qrels).cases[0].table("RR").text())
    loss: query q, RR b 0.5000, a 1.0000 (-0.5000)
    rank  b  grade  a  grade
    ────  ─  ─────  ─  ─────
    1     y  0      x  1
    2     x  1      y  0
    """
    if count < 1 or depth < 1:
        raise DataError(f"count and depth must be at least 1; got {count} and {depth}.")
    named = named_systems(systems)
    judgments = read_truth(truth, comparison.evaluations[0].measures)
    if set(named) != set(comparison.systems):
        raise DataError(
            f"the comparison is of {', '.join(comparison.systems)}; the systems are "
            f"{', '.join(named)}."
        )
    first = comparison.evaluations[0]
    text = first.texts[0] if measure is None else first.text_of(measure)
    values = comparison.values(text)
    sign = -1.0 if comparison.lower_is_better(text) else 1.0
    queries = list(comparison.queries)
    only_judged = comparison.evaluations[0].convention.condensed
    ranked = {
        name: _RankedQueries.join(system, judgments, qid, docid, only_judged)
        for name, system in named.items()
    }

    def case(kind: Kind, query: int, sides: list[int]) -> QueryCase:
        names = [comparison.systems[side] for side in sides]
        return QueryCase(
            kind,
            queries[query],
            {name: float(values[side, query]) for name, side in zip(names, sides, strict=True)},
            {name: ranked[name].first(queries[query], depth) for name in names},
        )

    pairs = comparison._pairs()
    cases = []
    for a, b in pairs[:MAX_PAIRS]:
        gain = sign * (values[a] - values[b])
        for kind, direction in (("win", 1.0), ("loss", -1.0)):
            order = np.argsort(-direction * gain, kind="stable")[:count]
            chosen = [q for q in order.tolist() if direction * gain[q] > TIE_TOLERANCE]
            cases += [case(kind, q, [a, b]) for q in chosen]  # type: ignore[arg-type]
    hardest = np.argsort(sign * values.mean(axis=0), kind="stable")[:count]
    sides = list(range(min(len(named), MAX_SIDES)))
    cases += [case("hard", q, sides) for q in hardest.tolist()]
    note = ""
    if len(pairs) > MAX_PAIRS:
        note = f"wins and losses of the first {MAX_PAIRS} of {len(pairs)} pairs of systems"
    return WinsAndLosses(text, tuple(cases), note)


@dataclass(frozen=True, eq=False)
class _RankedQueries:
    """The scores, grades and names of the documents of a system, by query."""

    number: dict[str, int]
    offsets: Ints
    scores: Floats
    docids: Ids | None
    rows: Ints  # of the documents in the input, to name those without ids
    labels: Floats | None
    grades: dict[str, dict[str, float]]

    @classmethod
    def join(
        cls, system: Any, truth: Any, qid: Any, docid: Any, only_judged: bool
    ) -> _RankedQueries:
        """Return the documents of a system with the judgments of the truth."""
        system, truth, qid, docid = resolve_inputs(system, truth, qid, docid)
        if hasattr(truth, "flatten"):  # judgments of subtopics
            truth = truth.flatten()
        if isinstance(system, (Column, Mapping)):
            run, qrels = as_column(system, Run), as_column(truth, Qrels)
            run = condensed(run, qrels) if only_judged else run
            grades = qrels.to_dict()
            queries, offsets, ids, scores = run.queries, run.offsets, run.docids, run.values
            return cls(
                _numbers(queries), offsets, scores, ids, np.arange(len(scores)), None, grades
            )
        scores = np.asarray(system, np.float64).ravel()
        order, ids = None, None
        if isinstance(truth, Dataset):
            labels, offsets, queries, ids = truth.y, truth.offsets, truth.queries, truth.docids
        elif isinstance(truth, Truth):
            labels, offsets, queries = truth.labels, truth.offsets, truth.queries
        elif qid is None:
            raise DataError("documents are shown of runs, and of scores of data in memory.")
        else:
            labels = np.asarray(truth, np.float64)
            queries, offsets, order = group_rows(qid, len(labels))
            ids = None if docid is None else Ids.from_values(docid)
        rows = np.arange(len(scores)) if order is None else order
        if order is not None:
            scores, labels = scores[order], labels[order]
            ids = None if ids is None else ids[order]
        return cls(_numbers(queries), offsets, scores, ids, rows, np.asarray(labels), {})

    def first(self, query: str, depth: int) -> tuple[RankedDocument, ...]:
        """Return the first documents of a query; none where the system lacks it."""
        q = self.number.get(query)
        if q is None:
            return ()
        low, high = int(self.offsets[q]), int(self.offsets[q + 1])
        order = low + np.argsort(-self.scores[low:high], kind="stable")[:depth]
        return tuple(self._document(query, int(row)) for row in order)

    def _document(self, query: str, row: int) -> RankedDocument:
        name = f"row {self.rows[row] + 1}" if self.docids is None else self.docids[row]
        if self.labels is None:
            grade = self.grades.get(query, {}).get(name)
        else:
            grade = float(self.labels[row])
        return RankedDocument(name, grade, float(self.scores[row]))


def _numbers(queries: Ids) -> dict[str, int]:
    return {query: number for number, query in enumerate(queries)}


def _named(values: Mapping[str, float]) -> tuple[list[str], list[str]]:
    return list(values), [f"{value:.4f}" for value in values.values()]


def _cells(document: RankedDocument | None) -> tuple[str, str]:
    if document is None:
        return "", ""
    grade = "-" if document.grade is None else f"{document.grade:g}"
    return document.document, grade
