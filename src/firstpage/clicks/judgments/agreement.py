"""Agreement of judgments from clicks with those of people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.core import DataError, Floats, Table, counted
from firstpage.data import Qrels, Run, join_documents, match_queries
from firstpage.evaluation.measures import as_column, evaluate, read_truth, significance

ROUNDS = 2000  # of the bootstrap over queries
CUTOFF = "NDCG@10"


@dataclass(frozen=True)
class ClickAgreement:
    """How well judgments from clicks agree with those of people, with 95 % intervals by query.

    Attributes
    ----------
    documents, queries : int
        Number of documents and queries that both judge.
    ordered_queries : int
        Number of queries in which people give different grades; tau and NDCG are means over these.
    kappa, tau, ndcg : tuple of float
        Value, lower and upper bound of the quadratically weighted kappa of the grades, each divided
        by the largest one; of Kendall's tau-b between estimated rates and human grades; and of
        NDCG@10 of the order by estimated rate.
    random_ndcg : float
        NDCG@10 of a random order of the same documents, with which that of clicks compares.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 200, document=["a", "b"] * 100, rank=[1, 2] * 50 + [2, 1] * 50,
    ...     clicked=[1, 0, 1, 0, 0, 0, 1, 1] * 25)
    >>> judgments = fp.clicks.judge(sessions, "ctr", grades=2)
    >>> agreement = judgments.agreement({"fox": {"a": 2, "b": 0}})
    >>> agreement.documents, agreement.kappa[0], agreement.tau[0]
    (2, 1.0, 1.0)
    """

    documents: int
    queries: int
    ordered_queries: int
    kappa: tuple[float, float, float]
    tau: tuple[float, float, float]
    ndcg: tuple[float, float, float]
    random_ndcg: float

    def summary_table(self) -> Table:
        """Return the agreement as a table.

        Returns
        -------
        Table
            A row per statistic.
        """
        names = (
            "weighted kappa of the grades",
            "Kendall's tau of the order",
            f"{CUTOFF} of the order",
        )
        values = zip(names, (self.kappa, self.tau, self.ndcg), strict=True)
        rows = [[name, f"{x:.3f}", f"[{low:.3f}, {high:.3f}]"] for name, (x, low, high) in values]
        rows.append([f"{CUTOFF} of a random order", f"{self.random_ndcg:.3f}", ""])
        documents, queries = counted(self.documents, "documents"), counted(self.queries, "queries")
        title = f"agreement with people on {documents} of {queries}"
        note = (
            f"tau and {CUTOFF}: means over the {self.ordered_queries:,} queries in which people "
            "give different grades; intervals by query"
        )
        return Table(["statistic", "value", "95% interval"], rows, title, note)

    def __str__(self) -> str:
        return self.summary_table().text()


def agreement(grades: Qrels, estimates: Run, human: Any, seed: int) -> ClickAgreement:
    """Return the agreement of grades and of the order of estimates with the grades of people."""
    people = as_column(read_truth(human), Qrels)
    rows = join_documents(grades, people, match_queries(grades.queries, people.queries))
    both = rows >= 0
    if not both.any():
        raise DataError(
            "no displayed document is judged by people; queries and documents must have the same "
            f"names in both, such as {grades.docids[0]!r} of query {grades.queries[0]!r}."
        )
    query = np.repeat(np.arange(len(grades)), np.diff(grades.offsets))[both]
    query = np.unique(query, return_inverse=True)[1]
    human_grades = people.values[rows[both]]
    kappa = _kappa(grades.values[both], human_grades, query, seed)
    by_query = [human_grades[query == number] for number in range(int(query.max()) + 1)]
    ordered = np.array([len(set(values.tolist())) > 1 for values in by_query])
    queries = tuple(np.flatnonzero(ordered).tolist())
    tau = ndcg = (float("nan"),) * 3
    random_ndcg = float("nan")
    if queries:
        rows_of_order, measures = ordered[query], ["Tau", CUTOFF]
        qid, labels = query[rows_of_order], human_grades[rows_of_order]
        scores = estimates.values[both][rows_of_order]
        report = evaluate(scores, labels, qid=qid, measures=measures, convention="default")
        tau, ndcg = (_mean(report.per_query(measure), seed) for measure in measures)
        random_ndcg = evaluate(np.zeros(len(labels)), labels, qid=qid, measures=CUTOFF)[CUTOFF]
    sizes = int(both.sum()), len(by_query), len(queries)
    return ClickAgreement(*sizes, kappa, tau, ndcg, float(random_ndcg))


def _mean(values: Floats, seed: int) -> tuple[float, float, float]:
    """Return the mean of values per query with its bootstrap interval."""

    def statistic(weights: Floats) -> Floats:
        return np.asarray(weights @ values / weights.sum(axis=1))

    low, high = significance.bootstrap(statistic, len(values), ROUNDS, seed)
    return float(values.mean()), low, high


def _kappa(x: Floats, y: Floats, query: Any, seed: int) -> tuple[float, float, float]:
    """Return the quadratically weighted kappa of grades divided by their largest, by query.

    Kappa is 1 - mean (x - y)^2 / expected (x - y)^2 of independent x and y with the same means and
    variances, so it is a function of sums per query.
    """
    x, y = x / max(x.max(), 1.0), y / max(y.max(), 1.0)
    terms = [np.ones(len(x)), x, y, x * x, y * y, x * y]
    sums = np.stack([np.bincount(query, term) for term in terms], axis=1)

    def statistic(weights: Floats) -> Floats:
        n, sx, sy, xx, yy, xy = (weights @ sums).T
        expected = (xx + yy) / n - 2 * sx * sy / n**2
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(expected > 1e-12, 1 - (xx + yy - 2 * xy) / n / expected, np.nan)

    value = float(statistic(np.ones((1, len(sums))))[0])
    low, high = significance.bootstrap(statistic, len(sums), ROUNDS, seed)
    return value, low, high
