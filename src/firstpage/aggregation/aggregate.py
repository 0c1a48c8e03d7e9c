"""aggregate(): several rankings in, one ranking out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.aggregation.ballots import Ballots, BaseOrder, Missing
from firstpage.aggregation.costs import CostReport, kemeny_cost, lower_bound
from firstpage.aggregation.methods import Method
from firstpage.aggregation.methods import method as named_method
from firstpage.aggregation.weights import MeasuredWeights, normalize_weights, supervised_weights
from firstpage.data.formats.trec import Run
from firstpage.data.joins import match_queries
from firstpage.errors import DataError, FirstpageWarning
from firstpage.measures.registry import Named
from firstpage.types import Floats, Ints


@dataclass(frozen=True, eq=False)
class Aggregation:
    """One ranking of many: `run`, or `scores`; the rankers' `weights`; what the order costs.

    `order` has each query's candidates from best to worst, by their numbers in base order.
    `measured` says where the weights come from, if they were measured.
    """

    ballots: Ballots
    method: Method
    weights: Floats
    order: Ints
    measured: MeasuredWeights | None = None
    name: str = field(default="firstpage")

    @cached_property
    def documents(self) -> Ints:
        """Rows of documents, best first: the candidates, below them the rest in base order."""
        ballots = self.ballots
        place = np.arange(len(ballots.documents)) - np.repeat(
            ballots.ends[:-1], np.diff(ballots.ends)
        )
        head = place < np.repeat(ballots.lengths, np.diff(ballots.ends))
        rows = ballots.documents.copy()
        rows[head] = rows[head][np.repeat(ballots.offsets[:-1], ballots.lengths) + self.order]
        return rows

    @cached_property
    def _falling(self) -> Floats:
        """n, n - 1, .. 1 in every query."""
        return np.repeat(self.ballots.ends[1:], np.diff(self.ballots.ends)) - np.arange(
            len(self.ballots.documents), dtype=np.float64
        )

    @cached_property
    def scores(self) -> Floats:
        """One number a document, in the order of its rows: n for the best of n, 1 for the last."""
        scores = np.empty(len(self.documents))
        scores[self.documents] = self._falling
        return scores

    @cached_property
    def run(self) -> Run:
        """The ranking as a run, documents best first."""
        ballots = self.ballots
        if ballots.docids is None:
            raise DataError("these ballots have no document ids, so there is no run; take .scores.")
        docids = ballots.docids[self.documents]
        return Run(ballots.queries, ballots.ends, docids, self._falling, self.name)

    @cached_property
    def report(self) -> CostReport:
        """Cost and lower bound, query by query."""
        cost = kemeny_cost(self.order, self.ballots, self.weights)
        bound = np.minimum(lower_bound(self.ballots, self.weights), cost)  # but for rounding it is
        return CostReport(self.ballots.queries, cost, bound)

    @property
    def cost(self) -> float:
        """Kemeny's cost of all queries together."""
        return float(self.report.cost.sum())

    @property
    def lower_bound(self) -> float:
        """What no order can cost less than, all queries together."""
        return float(self.report.lower_bound.sum())

    def to_dict(self) -> dict[str, Any]:
        """What `--json` prints."""
        ballots = self.ballots
        found: dict[str, Any] = {
            "method": str(self.method),
            "rankers": [
                {"name": name, "weight": weight}
                for name, weight in zip(ballots.names, self.weights.tolist(), strict=True)
            ],
            "queries": len(ballots),
            "documents": len(ballots.documents),
            "candidates": int(ballots.offsets[-1]),
            "kemeny": self.report.to_dict(),
        }
        if self.measured is not None:
            found["measure"] = self.measured.measure
            found["measured_queries"] = self.measured.queries
            for ranker, mean in zip(found["rankers"], self.measured.means.tolist(), strict=True):
                ranker["mean"] = mean
        return found

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
        return "\n".join([*lines, str(self.report)])

    __repr__ = __str__


def aggregate(
    rankings: Any,
    method: str | Method = "skr",
    *,
    weights: str | Sequence[float] | MeasuredWeights | None = None,
    qrels: Any = None,
    measure: Named = "NDCG@10",
    valid: Sequence[Any] | None = None,
    depth: int | None = 100,
    same_depth: bool = False,
    base: BaseOrder = None,
    missing: Missing = "last",
    name: str = "",
) -> Aggregation:
    """Make one ranking of several.

    rankings    runs (or {query: {document: score}}), one a ranker; or Ballots
    method      "skr", "Borda", "RRF", "ExactKemeny(limit=18)", ..
    weights     one a ranker; "auto": by `measure` on `qrels`, the default where these are given;
                or what supervised_weights() found; else all alike
    qrels       judgments of validation queries: those count that the runs have; or give runs over
                the judged queries as `valid`, one for each ranker
    depth       how many of each query, in base order, take part; the rest keeps that order below
    same_depth  one depth for all queries: no more than the shortest has documents
    base        whose order that is: a run, the number of one, or "turns"; else the first run
    missing     "last": what a ranker does not list it puts last; "silent": it does not vote on it

    Of Ballots all candidates take part: depth, base and missing were settled when they were made.
    """
    how = named_method(method)
    if isinstance(rankings, Ballots):
        ballots, runs = rankings, None
    else:
        runs = _runs(rankings)
        base = Run.from_dict(base) if isinstance(base, Mapping) else base
        ballots = Ballots.from_runs(
            runs, base=base, depth=depth, same_depth=same_depth, missing=missing
        )
        _warn_of_queries(runs, ballots)
    given, measured = _weights(weights, runs, valid, qrels, measure, ballots.n_rankers)
    order = how.order(ballots, given)
    return Aggregation(ballots, how, given, order, measured, name or type(how).__name__)


def _runs(rankings: Any) -> list[Run]:
    if isinstance(rankings, (Mapping, Run, str)) or not hasattr(rankings, "__iter__"):
        raise DataError("give a list of runs, or Ballots; one ranking alone is no list.")
    return [Run.from_dict(r) if isinstance(r, Mapping) else r for r in rankings]


def _warn_of_queries(runs: Sequence[Run], ballots: Ballots) -> None:
    """Warn, once per run, of queries that others have and it does not."""
    for run, name in zip(runs, ballots.names, strict=True):
        lost = np.flatnonzero(match_queries(ballots.queries, run.queries) < 0)
        if len(lost):
            shown = ", ".join(ballots.queries[int(q)] for q in lost[:5]) + ", .." * (len(lost) > 5)
            warnings.warn(
                f"{name}: {len(lost)} of {len(ballots)} queries are not in it, and it has no vote "
                f"there: {shown}.",
                FirstpageWarning,
                stacklevel=3,
            )


def _weights(
    weights: str | Sequence[float] | MeasuredWeights | None,
    runs: Sequence[Run] | None,
    valid: Sequence[Any] | None,
    qrels: Any,
    measure: Named,
    rankers: int,
) -> tuple[Floats, MeasuredWeights | None]:
    if isinstance(weights, str) and weights != "auto":
        raise DataError(f"weights must be 'auto' or one number a ranker; got {weights!r}.")
    if weights is not None and not isinstance(weights, str):
        if qrels is not None:
            raise DataError("give weights or judgments (qrels) to measure them by, not both.")
        if isinstance(weights, MeasuredWeights):
            return normalize_weights(weights.weights, rankers), weights
        return normalize_weights(weights, rankers), None
    if qrels is None:
        if weights == "auto" or valid is not None:
            raise DataError("weights='auto' needs judgments to measure by: give qrels.")
        return normalize_weights(None, rankers), None
    if valid is not None and (isinstance(valid, (str, Mapping)) or not isinstance(valid, Sequence)):
        raise DataError(f"valid must be a list of runs, one a ranker; got {valid!r}.")
    systems = runs if valid is None else valid
    if systems is None:
        raise DataError(
            "Ballots hold no scores to measure; give valid=, or weights from supervised_weights."
        )
    if len(systems) != rankers:
        raise DataError(f"{len(systems)} validation rankings for {rankers} rankers; give one each.")
    measured = supervised_weights(systems, qrels, measure)
    return measured.weights, measured
