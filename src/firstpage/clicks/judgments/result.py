"""The result of judge(): a grade per pair of query and document, with interval and confidence."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstpage.clicks.judgments.agreement import ClickAgreement, agreement
from firstpage.clicks.judgments.shrinkage import MAX_STRENGTH
from firstpage.clicks.sessions import grouped_ids
from firstpage.core import DataError, Floats, Ints, Table, Tabular, counted
from firstpage.data import Ids, Qrels, Run, offsets_from_lengths

LARGE_STRENGTH = 0.99 * MAX_STRENGTH  # of priors that mean equal rates
MAX_LISTED = 5  # undecided queries in the short table
ROW_FIELDS = (
    "query", "document", "estimate", "low", "high", "impressions", "clicks", "grade",
    "confidence", "first_page",
)  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class ClickJudgments(Tabular):
    """Graded judgments from clicks: the result of `fp.clicks.judge`.

    Attributes
    ----------
    method : str
        What the rates are: coec, ctr, sdbn, or the class of a click model.
    queries, documents : tuple of str
        The texts or ids that `query` and `document` are indices of.
    query, document : array of int
        The query and the document of each judgment, sorted by query.
    estimate, low, high : array of float
        Mean and 95 % interval of the posterior of the rate.
    impressions, clicks : array of int
        How often the document was displayed, and how many of these impressions were clicked.
    grade : array of int
        The number of levels that the rate exceeds.
    confidence : array of float
        The probability that the rate lies in its grade.
    first_page : array of int
        The number of impressions on a first page.
    query_rows, pages : array of int
        The queries with judgments, and how many pages of results each has.
    query_confidence : array of float
        The mean confidence over the impressions on first pages of each of these queries; NaN if
        there are none.
    more_pages : array of float
        How many more pages of results each needs until its first page is decided: 0 if it is, and
        infinite if a million times the log does not suffice.
    levels : tuple of float
        The levels of the rate between the grades.
    mean : float
        The mean rate of the log, towards which the means of queries are shrunk.
    strength, query_strength : float
        Pseudo-trials of the prior of a document and of that of a query's mean.
    required : float
        The confidence from which a first page is decided.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 200, document=["a", "b"] * 100, rank=[1, 2] * 50 + [2, 1] * 50,
    ...     clicked=[1, 0, 1, 0, 0, 0, 1, 1] * 25)
    >>> judgments = fp.clicks.judge(sessions, "ctr", grades=2)
    >>> judgments.clicks.tolist(), judgments.grade.tolist()
    ([75, 25], [1, 0])
    """

    method: str
    queries: tuple[str, ...]
    documents: tuple[str, ...]
    query: Ints
    document: Ints
    estimate: Floats
    low: Floats
    high: Floats
    impressions: Ints
    clicks: Ints
    grade: Ints
    confidence: Floats
    first_page: Ints
    query_rows: Ints
    pages: Ints
    query_confidence: Floats
    more_pages: Floats
    levels: tuple[float, ...]
    mean: float
    strength: float
    query_strength: float
    required: float

    def __len__(self) -> int:
        """Return the number of judgments."""
        return len(self.query)

    def of_spellings(self, groups: Ints) -> ClickJudgments:
        """Return the judgments of every spelling of a query.

        Parameters
        ----------
        groups : array of int
            For each query the one that stands for its spellings.

        Returns
        -------
        ClickJudgments
            Each spelling has the judgments of the query that stands for it.
        """
        number = np.full(len(self.queries), -1)
        number[self.query_rows] = np.arange(len(self.query_rows))
        spelled = np.flatnonzero(number[groups] >= 0)
        leader = groups[spelled]
        starts = np.searchsorted(self.query, leader)
        lengths = np.searchsorted(self.query, leader, side="right") - starts
        offsets = offsets_from_lengths(lengths)
        rows = np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])
        of_rows = {name: getattr(self, name)[rows] for name in ROW_FIELDS}
        of_rows["query"] = np.repeat(spelled, lengths)
        names = ("pages", "query_confidence", "more_pages")
        of_queries = {name: getattr(self, name)[number[leader]] for name in names}
        return replace(self, query_rows=spelled, **of_rows, **of_queries)

    def qrels(self, min_confidence: float = 0.0) -> Qrels:
        """Return the judgments as grades.

        Parameters
        ----------
        min_confidence : float, default 0.0
            Documents with a smaller confidence are left out: they count as unjudged.

        Returns
        -------
        Qrels
            The grades; `query_weights` are the mean confidences of the queries, with which training
            weights them.

        Raises
        ------
        DataError
            If no document has this confidence.
        """
        rows = np.flatnonzero(self.confidence >= min_confidence)
        if not len(rows):
            raise DataError(f"no judgment has a confidence of {min_confidence:g} or more.")
        weights = _means(self.query[rows], self.confidence[rows], len(self.queries))
        queries, ids, offsets, docids = self._grouped(rows)
        grades = self.grade[rows].astype(np.float64)
        return Qrels(ids, offsets, docids, grades, query_weights=weights[queries])

    def estimates(self) -> Run:
        """Return the documents ranked by their estimated rates.

        Returns
        -------
        Run
            The posterior means as scores.
        """
        _, ids, offsets, docids = self._grouped(np.arange(len(self)))
        return Run(ids, offsets, docids, self.estimate, f"clicks-{self.method}")

    def undecided(self) -> Run:
        """Return the documents on first pages of undecided queries whose grade is not yet known.

        Returns
        -------
        Run
            Their scores are their impressions on first pages times the probability that their grade
            is wrong, so that judging begins where most people look.
        """
        number = np.full(len(self.queries), -1)
        number[self.query_rows] = np.arange(len(self.query_rows))
        of_query = number[self.query]
        is_open = (self.more_pages > 0)[of_query] & (self.confidence < self.required)
        rows = np.flatnonzero(is_open & (self.first_page > 0))
        _, ids, offsets, docids = self._grouped(rows)
        scores = self.first_page[rows] * (1 - self.confidence[rows])
        return Run(ids, offsets, docids, scores, "undecided")

    def agreement(self, human: Any, seed: int = 0) -> ClickAgreement:
        """Return how well these judgments agree with those of people.

        Parameters
        ----------
        human : Qrels, dict or path
            The judgments of people.
        seed : int, default 0
            The random seed of the bootstrap over queries.

        Returns
        -------
        ClickAgreement
            Weighted kappa of the grades, Kendall's tau and NDCG of the order by estimated rate,
            with intervals by query.

        Raises
        ------
        DataError
            If no document is judged by both.
        """
        return agreement(self.qrels(), self.estimates(), human, seed)

    def truth_lines(self, min_confidence: float = 0.0) -> str:
        """Return the judgments as JSON lines with confidences, the form that `read_truth` reads.

        Parameters
        ----------
        min_confidence : float, default 0.0
            Documents with a smaller confidence are left out.

        Returns
        -------
        str
            A line per query: its labels, and the confidence of each.
        """
        rows = np.flatnonzero(self.confidence >= min_confidence)
        _, ids, offsets, _ = self._grouped(rows)
        lines = []
        for number, query in enumerate(ids):
            part = rows[offsets[number] : offsets[number + 1]]
            names = [self.documents[document] for document in self.document[part].tolist()]
            labels = dict(zip(names, self.grade[part].tolist(), strict=True))
            confidence = [round(p, 4) for p in self.confidence[part].tolist()]
            record = {"query": query, "labels": labels, "confidence": confidence}
            lines.append(json.dumps(record, ensure_ascii=False) + "\n")
        return "".join(lines)

    def _grouped(self, rows: Ints) -> tuple[Ints, Ids, Ints, Ids]:
        """Return the queries of rows, their ids, the offsets of their documents, and the ids."""
        return grouped_ids(self, self.query[rows], self.document[rows])

    def _frame_columns(self) -> dict[str, Any]:
        columns = {name: getattr(self, name) for name in ROW_FIELDS}
        columns["query"] = [self.queries[query] for query in self.query.tolist()]
        columns["document"] = [self.documents[document] for document in self.document.tolist()]
        return columns

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as a dictionary.

        Returns
        -------
        dict
            The content of `firstpage clicks judge --json`.
        """
        return {
            "method": self.method, "judgments": len(self), "queries": len(self.query_rows),
            "decided": int((self.more_pages == 0).sum()), "required_confidence": self.required,
            "mean": self.mean, "strength": self.strength, "query_strength": self.query_strength,
            "grades": [
                {"grade": grade, "above": level, "documents": int((self.grade == grade).sum())}
                for grade, level in enumerate([0.0, *self.levels])
            ],
            "undecided": self._undecided_rows(),
        }  # fmt: skip

    @property
    def title(self) -> str:
        """What the judgments are, in words."""
        queries = counted(len(self.query_rows), "queries")
        return f"{counted(len(self), 'judgments')} of {queries} by {self.method}"

    def _undecided_rows(self) -> list[dict[str, Any]]:
        """Return what is known of the undecided queries, those with most pages first."""
        rows = np.flatnonzero(self.more_pages > 0)
        return [
            {
                "query": self.queries[self.query_rows[row]], "pages": int(self.pages[row]),
                "confidence": float(self.query_confidence[row]),
                "more_pages": float(more) if np.isfinite(more := self.more_pages[row]) else None,
            }
            for row in rows[np.argsort(-self.pages[rows], kind="stable")]
        ]  # fmt: skip

    def summary_table(self) -> Table:
        rows = []
        for grade, level in enumerate([0.0, *self.levels]):
            part = self.grade == grade
            sure = f"{self.confidence[part].mean():.2f}" if part.any() else "–"
            counts = [f"{int(values[part].sum()):,}" for values in (self.impressions, self.clicks)]
            rows.append([str(grade), f"{level:.3g}", f"{int(part.sum()):,}", *counts, sure])
        head = ["grade", "rate above", "documents", "impressions", "clicks", "confidence"]
        decided = int((self.more_pages == 0).sum())
        note = (
            f"mean rate {self.mean:.3g}; prior of a document {_strength(self.strength)}, of a "
            f"query {_strength(self.query_strength)}; first pages decided (mean confidence "
            f"{self.required:g}): {decided:,} of {len(self.query_rows):,}"
        )
        if self.strength > LARGE_STRENGTH:
            note += (
                "\nthe clicks do not tell the documents of a query apart: their rates are those of "
                "the queries, and grades near a level have little confidence"
            )
        return Table(head, rows, self.title, note)

    def undecided_table(self) -> Table:
        """Return the undecided queries with most pages, and how many more pages they need.

        Returns
        -------
        Table
            A row per query.
        """
        undecided = self._undecided_rows()
        rows = []
        for row in undecided[:MAX_LISTED]:
            more = row["more_pages"]
            needed = "not by clicks" if more is None else f"{more:,.0f}"
            rows.append([row["query"], f"{row['pages']:,}", f"{row['confidence']:.2f}", needed])
        title = counted(len(undecided), "undecided first pages")
        head = ["query", "pages", "confidence", "more pages needed"]
        return Table(head, rows, title)

    def __str__(self) -> str:
        return self.summary_table().text()

    __repr__ = __str__


def _strength(trials: float) -> str:
    """Return the pseudo-trials of a prior in words."""
    return f"{trials:,.3g} pseudo-trials" if trials < LARGE_STRENGTH else "without bound"


def _means(groups: Ints, values: Floats, count: int) -> Floats:
    """Return the mean of values per group; 0 for an empty one."""
    sizes = np.bincount(groups, minlength=count)
    return np.asarray(np.bincount(groups, values, count) / np.maximum(sizes, 1))
