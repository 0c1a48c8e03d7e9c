"""Which queries a new ranking is certain to serve better than the old one, by clicks on the old."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from firstpage.clicks.counterfactual import ClickLog
from firstpage.clicks.models.pages import totals
from firstpage.clicks.position_bias.propensities import Propensities
from firstpage.clicks.sessions import Sessions
from firstpage.core import Bools, DataError, Floats, Table
from firstpage.data import Run


@dataclass(frozen=True, eq=False, repr=False)
class SafeRanking:
    """A ranking of some queries by a new ranker, and of the others by the old one.

    Attributes
    ----------
    run : Run
        The ranking to serve.
    queries : tuple of str
        The queries of the log that both rankings have.
    new : ndarray of bool
        Whether the new ranking is served for each of them.
    gain, lower : ndarray of float
        The estimated gain of DCG by the new ranking, and its lower confidence bound; NaN where
        documents of the old ranking were never displayed.
    pages : ndarray of float
        The number of pages of each query in the log.
    without_old : int
        Queries of the new ranking that the old one lacks; they are in `run` as they are.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 400, document=["a", "b"] * 200, rank=[1, 2] * 200,
    ...     clicked=[0, 1] * 200)
    >>> old, new = {"fox": {"a": 2.0, "b": 1.0}}, {"fox": {"b": 2.0, "a": 1.0}}
    >>> print(fp.clicks.safe_ranking(new, old, sessions, {1: 1.0, 2: 0.5}))
    The new ranking is served for 1 of 1 queries of the log (100.0% of the pages).
    """

    run: Run
    queries: tuple[str, ...]
    new: Bools
    gain: Floats
    lower: Floats
    pages: Floats
    without_old: int

    def to_dict(self) -> dict[str, list[Any]]:
        """Return a list per column, a value per query, those with the most pages first."""
        order = np.argsort(-self.pages, kind="stable")
        numbers = {
            name: [None if np.isnan(value) else value for value in column[order].tolist()]
            for name, column in (("gain", self.gain), ("lower", self.lower))
        }
        pages, served = self.pages.astype(int), np.where(self.new, "new", "old")
        return {
            "query": [self.queries[n] for n in order], "pages": pages[order].tolist(),
            **numbers, "served": served[order].tolist(),
        }  # fmt: skip

    def table(self) -> Table:
        """Return a row per query, those with the most pages first."""
        texts = [
            [f"{value:+.4f}" if isinstance(value, float) else str(value or "-") for value in column]
            for column in self.to_dict().values()
        ]
        head = ["query", "pages", "gain of DCG", "lower bound", "served"]
        return Table(head, [list(row) for row in zip(*texts, strict=True)])

    def __str__(self) -> str:
        part = float(self.pages[self.new].sum() / max(self.pages.sum(), 1.0))
        text = (
            f"The new ranking is served for {int(self.new.sum()):,} of {len(self.queries):,} "
            f"queries of the log ({part:.1%} of the pages)."
        )
        if self.without_old:
            text += f"  {self.without_old:,} other queries have no old ranking to keep."
        return text

    __repr__ = __str__


def safe_ranking(
    new: Any,
    old: Any,
    sessions: Sessions | ClickLog,
    propensities: Propensities | Mapping[int, float] | None = None,
    *,
    cutoff: int = 10,
    level: float = 0.95,
    ratio: float = 2.0,
) -> SafeRanking:
    """Return the new ranking of queries where it is certain to be better, else the old one.

    A query gets the new ranking if the lower confidence bound of its gain in DCG is above 0.  The
    gain counts the weight of a document at its new rank up to `ratio` times that at its old rank,
    so that little can be won by moving documents far, or by documents that were not there.

    Parameters
    ----------
    new, old : Run or mapping
        The rankings: {query: {document: score}}.
    sessions : Sessions or ClickLog
        The log of clicks on the old ranking.
    propensities : Propensities or mapping of int to float
        Probabilities that ranks are examined; not with a `ClickLog`, which has them.
    cutoff : int, default 10
        The number of ranks that count.
    level : float, default 0.95
        Confidence level of the bound of each query.
    ratio : float, default 2
        The largest factor by which the exposure of a document counts as increased; `math.inf`
        counts all.

    Returns
    -------
    SafeRanking
        The ranking to serve, with the gain and its bound per query.

    Raises
    ------
    DataError
        If there are no propensities, no common query, or a parameter is out of range.

    References
    ----------
    Oosterhuis and de Rijke, "Robust generalization and safe query-specialization in counterfactual
    learning to rank", WWW 2021 (bounds per query); Gupta, Oosterhuis and de Rijke, "Practical and
    robust safety guarantees for advanced counterfactual learning to rank", CIKM 2024 (ratios).

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 4, document=["a", "b"] * 2, rank=[1, 2] * 2, clicked=[0, 1] * 2)
    >>> old, new = {"fox": {"a": 2.0, "b": 1.0}}, {"fox": {"b": 2.0, "a": 1.0}}
    >>> fp.clicks.safe_ranking(new, old, sessions, {1: 1.0, 2: 0.5}).new.tolist()  # too few pages
    [False]
    """
    from scipy.special import ndtri

    log = sessions if isinstance(sessions, ClickLog) else ClickLog(sessions, propensities)
    if log.examination is None:
        raise DataError("safe rankings need the propensities of ranks, not of displays.")
    if cutoff < 1 or not 0.5 <= level < 1 or not ratio >= 1:
        raise DataError(
            "a safe ranking needs a cutoff of at least 1, a level from 0.5 to below 1, and a ratio "
            f"of at least 1; got {cutoff!r}, {level!r} and {ratio!r}."
        )
    runs = [run if isinstance(run, Run) else Run.from_dict(run) for run in (new, old)]
    query, n = log.sessions.pairs.query, log.sessions.n_queries
    _, clicked, examined = log.pair_totals
    weights, has, unknown = [], [], np.zeros(n, bool)
    for run in runs:
        target = log._target(run, cutoff)
        displayed = (target.pair >= 0) & (examined[target.pair] > 0)
        weight = np.zeros(len(query))
        weight[target.pair[displayed]] = 1 / np.log2(1 + target.rank[displayed])
        weights.append(weight)
        has.append(totals(target.query, np.ones(len(target.query)), n) > 0)
    unknown[target.query[~displayed]] = True  # of the old ranking: what it earned is not known
    before = weights[1]
    change = np.minimum(weights[0], ratio * before if ratio < np.inf else np.inf) - before
    inverse = 1 / np.where(examined > 0, examined, np.inf)
    gain = totals(query, change * clicked * inverse, n)
    # The variance of Poisson counts, with one more click, so that none is not certainty.
    variance = totals(query, np.square(change * inverse) * (clicked + 1), n)
    gain[unknown] = np.nan
    lower = gain - ndtri(level) * np.sqrt(variance)
    both = np.flatnonzero(has[0] & has[1])
    if not len(both):
        raise DataError(f"no query of {log.sessions.source} is in both rankings.")
    names, better = tuple(log.sessions.queries[q] for q in both), lower[both] > 0
    of_new, of_old = (run.to_dict() for run in runs)
    accepted = {name: of_new[name] for name, new in zip(names, better, strict=True) if new}
    added = {name: ranking for name, ranking in of_new.items() if name not in of_old}
    run = Run.from_dict({**of_old, **accepted, **added}, name="safe")
    return SafeRanking(run, names, better, gain[both], lower[both], log.pages[both], len(added))
