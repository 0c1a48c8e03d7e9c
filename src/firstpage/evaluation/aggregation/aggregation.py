"""Combine several rankings into one: `aggregate`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

import numpy as np

from firstpage.core import DataError, Floats, Ints, Table, Tabular, warn
from firstpage.core.kernels.voting import VOTE_TOLERANCE
from firstpage.data import Run, is_frame, match_queries
from firstpage.data.formats import read_run
from firstpage.evaluation.aggregation.ballots import Ballots, Missing
from firstpage.evaluation.aggregation.base import Method
from firstpage.evaluation.aggregation.costs import CostReport, bounds_and_ties, kemeny_cost
from firstpage.evaluation.aggregation.fusion import Fusion, rounded
from firstpage.evaluation.aggregation.merge import BaseOrder
from firstpage.evaluation.aggregation.methods import method as parse_method
from firstpage.evaluation.aggregation.methods import with_normalization
from firstpage.evaluation.aggregation.weights import (
    MeasuredWeights,
    normalize_weights,
    supervised_weights,
)
from firstpage.evaluation.measures.registry import MeasureLike

DEFAULT_DEPTH = 100  # of methods that compare documents in pairs
FIRST_RANKS = 10  # at which the result is compared with the heaviest ranker


@dataclass(frozen=True, eq=False)
class Aggregation(Tabular):
    """An aggregated ranking: the result of `aggregate`.

    As a data frame (`to_pandas`, `to_polars`) it has one row per document, best first in each
    query: query, document, rank and score.

    Parameters
    ----------
    ballots : Ballots
        The rankers' votes.
    method : Method
        The aggregation method.
    weights : ndarray of shape (n_rankers,)
        The rankers' weights, which sum to 1.
    order : ndarray of shape (n_candidates,)
        The candidates of each query from best to worst, by their numbers in base order.
    measured : MeasuredWeights, optional
        How the weights were measured.
    points : ndarray of shape (n_candidates,), optional
        The fused score of each candidate, in base order; None for methods that only order.
    name : str, default "firstpage"
        The name of the run.

    Attributes
    ----------
    run : Run
        The ranking as a run; the ballots need document ids.
    scores : ndarray of shape (n_docs,)
        A score per document, in the order of its rows: the fused score, if the method computes one
        and every document is a candidate; else n for the best of n documents, 1 for the last.
    documents : ndarray of shape (n_docs,)
        The rows of the documents of each query, best first.
    report : CostReport
        The Kemeny cost of each query and its lower bound.
    cost, lower_bound : float
        Their totals.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [{"q": {"a": 2, "b": 1}}, {"q": {"a": 3, "b": 1}}]
    >>> result = fp.aggregation.aggregate(runs, "Borda")
    >>> result.run.to_dict()
    {'q': {'a': 4.0, 'b': 2.0}}
    >>> result.cost
    0.0
    """

    ballots: Ballots
    method: Method
    weights: Floats
    order: Ints
    measured: MeasuredWeights | None = None
    name: str = field(default="firstpage")
    points: Floats | None = None

    @cached_property
    def documents(self) -> Ints:
        """The rows of the documents, best first: candidates, then the others in base order."""
        ballots = self.ballots
        if len(self.order) == len(ballots.documents):
            return ballots.documents[self._candidates]
        position = np.arange(len(ballots.documents)) - np.repeat(
            ballots.ends[:-1], np.diff(ballots.ends)
        )
        head = position < np.repeat(ballots.lengths, np.diff(ballots.ends))
        rows = ballots.documents.copy()
        rows[head] = rows[head][self._candidates]
        return rows

    @cached_property
    def _candidates(self) -> Ints:
        """The columns of the candidates, best first."""
        return np.repeat(self.ballots.offsets[:-1], self.ballots.lengths) + self.order

    @cached_property
    def _descending_scores(self) -> Floats:
        """The scores of the documents, best first: fused scores, or n, n - 1, .. 1."""
        if self.points is not None and len(self.points) == len(self.ballots.documents):
            return rounded(self.points[self._candidates])
        return np.repeat(self.ballots.ends[1:], np.diff(self.ballots.ends)) - np.arange(
            len(self.ballots.documents), dtype=np.float64
        )

    @cached_property
    def scores(self) -> Floats:
        """A score per document, in the order of its rows."""
        scores = np.empty(len(self.documents))
        scores[self.documents] = self._descending_scores
        return scores

    @cached_property
    def run(self) -> Run:
        """The ranking as a run, with the documents of each query best first."""
        ballots = self.ballots
        if ballots.docids is None:
            raise DataError("these ballots have no document ids, so there is no run; use .scores.")
        docids = ballots.docids[self.documents]
        return Run(ballots.queries, ballots.ends, docids, self._descending_scores, self.name)

    @cached_property
    def report(self) -> CostReport:
        """The Kemeny cost of each query and its lower bound."""
        cost = kemeny_cost(self.order, self.ballots, self.weights)
        bound, ties = bounds_and_ties(self.ballots, self.weights)
        bound = np.minimum(bound, cost)  # against rounding errors
        lengths = self.ballots.lengths
        return CostReport(self.ballots.queries, cost, bound, ties, lengths * (lengths - 1) // 2)

    @property
    def cost(self) -> float:
        """The total Kemeny cost."""
        return float(self.report.cost.sum())

    @property
    def lower_bound(self) -> float:
        """The total of the lower bounds on the Kemeny cost of any order."""
        return float(self.report.lower_bound.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return a summary as JSON-serializable values, as `--json` prints it.

        Returns
        -------
        dict
            The method, the rankers and their weights, counts, and Kemeny costs if the method only
            orders.
        """
        ballots = self.ballots
        summary: dict[str, Any] = {
            "method": str(self.method),
            "rankers": [
                {"name": name, "weight": weight}
                for name, weight in zip(ballots.names, self.weights.tolist(), strict=True)
            ],
            "queries": len(ballots),
            "documents": len(ballots.documents),
            "candidates": int(ballots.offsets[-1]),
        }
        if self.points is None:  # other methods do not aim at a low Kemeny cost
            summary["kemeny"] = {**self.report.to_dict(), "ties": self.ballots.base_order}
        if self.measured is not None:
            summary["measure"] = self.measured.measure
            summary["measured_queries"] = self.measured.queries
            for ranker, mean in zip(summary["rankers"], self.measured.means.tolist(), strict=True):
                ranker["mean"] = mean
        return summary

    def __str__(self) -> str:
        ballots = self.ballots
        lines = [
            f"{self.method}: {len(ballots)} queries, {int(ballots.offsets[-1])} candidates of "
            f"{len(ballots.documents)} documents"
        ]
        if self.measured is not None:
            lines.append(
                f"weights by {self.measured.measure} on {self.measured.queries} judged queries:"
            )
        width = max(map(len, ballots.names))
        for a, (name, weight) in enumerate(zip(ballots.names, self.weights, strict=True)):
            mean = f"  ({self.measured.means[a]:.4f})" if self.measured is not None else ""
            lines.append(f"{name:<{width}}  {weight:.4f}{mean}")
        if self.points is not None:
            return "\n".join(lines)
        return "\n".join([*lines, *self._dominant_ranker(), str(self.report), *self._ties()])

    def _dominant_ranker(self) -> list[str]:
        """Return a line about the ranker that outvotes all others together, if there is one."""
        ballots, heaviest = self.ballots, int(np.argmax(self.weights))
        if ballots.n_rankers == 1 or self.weights[heaviest] <= 0.5:
            return []
        ranks = np.arange(len(self.order)) - np.repeat(ballots.offsets[:-1], ballots.lengths)
        moved = ballots.positions[heaviest][self._candidates] != ranks
        moved &= ranks < FIRST_RANKS
        query = np.repeat(np.arange(len(ballots)), ballots.lengths)
        same = len(ballots) - len(np.unique(query[moved]))
        return [
            f"{ballots.names[heaviest]} has more than half of the weight: its first {FIRST_RANKS} "
            f"documents are those of the result in {same} of {len(ballots)} queries; with RRF or "
            "Borda, the others count too"
        ]

    def _ties(self) -> list[str]:
        """Return a line about tied votes, and one about two rankings without a majority."""
        report, ballots = self.report, self.ballots
        if not report.tied_pairs.any():
            return []
        lines = [
            f"votes are tied on {report.tied_pairs.sum()} of {report.pairs.sum()} pairs, in "
            f"{np.count_nonzero(report.tied_pairs)} of {len(ballots)} queries; ties that "
            f"{type(self.method).__name__} leaves keep the order of {ballots.base_order}"
        ]
        if ballots.n_rankers == 2 and np.ptp(self.weights) <= VOTE_TOLERANCE:
            lines.append(
                "two rankings of equal weight have no majority where they differ: use RRF, or give "
                "a third ranking"
            )
        return lines

    __repr__ = __str__

    def _frame_columns(self) -> dict[str, Any]:
        """Return query, document, rank and score of every document, best first."""
        run, lengths = self.run, np.diff(self.ballots.ends)
        ranks = np.arange(1, len(self.documents) + 1) - np.repeat(self.ballots.ends[:-1], lengths)
        queries = np.repeat(np.array([str(query) for query in run.queries], object), lengths)
        documents = [str(document) for document in run.docids]
        return {
            "query": queries.tolist(),
            "document": documents,
            "rank": ranks,
            "score": run.values,
        }

    def summary_table(self) -> Table:
        """Return the weights of the rankers."""
        rows = [
            [name, f"{weight:.4f}"]
            for name, weight in zip(self.ballots.names, self.weights, strict=True)
        ]
        title = f"{self.method}: {len(self.ballots)} queries"
        note = "" if self.points is not None else str(self.report)
        return Table(["ranker", "weight"], rows, title, note=note)


def aggregate(
    rankings: Any,
    method: str | Method | None = None,
    *,
    weights: str | Sequence[float] | Floats | MeasuredWeights | None = None,
    qrels: Any = None,
    measure: MeasureLike = "NDCG@10",
    valid: Sequence[Any] | None = None,
    normalize: str | None = None,
    depth: int | Literal["auto"] | None = "auto",
    same_depth: bool = False,
    base: BaseOrder | Mapping[str, Mapping[str, float]] = None,
    missing: Missing = "last",
    name: str = "",
) -> Aggregation:
    """Combine several rankings into one.

    Parameters
    ----------
    rankings : sequence of Run, dict, path or data frame, or Ballots
        A run (or {query: {document: score}}, or the file of a run) per ranker; or ballots, of which
        all candidates take part, so that `depth`, `same_depth`, `base` and `missing` are not used.
    method : str or Method, optional
        The method: "skr" (supervised Kemeny ranking), "Borda", "RRF", "CombMNZ", "Copeland",
        "ExactKemeny(limit=18)", ..  By default "RRF" for two rankings, of which majorities decide
        nothing or obey the heavier one, and "skr" otherwise.
    weights : "auto", sequence of float, or MeasuredWeights, optional
        A weight per ranker; "auto" measures them by `measure` on `qrels`, the default if these are
        given; or the result of `supervised_weights`.  Equal by default.
    qrels : Qrels or dict, optional
        Judgments of validation queries, to measure the weights.  Those queries count that the runs
        have; or give runs over the judged queries as `valid`.
    measure : str or Measure, default "NDCG@10"
        The measure of the weights.
    valid : sequence of Run or dict, optional
        Runs over the judged queries, one per ranker, to measure the weights.
    normalize : str, optional
        The normalization of scores, for methods that combine them: "min-max" (their default),
        "max", "sum", "z", "rank", "borda" or "none".
    depth : int, None or "auto", default "auto"
        How many documents of each query, in base order, are candidates; the others keep their
        order below them.  None for all.  "auto" is 100 for methods that compare documents in pairs,
        and all for those that compute a score per document.
    same_depth : bool, default False
        Use one depth for all queries: at most the length of the shortest query.
    base : Run or int, optional
        A run, or the index of one of the runs, whose order is the base order: the one of ties and
        of candidates.  By default it is that of reciprocal rank fusion with the weights, then of
        document ids (descending), so that the order of the runs does not matter.
    missing : {"last", "ignore"}, default "last"
        "last": a ranker puts the documents it does not list below all others; "ignore": it does
        not vote on them.
    name : str, optional
        The name of the resulting run; by default that of the method.

    Returns
    -------
    Aggregation
        The ranking, as `run` or `scores`, the weights and the Kemeny cost.

    Raises
    ------
    DataError
        If rankings, weights or options are invalid.

    References
    ----------
    .. [1] Cheng, Sun, Xie, "TopRank: A Novel Top-k Ranking Method Based on Rank Aggregation", 2014.

    Examples
    --------
    >>> import firstpage as fp
    >>> runs = [
    ...     {"q": {"a": 3, "b": 2, "c": 1}},
    ...     {"q": {"a": 1, "b": 3, "c": 2}},
    ...     {"q": {"a": 2, "b": 3, "c": 1}},
    ... ]
    >>> list(fp.aggregation.aggregate(runs, "Copeland").run.docids)
    ['b', 'a', 'c']
    """
    runs = None if isinstance(rankings, Ballots) else as_runs(rankings)
    n_rankers = rankings.n_rankers if runs is None else len(runs)
    parsed = parse_method(default_method(n_rankers) if method is None else method)
    if normalize is not None:
        parsed = with_normalization(parsed, normalize)
    if depth == "auto":
        depth = default_depth(parsed)
    normalized, measured = _weights(weights, runs, valid, qrels, measure, n_rankers)
    if runs is None:
        ballots = rankings
    else:
        base = Run.from_dict(base) if isinstance(base, Mapping) else base
        ballots = Ballots.from_runs(
            runs,
            base=base,
            depth=depth,
            same_depth=same_depth,
            missing=missing,
            with_scores=parsed.needs_scores,
            weights=normalized,
        )
        _warn_about_missing_queries(runs, ballots)
    name = name or type(parsed).__name__
    if not isinstance(parsed, Fusion):
        order = parsed.order(ballots, normalized)
        return Aggregation(ballots, parsed, normalized, order, measured, name)
    factors = normalized if isinstance(weights, (str, MeasuredWeights)) or measured else weights
    points = parsed.points(ballots, factors)
    order = parsed.order_of_points(points, ballots)
    return Aggregation(ballots, parsed, normalized, order, measured, name, points)


def default_method(n_rankers: int) -> str:
    """Return the default method: that of two rankings does not depend on majorities."""
    return "RRF" if n_rankers == 2 else "skr"


def default_depth(method: Method) -> int | None:
    """Return the depth of a method: 100 if it compares documents in pairs, else None for all."""
    return None if isinstance(method, Fusion) else DEFAULT_DEPTH


def as_runs(rankings: Any) -> list[Run]:
    """Return a list of runs; files are read, mappings and data frames become runs."""
    single = isinstance(rankings, (Mapping, Run, str, os.PathLike)) or is_frame(rankings)
    if single or not hasattr(rankings, "__iter__"):
        raise DataError("rankings must be a list of runs, or Ballots; got a single object.")
    return list(map(_as_run, rankings))


def _as_run(ranking: Any) -> Run:
    if isinstance(ranking, (str, os.PathLike)):
        return read_run(ranking)
    if isinstance(ranking, Mapping):
        return Run.from_dict(ranking)
    return Run.from_frame(ranking) if is_frame(ranking) else ranking


def _warn_about_missing_queries(runs: Sequence[Run], ballots: Ballots) -> None:
    """Warn, once per run, about queries that others have and it does not."""
    for run, name in zip(runs, ballots.names, strict=True):
        if len(run) == len(ballots):  # the queries of the ballots are those of any run
            continue
        absent = np.flatnonzero(match_queries(ballots.queries, run.queries) < 0)
        if len(absent):
            shown = ", ".join(ballots.queries[int(q)] for q in absent[:5])
            shown += ", .." * (len(absent) > 5)
            warn(
                f"{name}: lacks {len(absent)} of {len(ballots)} queries, and has no vote there: "
                f"{shown}."
            )


def _weights(
    weights: str | Sequence[float] | Floats | MeasuredWeights | None,
    runs: Sequence[Run] | None,
    valid: Sequence[Any] | None,
    qrels: Any,
    measure: MeasureLike,
    n_rankers: int,
) -> tuple[Floats, MeasuredWeights | None]:
    """Return the normalized weights, and how they were measured, if they were."""
    if isinstance(weights, str) and weights != "auto":
        raise DataError(f"weights must be 'auto' or one number per ranker; got {weights!r}.")
    if weights is not None and not isinstance(weights, str):
        if qrels is not None or valid is not None:
            raise DataError("give weights, or judgments (qrels) to measure them by, not both.")
        if isinstance(weights, MeasuredWeights):
            return normalize_weights(weights.weights, n_rankers), weights
        return normalize_weights(weights, n_rankers), None
    if qrels is None:
        if weights == "auto" or valid is not None:
            raise DataError("weights='auto' needs judgments to measure by: give qrels.")
        return normalize_weights(None, n_rankers), None
    if valid is not None and (isinstance(valid, (str, Mapping)) or not isinstance(valid, Sequence)):
        raise DataError(f"valid must be a list of runs, one per ranker; got {valid!r}.")
    systems = runs if valid is None else valid
    if systems is None:
        raise DataError(
            "Ballots have no scores to measure; give valid=, or weights from supervised_weights."
        )
    if len(systems) != n_rankers:
        raise DataError(
            f"{len(systems)} validation rankings for {n_rankers} rankers; give one each."
        )
    measured = supervised_weights(systems, qrels, measure)
    return measured.weights, measured
