"""Completeness of judgments: unjudged documents, what they could change, and pool bias."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import Bools, FirstpageWarning, Ints, Table, Tabular
from firstpage.data import Qrels, Run, sort_groups
from firstpage.evaluation.measures.convention import Convention
from firstpage.evaluation.measures.evaluate_systems import EvaluationRequest
from firstpage.evaluation.measures.registry import MeasureLike, measures_by_text
from firstpage.evaluation.measures.sources import as_column, named_systems, read_truth
from firstpage.evaluation.measures.unjudged import in_first_ranks, judged_rows, with_relevant

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
    """The result of `fp.planning.check_pool`: how much unjudged documents could change.

    Attributes
    ----------
    rows : tuple of PoolRow
        One per system and measure.
    depth : int
        Number of first ranks that are looked at.

    Examples
    --------
    >>> import firstpage as fp
    >>> report = fp.planning.check_pool([{"q": {"x": 3, "a": 2}}], {"q": {"a": 1}}, measures="RR")
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

    def summary_table(self) -> Table:
        head = [
            "system",
            "measure",
            f"judged@{self.depth}",
            "depth",
            "non-relevant",
            "condensed",
            "relevant",
        ]
        several = any(row.left_out is not None for row in self.rows)
        head += ["unique", "left out", "bias"] if several else []
        rows = []
        for row in self.rows:
            cells = [
                row.system,
                row.measure,
                f"{row.judged:.1%}",
                str(row.pool_depth),
                f"{row.nonrelevant:.4f}",
                f"{row.condensed:.4f}",
                f"{row.relevant:.4f}",
            ]
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
        return self.summary_table().text()

    __repr__ = __str__


def check_pool(
    systems: Mapping[str, Any] | Iterable[Any],
    truth: Any,
    *,
    measures: MeasureLike | Iterable[MeasureLike] = "NDCG@10",
    depth: int = DEFAULT_DEPTH,
    convention: str | Convention = "default",
    k: int | None = None,
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
    convention : str or Convention, default "default"
        How rankings and judgments are interpreted.
    k : int, optional
        Depth of a top-k truth into which graded labels are converted first.

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
    >>> row = fp.planning.check_pool([run], qrels, measures="RR").rows[0]
    >>> row.nonrelevant, row.condensed, row.relevant
    (0.5, 1.0, 1.0)
    """
    qrels = as_column(read_truth(truth), Qrels)
    runs = {name: as_column(run, Run) for name, run in named_systems(systems).items()}
    tops = {name: _top_documents(run, qrels, depth) for name, run in runs.items()}
    parsed, plain_lists = measures_by_text(measures), Convention(convention)
    request = EvaluationRequest(parsed, plain_lists, k)
    condensed = EvaluationRequest(parsed, Convention(plain_lists, condensed=True), k)
    rows = []
    for name, run in runs.items():
        judged = judged_rows(run, qrels) >= 0
        alone = _unique_rows(name, tops)
        without = _without_judgments(qrels, alone) if len(runs) > 1 else None
        plain = _means(request, run, qrels)
        short = _means(condensed, run, qrels)
        full = _means(request, run, with_relevant(run, qrels, depth))
        left_out = {} if without is None else _means(request, run, without)
        fraction, pool_depth = _judged_depth(run, judged, depth)
        unique = int((qrels.values[alone] > 0).sum())
        rows += [
            PoolRow(
                name,
                text,
                fraction,
                pool_depth,
                plain[text],
                short[text],
                full[text],
                unique,
                left_out.get(text),
            )
            for text in parsed
        ]
    return PoolReport(tuple(rows), depth)


def _means(request: EvaluationRequest, run: Run, qrels: Qrels) -> dict[str, float]:
    with warnings.catch_warnings():  # the report itself tells of unjudged documents
        warnings.simplefilter("ignore", FirstpageWarning)
        return request.evaluate(run, qrels).means


def _top_documents(run: Run, qrels: Qrels, depth: int) -> Ints:
    """Return the rows of the judgments that the run has in its first ranks."""
    rows = judged_rows(run, qrels)
    top = rows[in_first_ranks(run, depth)]
    return np.unique(top[top >= 0])


def _unique_rows(name: str, tops: Mapping[str, Ints]) -> Ints:
    """Return the judged documents that only this run has in its first ranks."""
    others: Sequence[Ints] = [rows for other, rows in tops.items() if other != name]
    elsewhere = np.unique(np.concatenate(others)) if others else np.empty(0, np.int64)
    return np.setdiff1d(tops[name], elsewhere)


def _without_judgments(qrels: Qrels, rows: Ints) -> Qrels:
    remaining = np.ones(len(qrels.values), bool)
    remaining[rows] = False
    return qrels.select_rows(remaining)


def _judged_depth(run: Run, judged: Bools, depth: int) -> tuple[float, int]:
    """Return the judged fraction of the first ranks, and the depth that 95 % of queries reach."""
    first = in_first_ranks(run, depth)
    fraction = float(judged[first].mean()) if first.any() else 1.0
    order = sort_groups(run.values, run.offsets)[0]
    depths = []
    for lo, hi in zip(run.offsets[:-1].tolist(), run.offsets[1:].tolist(), strict=True):
        unjudged = np.flatnonzero(~judged[order[lo:hi]])
        depths.append(int(unjudged[0]) if len(unjudged) else hi - lo)
    return fraction, int(np.quantile(depths, 0.05, method="lower")) if depths else 0
