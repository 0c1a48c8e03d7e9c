"""Trust bias: clicks whose probability is an affine function of relevance at each rank."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firstpage.clicks.position_bias.counts import DEFAULT_RANKS, SwapCounts
from firstpage.clicks.position_bias.harvesting import half_width, sum_by_query
from firstpage.clicks.position_bias.rank_table import RankTable, ranges
from firstpage.clicks.position_bias.swaps import column_of, count_sessions
from firstpage.clicks.sessions import Sessions, rows_of_pairs
from firstpage.core import DataError, Floats, Ints
from firstpage.data import Qrels
from firstpage.data.io import JsonFormat

EXACT = np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0])  # slope and offset of the reference
MIN_STRENGTH = 10.0**0.5  # relevance must vary by so many standard errors (F > 10)


@dataclass(frozen=True, eq=False, repr=False)
class TrustBias(RankTable):
    """Slope and offset of the probability of a click by rank: alpha * relevance + beta.

    Attributes
    ----------
    rank : tuple of int
        The ranks.
    alpha, beta : tuple of float
        Slope and offset; NaN where they are not identified.
    alpha_low, alpha_high, beta_low, beta_high : tuple of float
        Confidence intervals over queries.
    scale : str
        What relevance is here: from grades, or the probability of a click at the reference.
    level : float
        Confidence level of the intervals.
    verdict : tuple of str
        Where slope and offset are identified, and where offsets differ from 0, in sentences.

    Examples
    --------
    >>> import firstpage as fp
    >>> run = {f"q{n}": {f"d{n}-{i}": -i for i in range(4)} for n in range(40)}
    >>> grades = {query: {doc: (i + n) % 2 for i, doc in enumerate(docs)}
    ...           for n, (query, docs) in enumerate(run.items())}
    >>> sessions = fp.clicks.simulate(run, grades, model="trust", n_sessions=8000, noise=2, seed=1)
    >>> bias = fp.clicks.trust_bias(sessions, grades)
    >>> [round(beta, 1) for beta in bias.beta]  # of which the truth is .65 .26 .15 .11
    [0.7, 0.3, 0.2, 0.1]
    """

    _file: ClassVar[JsonFormat] = JsonFormat("firstpage-trust-bias", 1, "trust bias")

    rank: tuple[int, ...]
    alpha: tuple[float, ...]
    alpha_low: tuple[float, ...]
    alpha_high: tuple[float, ...]
    beta: tuple[float, ...]
    beta_low: tuple[float, ...]
    beta_high: tuple[float, ...]
    scale: str
    level: float
    verdict: tuple[str, ...]

    def _title(self) -> str:
        return "P(click) = alpha * relevance + beta"


def trust_bias(
    sessions: Sessions,
    qrels: Any = None,
    *,
    relevance: Sequence[float] | None = None,
    reference: int = 1,
    max_rank: int = DEFAULT_RANKS,
    level: float = 0.95,
) -> TrustBias:
    """Estimate trust bias: P(click | rank) = alpha * relevance + beta.

    With grades, slopes and offsets are a regression of clicks on the relevance of the grades, by
    rank.  Without grades, relevance is known up to an affine function only: here it is the
    probability of a click at the reference, whose slope is then 1 and offset 0, and the other ranks
    are compared by the documents that were seen at both.  All offsets are 0 if clicks are
    proportional to examination.

    Parameters
    ----------
    sessions : Sessions
        Pages of results with clicks.
    qrels : Qrels or mapping, optional
        Grades of documents, by people.
    relevance : sequence of float, optional
        The relevance of the grades 0, 1, ..; by default grade / largest grade.
    reference : int, default 1
        The rank of the comparison without grades.
    max_rank : int, default 10
        Impressions below are left out.
    level : float, default 0.95
        Confidence level of the intervals, which are over queries.

    Returns
    -------
    TrustBias
        Slopes and offsets, NaN where they are not identified.

    Raises
    ------
    DataError
        If the reference has no impressions, or no document of the log has a grade.

    References
    ----------
    Agarwal et al., "Addressing trust bias for unbiased learning-to-rank", WWW 2019; Vardasbi et
    al., "When inverse propensity scoring does not work", CIKM 2020.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 4, document=["a", "b", "a", "b"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 0, 1, 0], page=[1, 1, 2, 2])
    >>> print(fp.clicks.trust_bias(sessions).verdict[1])
    Trust bias is not identified at ranks 2: too few documents of different relevance.
    """
    if qrels is None:
        counts = count_sessions(sessions, max_rank)
        base = column_of(counts, reference)
        ranks, scale = counts.ranks, f"the probability of a click at rank {reference}"
        fits = fit_offsets(counts, base, level)
    else:
        ranks, fits = _by_grades(sessions, qrels, relevance, max_rank, level)
        scale = "that of the grades"
    table = np.array(fits).T
    lines = (f"Relevance is {scale}.", *_verdict(ranks, table))
    return TrustBias._of([ranks, *table], scale=scale, level=level, verdict=lines)


def fit_offsets(counts: SwapCounts, base: int, level: float) -> list[Floats]:
    """Return slope and offset of each rank relative to the column `base`, with intervals."""
    columns = range(len(counts.ranks))
    return [EXACT if c == base else _by_swaps(counts, c, base, level) for c in columns]


def _verdict(ranks: Ints, columns: Floats) -> Iterator[str]:
    """Yield sentences on what is identified, and on offsets that differ from 0."""
    known, differ = np.isfinite(columns[0]), (columns[4] > 0) | (columns[5] < 0)
    if not known.all():
        yield (
            f"Trust bias is not identified at ranks {ranges(ranks[~known].tolist())}: too few "
            "documents of different relevance."
        )
    if differ.any():
        yield (
            f"Clicks at ranks {ranges(ranks[differ].tolist())} are not proportional to relevance: "
            "propensities alone do not correct them."
        )
    elif known.sum() > 1:
        yield "No offset differs from 0 (each at its own level)."


def _by_swaps(counts: SwapCounts, column: int, base: int, level: float) -> Floats:
    """Return slope and offset relative to the column `base`, with intervals.

    The two equations are E[y - a x - b] = 0 and E[(x + y)(y - a x - b)] = 0, in which products of
    rates of one document are over different impressions, so that their noise is independent.
    """
    n, m = counts.shown[:, base], counts.shown[:, column]
    rows = (n > 0) & (m > 0)
    n, m = n[rows], m[rows]
    hits, clicks = counts.clicked[rows, base], counts.clicked[rows, column]
    x, y, weight = hits / n, clicks / m, n * m / (n + m)
    again, y_again = n > 1, m > 1  # rates that can be multiplied with themselves
    x_square = hits * (hits - 1) / np.maximum(n * (n - 1), 1)
    y_square = clicks * (clicks - 1) / np.maximum(m * (m - 1), 1)
    equations = [
        x, np.ones(len(n)), y, again * x_square + y_again * x * y, again * x + y_again * y,
        again * x * y + y_again * y_square,
    ]  # fmt: skip
    terms = np.stack(equations, 1) * weight[:, None]
    return _solve(sum_by_query(counts.group[rows], counts.n_groups, terms), level)


def _by_grades(
    sessions: Sessions, qrels: Any, relevance: Sequence[float] | None, max_rank: int, level: float
) -> tuple[Ints, list[Floats]]:
    """Return ranks, and slope and offset of each with intervals, by the relevance of grades."""
    judged = qrels if isinstance(qrels, Qrels) else Qrels.from_dict(qrels)
    rows = rows_of_pairs(sessions, judged)
    grades = np.where(rows < 0, -1, np.maximum(judged.values, 0)[rows]).astype(np.int64)
    grades = grades[sessions.pairs.pair]
    known = (grades >= 0) & (sessions.rank <= max_rank)
    if not known.any():
        raise DataError("no document of the log has a grade at these ranks.")
    top = int(grades.max())
    scale = np.arange(top + 1) / max(top, 1) if relevance is None else np.asarray(relevance, float)
    if len(scale) <= top:
        raise DataError(f"relevance has {len(scale)} values; the largest grade is {top}.")
    x, y = scale[grades[known]], sessions.clicked[known].astype(np.float64)
    _, group = np.unique(sessions.page_query[sessions.page[known]], return_inverse=True)
    equations = np.stack([x, np.ones(len(x)), y, x * x, x, x * y], axis=1)
    ranks, n = np.unique(sessions.rank[known]).astype(np.int64), int(group.max()) + 1
    parts = [sessions.rank[known] == rank for rank in ranks]
    return ranks, [_solve(sum_by_query(group[at], n, equations[at]), level) for at in parts]


def _solve(sums: Floats, level: float) -> Floats:
    """Return slope, offset and their intervals, of two linear equations summed by query.

    NaN where the relevance of documents does not vary enough.
    """
    n = int((sums[:, 1] > 0).sum())
    total = sums.sum(axis=0)
    matrix, right = total[[0, 1, 3, 4]].reshape(2, 2), total[[2, 5]]
    unknown = np.full(6, np.nan)
    if n < 2 or not total[1]:
        return unknown
    mean, other = total[0] / total[1], total[4] / total[1]
    centered = sums[:, 3] - sums[:, 4] * mean - (sums[:, 0] - sums[:, 1] * mean) * other
    if centered.sum() < MIN_STRENGTH * np.sqrt(np.square(centered).sum()) or not centered.any():
        return unknown
    solution = np.linalg.solve(matrix, right)
    residuals = sums[:, [2, 5]] - sums[:, [0, 3]] * solution[0] - sums[:, [1, 4]] * solution[1]
    influence = np.linalg.solve(matrix, residuals.T).T
    errors = np.sqrt(np.square(influence).sum(axis=0) * n / (n - 1))
    freedom = sums[:, 1].sum() ** 2 / np.square(sums[:, 1]).sum() - 1
    half = half_width(errors, np.full(2, freedom), level)
    rows = np.stack([solution, solution - half, solution + half], axis=1)
    return np.asarray(rows.ravel())
