"""Completeness of judgments: unjudged documents, what they could change, and pool bias."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.data.formats.trec import Column, Qrels, Run
from firstpage.data.groups import offsets_from_lengths, sort_groups
from firstpage.data.joins import join_documents, match_queries
from firstpage.errors import DataError, FirstpageWarning
from firstpage.measures.evaluate import evaluate
from firstpage.measures.registry import MeasureLike, measures_by_text
from firstpage.measures.sources import named_systems, read_truth
from firstpage.table import Table
from firstpage.tabular import Tabular
from firstpage.types import Bools, Ints

DEFAULT_DEPTH = 10


@dataclass(frozen=True)
class PoolRow:
    """One system in one measure.

    Attributes
    ----------
    system, measure : str
        Name of the system, and text of the measure.
    judged : float
        Fraction of judged documents in the first ranks.
    pool_depth : int
        Number of first ranks that are judged in at least 95 % of the queries.
    nonrelevant : float
        Mean where unjudged documents are not relevant, as in trec_eval.
    condensed : float
        Mean where unjudged documents are removed from the ranking.
    relevant : float
        Mean where the unjudged documents of the first ranks have the highest grade.
    unique : int
        Relevant documents that no other system has in its first ranks.
    left_out : float or None
        Mean as if the system had not taken part in the pool: without the judgments of documents
        that only it retrieved.  None for a single system.
    """

    system: str
    measure: str
    judged: float
    pool_depth: int
    nonrelevant: float
    condensed: float
    relevant: float
    unique: int
    left_out: float | None


@dataclass(frozen=True)
class PoolReport(Tabular):
    """The result of `fp.check_pool`: how much unjudged documents could change.

    Attributes
    ----------
    rows : tuple of PoolRow
        One per system and measure.
    depth : int
        Number of first ranks that are looked at.

    Examples
    --------
    >>> import firstpage as fp
    >>> report = fp.check_pool([{"q": {"x": 3, "a": 2}}], {"q": {"a": 1}}, measures="RR")
    >>> report.rows[0].judged
    0.5
    """

    rows: tuple[PoolRow, ...]
    depth: int

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a dictionary.

        Returns
        -------
        dict
            The content of `firstpage pool --json`.
        """
        return {"depth": self.depth, "rows": [dict(vars(row)) for row in self.rows]}

    def _frame_columns(self) -> dict[str, Any]:
        names = list(PoolRow.__dataclass_fields__)
        return {name: [getattr(row, name) for row in self.rows] for name in names}

    def _summary_table(self) -> Table:
        head = [
            "system", "measure", f"judged@{self.depth}", "depth", "non-relevant", "condensed",
            "relevant",
        ]  # fmt: skip
        several = any(row.left_out is not None for row in self.rows)
        head += ["unique", "left out", "bias"] if several else []
        rows = []
        for row in self.rows:
            cells = [
                row.system, row.measure, f"{row.judged:.1%}", str(row.pool_depth),
                f"{row.nonrelevant:.4f}", f"{row.condensed:.4f}", f"{row.relevant:.4f}",
            ]  # fmt: skip
            if row.left_out is not None:
                bias = row.left_out - row.nonrelevant
                cells += [str(row.unique), f"{row.left_out:.4f}", f"{bias:+.4f}"]
            rows.append(cells)
        note = (
            "depth: first ranks judged in 95 % of the queries; non-relevant, condensed, relevant: "
            "unjudged documents count as not relevant, are removed, or have the highest grade. The "
            "last is an upper bound for measures that only gain from relevant documents (P, RR, "
            "DCG, ERR), not for those that divide by an ideal (NDCG, AP, Recall)"
        )
        if several:
            note += (
                "; left out: as if the system were not in the pool, which is what a new system of "
                "this kind would get"
            )
        return Table(head, rows, note=note, left_aligned=2)

    def __str__(self) -> str:
        return self._summary_table().text()

    __repr__ = __str__


def check_pool(
    systems: Mapping[str, Any] | Iterable[Any],
    truth: Any,
    *,
    measures: MeasureLike | Iterable[MeasureLike] = "NDCG@10",
    depth: int = DEFAULT_DEPTH,
    **settings: Any,
) -> PoolReport:
    """Measure how much unjudged documents could change, and the bias against unpooled systems.

    Parameters
    ----------
    systems : dict, iterable or str
        Runs, as in `compare`; one is enough.
    truth : Qrels, dict, data frame or path
        The judgments.
    measures : str, Measure or iterable of these, default "NDCG@10"
        Measures to compute.
    depth : int, default 10
        Number of first ranks that are looked at, and that made the pool.
    **settings
        Keyword arguments of `evaluate`, such as `convention`.

    Returns
    -------
    PoolReport
        One row per system and measure.

    Raises
    ------
    DataError
        If the systems are not runs, or share no query with the judgments.

    References
    ----------
    Zobel, How Reliable are the Results of Large-Scale Information Retrieval Experiments?, SIGIR
    1998 (leave out the unique documents of a run).
    Sakai, Alternatives to Bpref, SIGIR 2007 (condensed lists).

    Examples
    --------
    >>> import firstpage as fp
    >>> run, qrels = {"q": {"x": 3, "a": 2, "b": 1}}, {"q": {"a": 1, "b": 0}}
    >>> row = fp.check_pool([run], qrels, measures="RR").rows[0]
    >>> row.nonrelevant, row.condensed, row.relevant
    (0.5, 1.0, 1.0)
    """
    qrels = _as_column(read_truth(truth), Qrels)
    runs = {name: _as_column(run, Run) for name, run in named_systems(systems).items()}
    tops = {name: _top_documents(run, qrels, depth) for name, run in runs.items()}
    texts = list(measures_by_text(measures))
    rows = []
    for name, run in runs.items():
        judged = _judged_rows(run, qrels) >= 0
        alone = _unique_rows(name, tops)
        without = _without_judgments(qrels, alone) if len(runs) > 1 else None
        plain = _means(run, qrels, measures, settings)
        short = _means(condensed(run, qrels), qrels, measures, settings)
        full = _means(run, _with_relevant(run, qrels, judged, depth), measures, settings)
        left_out = {} if without is None else _means(run, without, measures, settings)
        fraction, pool_depth = _judged_depth(run, judged, depth)
        unique = int((qrels.values[alone] > 0).sum())
        rows += [
            PoolRow(
                name, text, fraction, pool_depth, plain[text], short[text], full[text], unique,
                left_out.get(text),
            )
            for text in texts
        ]  # fmt: skip
    return PoolReport(tuple(rows), depth)


def condensed(run: Any, truth: Any) -> Run:
    """Return a run without its unjudged documents: a condensed list (Sakai 2007).

    Parameters
    ----------
    run : Run, dict or data frame
        The run.
    truth : Qrels, dict or data frame
        The judgments.

    Returns
    -------
    Run
        The judged documents; a query may be left without any.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.condensed({"q": {"x": 3, "a": 2}}, {"q": {"a": 1}}).to_dict()
    {'q': {'a': 2.0}}
    """
    column, qrels = _as_column(run, Run), _as_column(truth, Qrels)
    judged = _judged_rows(column, qrels) >= 0
    result: Run = _selected_rows(column, judged)
    return result


def _as_column(value: Any, kind: type[Any]) -> Any:
    if isinstance(value, Column):
        return value
    if isinstance(value, Mapping):
        return kind.from_dict(value)
    if hasattr(type(value), "columns"):
        return kind.from_frame(value)
    raise DataError(
        f"unjudged documents are those of runs with judgments; got {type(value).__name__}."
    )


def _judged_rows(run: Column, qrels: Column) -> Ints:
    """Return the row in the judgments of every document of the run, -1 where it is unjudged."""
    return join_documents(run, qrels, match_queries(run.queries, qrels.queries))


def _selected_rows(column: Any, selected: Bools) -> Any:
    rows = np.flatnonzero(selected)
    offsets = offsets_from_lengths(selected)[column.offsets]
    values = column.values[rows]
    return replace(column, offsets=offsets, docids=column.docids[rows], values=values)


def _means(run: Run, qrels: Qrels, measures: Any, settings: dict[str, Any]) -> dict[str, float]:
    with warnings.catch_warnings():  # the report itself tells of unjudged documents
        warnings.simplefilter("ignore", FirstpageWarning)
        return evaluate(run, qrels, measures=measures, **settings).means


def _first_ranks(run: Column, depth: int) -> Bools:
    """Return which rows are in the first ranks of their query; ties in the order of the input."""
    order = sort_groups(run.values, run.offsets)[0]
    position = np.arange(len(order)) - np.repeat(run.offsets[:-1], np.diff(run.offsets))
    first = np.zeros(len(order), bool)
    first[order[position < depth]] = True
    return first


def _top_documents(run: Run, qrels: Qrels, depth: int) -> Ints:
    """Return the rows of the judgments that the run has in its first ranks."""
    rows = _judged_rows(run, qrels)
    top = rows[_first_ranks(run, depth)]
    return np.unique(top[top >= 0])


def _unique_rows(name: str, tops: Mapping[str, Ints]) -> Ints:
    """Return the judged documents that only this run has in its first ranks."""
    others: Sequence[Ints] = [rows for other, rows in tops.items() if other != name]
    elsewhere = np.unique(np.concatenate(others)) if others else np.empty(0, np.int64)
    return np.setdiff1d(tops[name], elsewhere)


def _without_judgments(qrels: Qrels, rows: Ints) -> Qrels:
    remaining = np.ones(len(qrels.values), bool)
    remaining[rows] = False
    result: Qrels = _selected_rows(qrels, remaining)
    return result


def _with_relevant(run: Run, qrels: Qrels, judged: Bools, depth: int) -> Qrels:
    """Return the judgments, and the highest grade for the unjudged documents of the first ranks."""
    added = ~judged & _first_ranks(run, depth)
    known = match_queries(run.queries, qrels.queries) >= 0
    added &= np.repeat(known, np.diff(run.offsets))
    if not added.any():
        return qrels
    rows = np.flatnonzero(added)
    query = np.repeat(np.arange(len(run)), np.diff(run.offsets))[rows]
    grade = max(float(qrels.values.max()), 1.0)
    names = list(run.queries)
    return Qrels.from_arrays(
        [*qrels.queries.repeat(np.diff(qrels.offsets)), *(names[q] for q in query)],
        [*qrels.docids, *run.docids[rows]],
        np.concatenate([qrels.values, np.full(len(rows), grade)]),
    )


def _judged_depth(run: Run, judged: Bools, depth: int) -> tuple[float, int]:
    """Return the judged fraction of the first ranks, and the depth that 95 % of queries reach."""
    first = _first_ranks(run, depth)
    fraction = float(judged[first].mean()) if first.any() else 1.0
    order = sort_groups(run.values, run.offsets)[0]
    depths = []
    for lo, hi in zip(run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True):
        unjudged = np.flatnonzero(~judged[order[lo:hi]])
        depths.append(int(unjudged[0]) if len(unjudged) else hi - lo)
    return fraction, int(np.quantile(depths, 0.05, method="lower")) if depths else 0
