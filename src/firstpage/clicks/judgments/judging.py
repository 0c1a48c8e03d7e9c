"""judge(): graded judgments of documents from the clicks of a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from firstpage.clicks.judgments.counts import Method, count_clicks
from firstpage.clicks.judgments.result import ClickJudgments
from firstpage.clicks.judgments.shrinkage import RatePosterior, shrink
from firstpage.clicks.judgments.spellings import QueryKey, group_queries
from firstpage.clicks.sessions import Sessions
from firstpage.core import DataError, Floats, Ints

MAX_GRADES = 10
MAX_FACTOR = 1e6  # times the log's pages, beyond which a first page counts as never decided
HALVINGS = 20  # of the search for the number of pages


@dataclass(frozen=True, eq=False)
class _GradeLevels:
    """Levels of rates between grades, and the quantile of a rate that must exceed them."""

    levels: Floats
    quantile: float

    def grades(self, posterior: RatePosterior) -> tuple[Ints, Floats]:
        """Return the grade of each rate, and the probability that the rate lies in it."""
        below = [posterior.below(level) for level in self.levels]
        grade = sum((p < self.quantile).astype(np.int64) for p in below)
        bounds = np.stack([np.zeros(len(posterior.a)), *below, np.ones(len(posterior.a))])
        rows = np.arange(len(posterior.a))
        return np.asarray(grade), bounds[np.asarray(grade) + 1, rows] - bounds[grade, rows]


def judge(
    sessions: Sessions,
    method: Method = "coec",
    *,
    grades: int = 4,
    levels: Sequence[float] | None = None,
    quantile: float = 0.5,
    depth: int = 10,
    confidence: float = 0.8,
    group: str | QueryKey | None = None,
) -> ClickJudgments:
    """Return graded judgments of the displayed documents, by their clicks.

    The rate of a document is shrunk towards its query's and the log's mean by an empirical-Bayes
    prior.  Its grade is the number of levels that the posterior median exceeds.  Every grade comes
    with the probability that the rate lies in it.

    Parameters
    ----------
    sessions : Sessions
        Pages of results and their clicks, of `fp.read_sessions`.
    method : str, click model or Propensities, default "coec"
        What the rate is: "coec", clicks over expected clicks at the same ranks, times a factor by
        which documents of higher ranks are better (click-through to the power 0.2); "ctr", clicks
        over impressions; "sdbn", clicks over impressions down to the last click (attractiveness in
        the simplified DBN), "sdbn-satisfaction", last clicks over clicks, or "sdbn-relevance", the
        product of both; the attractiveness in a click model such as "ubm", which is fitted to the
        sessions unless it is; or clicks over the sum of the propensities of the ranks.
    grades : int, default 4
        Number of grades, from 0.  Successive levels differ by the factor 2 around the mean of the
        log: 1/2, 1 and 2 times the mean for four grades.  For rates that are probabilities these
        are multiples of the odds.
    levels : sequence of float, optional
        Levels of the rate between the grades, ascending, in place of those.
    quantile : float, default 0.5
        The quantile of the posterior that must exceed a level: 0.5 is the median; 0.05 grades
        cautiously.
    depth : int, default 10
        Impressions at ranks up to this one are the first page of their query.
    confidence : float, default 0.8
        A query is decided where the grade of a document on its first page is right with this
        probability, in the mean over impressions.
    group : {"case", "results"} or callable, optional
        Judge spellings of a query together: those equal but for case and blanks; those whose first
        pages share half of their documents; or those for which the function returns one key.

    Returns
    -------
    ClickJudgments
        A grade per pair of query and displayed document, with interval and confidence.

    Raises
    ------
    DataError
        If the log has no clicks, a parameter is out of its range, or a rank has no propensity.
    ParameterError
        If there is no such click model.

    References
    ----------
    Zhang and Jones, Comparing Click Logs and Editorial Labels for Training Query Rewriting, 2007.
    Chapelle and Zhang, A Dynamic Bayesian Network Click Model for Web Search Ranking, WWW 2009.
    Dupret and Piwowarski, A User Browsing Model to Predict Search Engine Click Data from Past
    Observations, SIGIR 2008.
    Morris, Parametric Empirical Bayes Inference: Theory and Applications, JASA 1983.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 200, document=["a", "b"] * 100, rank=[1, 2] * 50 + [2, 1] * 50,
    ...     clicked=[1, 0, 1, 0, 0, 0, 1, 1] * 25)
    >>> judgments = fp.clicks.judge(sessions, "ctr", grades=2)
    >>> judgments.qrels().to_dict()
    {'fox': {'a': 1.0, 'b': 0.0}}
    """
    _check(grades, levels, quantile, depth, confidence)
    groups = group_queries(sessions, group, depth)
    merged = sessions if group is None else _merged(sessions, groups)
    pairs = merged.pairs
    count = len(pairs.query)
    counts = count_clicks(sessions, method, pairs.pair, count)
    present, query = np.unique(pairs.query, return_inverse=True)
    shrunk = shrink(
        counts.family, counts.successes, counts.trials, query, len(present), counts.factor
    )
    factors = np.exp2(np.arange(grades - 1) - (grades - 2) / 2)
    multiples = counts.family.multiples(shrunk.mean, factors)
    scale = _GradeLevels(multiples if levels is None else np.asarray(levels, np.float64), quantile)
    grade, probability = scale.grades(shrunk.posterior)
    first_page = np.bincount(pairs.pair[sessions.rank <= depth], minlength=count)
    pages = np.bincount(merged.page_query, minlength=merged.n_queries)[present]
    sure, factor = _decide(scale, shrunk.posterior, counts.trials, query, first_page, confidence)
    more = np.where(factor > 0, np.ceil(factor * pages), 0.0)
    name = method if isinstance(method, str) else type(method).__name__.lower()
    clicks = np.bincount(pairs.pair, sessions.clicked, count).astype(np.int64)
    shown, rate = np.bincount(pairs.pair, minlength=count), shrunk.posterior
    judged = ClickJudgments(
        name, sessions.queries, sessions.documents, pairs.query, pairs.document, rate.mean,
        rate.quantile(0.025), rate.quantile(0.975), shown, clicks, grade, probability, first_page,
        present, pages, sure, more, tuple(scale.levels.tolist()), shrunk.mean, shrunk.strength,
        shrunk.query_strength, confidence,
    )  # fmt: skip
    return judged if group is None else judged.of_spellings(groups)


def _check(
    grades: int, levels: Sequence[float] | None, quantile: float, depth: int, confidence: float
) -> None:
    """Refuse parameters out of their range."""
    if not 2 <= grades <= MAX_GRADES:
        raise DataError(f"grades must be between 2 and {MAX_GRADES}; got {grades!r}.")
    if levels is not None and not (len(levels) and (np.diff(levels) > 0).all() and levels[0] > 0):
        raise DataError(f"levels must be positive and ascending; got {list(levels)}.")
    for name, value in (("quantile", quantile), ("confidence", confidence)):
        if not 0 < value < 1:
            raise DataError(f"{name} must be between 0 and 1; got {value!r}.")
    if depth < 1:
        raise DataError(f"depth must be at least 1; got {depth!r}.")


def _merged(sessions: Sessions, groups: Ints) -> Sessions:
    """Return the sessions with the first query of each group in place of its spellings."""
    page_query = groups[sessions.page_query].astype(np.int32)
    return replace(sessions, page_query=page_query)


def _decide(
    scale: _GradeLevels,
    posterior: RatePosterior,
    trials: Floats,
    query: Ints,
    first_page: Ints,
    required: float,
) -> tuple[Floats, Floats]:
    """Return the confidence of each query's first page, and how often its pages are needed again.

    The factor is that of the smallest log of more pages like those of the query, with the rates
    now estimated, after which the first page is decided: 0 if it is decided, infinite if none is.
    """
    queries = int(query.max()) + 1

    def means(rows: Ints, factor: Floats) -> Floats:
        more = factor[query[rows]] * trials[rows]
        later = posterior.rows(rows)
        later = later.after(later.mean * more, more)
        probability = scale.grades(later)[1]
        with np.errstate(invalid="ignore"):
            totals = np.bincount(query[rows], first_page[rows] * probability, queries)
            return totals / np.bincount(query[rows], first_page[rows], queries)

    first = np.flatnonzero(first_page)
    now = means(first, np.zeros(queries))
    low, high = np.full(queries, -3.0), np.full(queries, np.log10(MAX_FACTOR))
    open_rows = first[(now < required)[query[first]]]
    if not len(open_rows):
        return now, np.zeros(queries)
    reached = means(open_rows, 10**high) >= required
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        enough = means(open_rows, 10**middle) >= required
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    undecided = np.where(reached, 10**high, np.inf)
    return now, np.where(now < required, undecided, 0.0)
