"""Fusion of first stages by the formulas of search engines: `StageFusion`.

A stage lists documents of a query with scores: BM25, a vector search.  A `StageTable` has the
scores and ranks of several stages for the union of their documents, for one query or for many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self, get_args

import numpy as np

from firstpage.core import DataError, Floats, Ints, ParameterError, check_number, lookup
from firstpage.core.kernels.voting import ABSENT
from firstpage.data import Run
from firstpage.evaluation.aggregation.ballots import Ballots
from firstpage.evaluation.aggregation.fusion import rounded

StageMethod = Literal["rrf", "scores"]
StageNormalization = Literal["min-max", "z-score", "dbsf", "l2"]
StageMean = Literal["arithmetic", "geometric", "harmonic"]
StageWeighting = Literal["term", "rank"]
STAGES = ("bm25", "dense")
CHOICES: dict[str, Any] = {
    "method": StageMethod,
    "normalization": StageNormalization,
    "mean": StageMean,
    "weighting": StageWeighting,
}
DEVIATIONS = 3.0  # around the mean, which "dbsf" maps to 0 and 1


@dataclass(frozen=True, eq=False)
class StageTable:
    """The scores and ranks of several stages for all documents of the queries.

    Attributes
    ----------
    scores : ndarray of shape (n_stages, n_documents)
        The score that a stage gives to a document; NaN where it does not list it.
    ranks : ndarray of shape (n_stages, n_documents)
        The rank in the stage's list, from 1; infinite where it does not list the document.
    offsets : ndarray of shape (n_queries + 1,)
        Query `q` has the documents `offsets[q]:offsets[q + 1]`.
    """

    scores: Floats
    ranks: Floats
    offsets: Ints

    @classmethod
    def from_ballots(cls, ballots: Ballots) -> StageTable:
        """Return the table of runs that were joined by query and document."""
        assert ballots.scores is not None
        listed = ballots.positions != ABSENT
        ranks = np.where(listed, ballots.positions + 1.0, np.inf)
        table = cls(ballots.scores, ranks, ballots.offsets)
        infinite = np.argwhere(np.isinf(ballots.scores))
        if len(infinite):
            stage, column = infinite[0].tolist()
            query = int(np.searchsorted(ballots.offsets, column, side="right")) - 1
            raise DataError(
                f"a score of {ballots.names[stage]} in query {ballots.queries[query]!r} is "
                "infinite; fusion needs finite scores."
            )
        return table

    def normalized(self, normalization: StageNormalization, floor: float) -> Floats:
        """Return the normalized scores of each stage; NaN for documents that it does not list."""
        return np.array([self._normalized(row, normalization, floor) for row in self.scores])

    def _normalized(self, scores: Floats, kind: StageNormalization, floor: float) -> Floats:
        """Return the scores of one stage, normalized within each query."""
        query = np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))
        rows = np.flatnonzero(~np.isnan(scores))
        out = np.full(len(scores), np.nan)
        if not len(rows):
            return out
        values, query = scores[rows], query[rows]
        begins = np.append(True, query[1:] != query[:-1])  # of the lists that are not empty
        first, of_list = np.flatnonzero(begins), np.cumsum(begins) - 1
        lengths = np.diff(np.append(first, len(rows)))

        def sums(terms: Floats) -> Floats:
            return np.bincount(of_list, weights=terms).astype(np.float64)

        if kind == "l2":
            norm = np.sqrt(sums(values * values))[of_list]
            out[rows] = np.divide(values, norm, out=np.zeros(len(rows)), where=norm > 0)
            return out
        if kind == "min-max":
            low, constant = np.minimum.reduceat(values, first), 1.0
            span = np.maximum.reduceat(values, first) - low
        else:
            mean = sums(values) / lengths
            squares = sums((values - mean[of_list]) ** 2)
            deviation = np.sqrt(squares / np.maximum(lengths - 1, 1))
            deviation[np.maximum.reduceat(values, first) == np.minimum.reduceat(values, first)] = 0
            low, span, constant = mean, deviation, 1.0
            if kind == "dbsf":
                low, span = mean - DEVIATIONS * deviation, 2 * DEVIATIONS * deviation
                constant = 0.5
        scaled = np.full(len(rows), constant)
        np.divide(values - low[of_list], span[of_list], out=scaled, where=span[of_list] > 0)
        if kind != "dbsf":
            scaled[scaled <= 0] = floor
        out[rows] = scaled
        return out


@dataclass(frozen=True)
class StageFusion:
    """Fusion of the ranked lists of first stages, by the formulas that search engines document.

    With ``method="rrf"`` the score of a document is the sum of weight / (rank_constant + rank) over
    the stages that list it, ranks from 1.  With ``method="scores"`` the scores of each stage are
    normalized, and a document gets their weighted mean; a stage that does not list it has the
    score 0, which geometric and harmonic means leave out together with the stage's weight.

    Parameters
    ----------
    method : {"rrf", "scores"}, default "rrf"
        Reciprocal rank fusion, or a mean of normalized scores.
    weights : tuple of float, default ()
        A weight per stage, at least 0; () weights all with 1.
    rank_constant : float, default 60.0
        The constant of reciprocal rank fusion.  Qdrant counts ranks from 0: its k is this plus 1.
    normalization : {"min-max", "z-score", "dbsf", "l2"}, default "min-max"
        Per list: (score - min) / (max - min), and 1 if all scores are equal; (score - mean) /
        deviation, and 1 likewise; the range of 3 deviations around the mean mapped to 0 and 1
        without clipping, and 0.5 if all scores are equal (distribution-based score fusion); the
        score divided by the root of the sum of squares.  Deviations are those of a sample (n - 1).
    mean : {"arithmetic", "geometric", "harmonic"}, default "arithmetic"
        How normalized scores are combined.
    stages : tuple of str, default ("bm25", "dense")
        The names of the stages.
    floor : float, default 0.001
        With "min-max" and "z-score", what a listed document gets instead of a normalized score of
        0 or below: 0.001 in OpenSearch, 0 in Elasticsearch.
    weighting : {"term", "rank"}, default "term"
        With "rrf", whether a weight multiplies the term, as in Elasticsearch and OpenSearch, or
        divides the rank, as in Qdrant: 1 / (rank_constant + rank / weight).

    Raises
    ------
    ParameterError
        If a parameter is invalid, or there is not one weight per stage.

    References
    ----------
    .. [1] G. V. Cormack, C. L. A. Clarke, S. Buettcher, "Reciprocal Rank Fusion Outperforms
       Condorcet and Individual Rank Learning Methods", SIGIR 2009.
    .. [2] S. Bruch, S. Gai, A. Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval",
       ACM Transactions on Information Systems 42, 2023.

    Examples
    --------
    >>> import numpy as np
    >>> import firstpage as fp
    >>> bm25 = np.array([7, 3, 5]), np.array([9.0, 4.0, 1.0])
    >>> dense = np.array([3, 8]), np.array([0.9, 0.7])
    >>> rows, scores = fp.aggregation.StageFusion().fuse([bm25, dense])
    >>> rows.tolist()
    [3, 7, 8, 5]
    >>> fusion = fp.aggregation.StageFusion("scores", weights=(0.3, 0.7))
    >>> fusion.fuse([bm25, dense])[0].tolist()
    [3, 7, 8, 5]
    """

    method: StageMethod = "rrf"
    weights: tuple[float, ...] = ()
    rank_constant: float = 60.0
    normalization: StageNormalization = "min-max"
    mean: StageMean = "arithmetic"
    stages: tuple[str, ...] = STAGES
    floor: float = 0.001
    weighting: StageWeighting = "term"

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            known = {choice: choice for choice in get_args(choices)}
            object.__setattr__(self, name, lookup(str(getattr(self, name)), known, name))
        if isinstance(self.stages, str) or not self.stages:
            raise ParameterError(f"stages must be a tuple of names; got {self.stages!r}.")
        object.__setattr__(self, "stages", tuple(map(str, self.stages)))
        if len(set(self.stages)) < len(self.stages):
            raise ParameterError(f"two stages have the same name: {', '.join(self.stages)}.")
        check_number(self, "rank_constant", minimum=0)
        check_number(self, "floor", minimum=0)
        try:
            weights = tuple(map(float, self.weights)) or (1.0,) * len(self.stages)
        except (TypeError, ValueError) as error:
            raise ParameterError(f"weights of StageFusion must be numbers ({error}).") from error
        if len(weights) != len(self.stages):
            raise ParameterError(
                f"there are {len(weights)} weights for the {len(self.stages)} stages "
                f"{', '.join(self.stages)}; give one each."
            )
        if not np.isfinite(weights).all() or min(weights) < 0 or max(weights) == 0:
            raise ParameterError(
                f"weights of StageFusion must be finite, at least 0 and not all 0; got {weights}."
            )
        object.__setattr__(self, "weights", weights)

    @property
    def label(self) -> str:
        """The method or the normalization: a name without blanks."""
        return self.method if self.method == "rrf" else self.normalization

    # --- fusion

    def fuse(self, rankings: Sequence[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
        """Fuse the lists of one query.

        Parameters
        ----------
        rankings : sequence of (ndarray of int, ndarray of float)
            Per stage, the rows (numbers) of its documents, best first, and their scores; a stage
            may list nothing.

        Returns
        -------
        rows : ndarray of int
            The rows of all listed documents, best first.  Of documents with equal scores, the one
            with the better best rank is first, then the one with the smaller row.
        scores : ndarray of float
            Their fused scores.

        Raises
        ------
        DataError
            If there is not one list per stage, a row occurs twice in a list, or a score is not
            finite.
        """
        if len(rankings) != len(self.stages):
            raise DataError(
                f"there are {len(rankings)} lists for the {len(self.stages)} stages "
                f"{', '.join(self.stages)}; give one each."
            )
        lists = [
            (np.asarray(rows, np.int64), np.asarray(scores, np.float64))
            for rows, scores in rankings
        ]
        union = np.unique(np.concatenate([rows for rows, _ in lists]))
        table = StageTable(
            np.full((len(lists), len(union)), np.nan),
            np.full((len(lists), len(union)), np.inf),
            np.array([0, len(union)]),
        )
        for stage, (rows, scores) in enumerate(lists):
            name = self.stages[stage]
            if rows.ndim != 1 or rows.shape != scores.shape or not np.isfinite(scores).all():
                raise DataError(f"{name}: there must be one finite score per row.")
            column = np.searchsorted(union, rows)
            table.scores[stage, column] = scores
            table.ranks[stage, column] = np.arange(1, len(rows) + 1)
            if np.isfinite(table.ranks[stage]).sum() < len(rows):
                raise DataError(f"{name}: a row occurs twice in its list.")
        points = self.points(table)
        order = np.lexsort((table.ranks.min(axis=0), -rounded(points)))  # stable: then by row
        return union[order], points[order]

    def fuse_runs(self, runs: Sequence[Run], name: str = "") -> Run:
        """Fuse the runs of the stages, query by query.

        Parameters
        ----------
        runs : sequence of Run
            A run per stage, in their order; queries and documents that a run lacks are not listed
            by its stage.
        name : str, default ""
            The name of the result; "rrf" or the normalization by default.

        Returns
        -------
        Run
            All documents of the queries, best first; of documents with equal scores, the one with
            the better best rank is first.

        Raises
        ------
        DataError
            If there is not one run per stage, a document occurs twice in a query, or a score is
            infinite.
        """
        if len(runs) != len(self.stages):
            raise DataError(
                f"there are {len(runs)} runs for the {len(self.stages)} stages "
                f"{', '.join(self.stages)}; give one each."
            )
        ballots = Ballots.from_runs(runs, depth=None)
        table = StageTable.from_ballots(ballots)
        points = rounded(self.points(table))
        query = np.repeat(np.arange(len(ballots)), ballots.lengths)
        order = np.lexsort((table.ranks.min(axis=0), -points, query))
        assert ballots.docids is not None
        docids = ballots.docids[ballots.documents[order]]
        return Run(ballots.queries, ballots.ends, docids, points[order], name or self.label)

    def points(self, table: StageTable, normalized: Floats | None = None) -> Floats:
        """Return the fused score of each document of a table.

        Parameters
        ----------
        table : StageTable
            The scores and ranks of the stages.
        normalized : ndarray of shape (n_stages, n_documents), optional
            The normalized scores, where they are known already.

        Returns
        -------
        ndarray of shape (n_documents,)
            The fused scores.
        """
        weights = np.array(self.weights)[:, None]
        if self.method == "rrf":
            if self.weighting == "term":
                return np.asarray((weights / (self.rank_constant + table.ranks)).sum(axis=0))
            counted = weights[:, 0] > 0
            stretched = table.ranks[counted] / weights[counted]
            return np.asarray((1.0 / (self.rank_constant + stretched)).sum(axis=0))
        if normalized is None:
            normalized = table.normalized(self.normalization, self.floor)
        if self.mean == "arithmetic":
            return np.asarray((weights * np.nan_to_num(normalized)).sum(axis=0) / weights.sum())
        counted = normalized > 0  # false for NaN
        values, weights = np.where(counted, normalized, 1.0), np.where(counted, weights, 0.0)
        total = weights.sum(axis=0)
        if self.mean == "geometric":
            means = np.exp((weights * np.log(values)).sum(axis=0) / np.where(total > 0, total, 1.0))
        else:
            terms = (weights / values).sum(axis=0)
            means = total / np.where(terms > 0, terms, 1.0)
        return np.where(total > 0, means, 0.0)

    # --- storage

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-serializable values.

        Returns
        -------
        dict
            A value per field; lists instead of tuples.
        """
        values = asdict(self)
        return {**values, "weights": list(self.weights), "stages": list(self.stages)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the fusion of a dictionary that `to_dict` made.

        Parameters
        ----------
        values : mapping
            A value per field; those that are missing have their defaults.

        Returns
        -------
        StageFusion
            The fusion.

        Raises
        ------
        DataError
            If there is a field that fusions do not have.
        ParameterError
            If a value is invalid.
        """
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise DataError(f"a fusion has no field {sorted(unknown)[0]!r}.")
        return cls(**values)

    def __str__(self) -> str:
        weights = ", ".join(
            f"{name} {weight:g}" for name, weight in zip(self.stages, self.weights, strict=True)
        )
        if self.method == "rrf":
            by_rank = ", weights divide ranks" if self.weighting == "rank" else ""
            return f"rrf(k={self.rank_constant:g}; {weights}{by_rank})"
        return f"{self.normalization}, {self.mean} mean ({weights})"

    def __repr__(self) -> str:
        return f"StageFusion({self})"
