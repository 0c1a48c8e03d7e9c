"""Propensities: how probable it is that a result at a rank is examined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from firstpage.clicks.models import ClickModel, click_model
from firstpage.clicks.models.comparison import FOLDS, jackknife, query_folds
from firstpage.clicks.position_bias import by_features
from firstpage.clicks.position_bias.counts import DEFAULT_RANKS, SwapCounts
from firstpage.clicks.position_bias.harvesting import LogEstimate, fit_randomized, fit_steps
from firstpage.clicks.position_bias.rank_table import RankTable, ranges
from firstpage.clicks.position_bias.swaps import count_sessions, graph_of, status_lines, statuses
from firstpage.clicks.position_bias.trust import TrustBias, fit_offsets
from firstpage.clicks.sessions import Sessions
from firstpage.core import Bools, Chart, DataError, Floats, Ints, Progress, curves, stacked
from firstpage.data import Dataset
from firstpage.data.io import JsonFormat

Method = Literal["all-pairs", "adjacent", "pivot", "random", "model", "regression-em", "dual"]
BY_FEATURES: tuple[Method, ...] = ("regression-em", "dual")
METHODS: tuple[Method, ...] = get_args(Method)
OF_FEATURES = (
    "Relevance is taken for a function of the features alone: what these do not tell and the "
    "ranking knew counts as examination, and intervals do not contain this error."
)
HIGHEST = 1.5  # propensity in a picture
TRUST_LEVEL = 0.05  # of the test for trust bias, over all ranks


@dataclass(frozen=True, eq=False, repr=False)
class Propensities(RankTable):
    """The probability that each rank is examined, relative to a reference rank.

    Attributes
    ----------
    rank : tuple of int
        The ranks.
    propensity : tuple of float
        Propensities relative to the reference; NaN where they are not identified.
    low, high : tuple of float
        Confidence intervals over queries; NaN where there are too few queries.
    error : tuple of float
        Standard errors of the logarithms of the values.
    effective_queries : tuple of float
        How many queries of equal weight are as good as those of the log.
    impressions, clicks : tuple of int
        Counts of all impressions at the rank.
    status : tuple of str
        "identified", "thin", "not identified" or "reference".
    reference : int
        The rank whose value is 1.
    method : str
        How they were estimated.
    level : float
        Confidence level of the intervals.
    verdict : tuple of str
        What can be trusted, in sentences.
    source : str
        The log or the file.

    Examples
    --------
    >>> import firstpage as fp
    >>> run = {f"q{n}": {f"d{n}-{i}": -i for i in range(3)} for n in range(50)}
    >>> grades = {query: dict.fromkeys(docs, 2) for query, docs in run.items()}
    >>> sessions = fp.clicks.simulate(run, grades, n_sessions=9000, noise=2, seed=1)
    >>> propensities = fp.clicks.estimate_propensities(sessions)
    >>> [round(value, 1) for value in propensities.propensity]  # of which the truth is 1 .90 .71
    [1.0, 0.9, 0.7]
    """

    _file: ClassVar[JsonFormat] = JsonFormat("firstpage-propensities", 1, "propensity table")
    _note: ClassVar[str] = "intervals are over queries; error: standard error of the logarithm"

    rank: tuple[int, ...]
    propensity: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    error: tuple[float, ...]
    effective_queries: tuple[float, ...]
    impressions: tuple[int, ...]
    clicks: tuple[int, ...]
    status: tuple[str, ...]
    reference: int
    method: str
    level: float
    verdict: tuple[str, ...]
    source: str = ""

    def at(self, ranks: Any) -> Floats:
        """Return the propensities of ranks.

        Parameters
        ----------
        ranks : array-like of int
            The ranks.

        Returns
        -------
        array of float
            One value per rank.

        Raises
        ------
        DataError
            If the propensity of a rank is not known or not identified.
        """
        wanted = np.asarray(ranks, np.int64)
        known = [r for r, p in zip(self.rank, self.propensity, strict=True) if np.isfinite(p)]
        unknown = np.setdiff1d(wanted, known)
        if len(unknown):
            raise DataError(
                f"{self.source or 'propensities'}: the propensity of rank {unknown[0]} is not "
                f"identified; those of ranks {ranges(known)} are."
            )
        return np.asarray(self.propensity)[np.searchsorted(self.rank, wanted)]

    def _title(self) -> str:
        level = f"{100 * self.level:g}% intervals"
        return f"Propensities relative to rank {self.reference}, {self.method}, {level}"

    def plot(self) -> Chart:
        """Return a picture of the propensities by rank, with intervals.

        Returns
        -------
        Chart
            The picture.
        """
        rows = zip(self.rank, self.propensity, self.low, self.high, strict=True)
        known = [row for row in rows if np.isfinite(row[1])]
        points = [(float(rank), value) for rank, value, *_ in known]
        bounds = [(low, high) if low == low else (value, value) for _, value, low, high in known]
        title, name = "Propensities by rank", self.method
        drawing = curves({name: points}, title, "rank", "propensity", {name: bounds}, y_max=HIGHEST)
        return stacked([(drawing, f"Relative to rank {self.reference}")], title)


def estimate_propensities(
    sessions: Sessions,
    method: Method = "all-pairs",
    *,
    model: str | ClickModel | None = None,
    features: Dataset | None = None,
    reference: int | None = None,
    max_rank: int = DEFAULT_RANKS,
    level: float = 0.95,
    progress: Progress | None = None,
) -> Propensities:
    """Estimate how probable it is that each rank is examined, relative to a reference rank.

    Clicks are taken for examination times attractiveness of the document for the query.

    Parameters
    ----------
    sessions : Sessions
        Pages of results with clicks.
    method : {"all-pairs", "adjacent", .., "regression-em", "dual"}, default "all-pairs"
        "all-pairs" compares all ranks at which a document was seen; "adjacent" chains comparisons
        of neighboring ranks; "pivot" compares each rank with the reference.  "random" needs logged
        propensities of a randomized ranking; "model" takes the mean examination of a click model.
        "regression-em" and "dual" estimate a linear ranking by features with the propensities.
    model : str or click model, optional
        For "model": a click model, or its name, such as "PBM".
    features : Dataset, optional
        For "regression-em" and "dual": features of documents of queries, with ids.
    reference : int, optional
        The rank whose propensity is 1; by default the first of the largest component of the swap
        graph, which is rank 1 unless it is not connected.
    max_rank : int, default 10
        Impressions below are left out.
    level : float, default 0.95
        Confidence level of the intervals, which are over queries.
    progress : callable, optional
        For "model" and by features: called with the number of fits without a part of the queries,
        and their total.

    Returns
    -------
    Propensities
        Values, intervals, and what can be trusted.

    Raises
    ------
    DataError
        If the method is not known, or the log does not have what it needs.

    References
    ----------
    Agarwal et al., "Estimating position bias without intrusive interventions", WSDM 2019; Joachims
    et al., "Unbiased learning-to-rank with biased feedback", WSDM 2017 (pivot and randomization);
    Wang et al., "Position bias estimation for unbiased learning to rank in personal search", WSDM
    2018 (regression EM); Ai et al., "Unbiased learning to rank with unbiased propensity
    estimation", SIGIR 2018 (dual learning);
    Hager et al., "Unidentified and confounded? Understanding two-tower models for unbiased learning
    to rank", ICTIR 2025.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 4, document=["a", "b", "b", "a"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 1, 1, 0], page=[1, 1, 2, 2])
    >>> [round(value, 2) for value in fp.clicks.estimate_propensities(sessions).propensity]
    [1.0, 0.5]
    """
    if method not in METHODS:
        raise DataError(
            f"the method of propensities is one of {', '.join(METHODS)}; got {method!r}."
        )
    if (model is None) == (method == "model"):
        raise DataError("a model is for method='model', which needs one, such as model='PBM'.")
    if (features is None) == (method in BY_FEATURES):
        raise DataError(f"features are for {' and '.join(BY_FEATURES)}, which need them.")
    if not 0 < level < 1:
        raise DataError(f"the confidence level is between 0 and 1; got {level!r}.")
    if not sessions.clicked.any():
        raise DataError(f"{sessions.source}: has no clicks, which propensities are estimated from.")
    counts = count_sessions(sessions, max_rank)
    graph, estimate = graph_of(counts, reference)
    assert estimate is not None  # there are clicks
    base, verdict = estimate.reference, list(graph.verdict)
    if method == "adjacent" or method == "pivot":
        estimate = fit_steps(counts, method, base)
    elif method == "random":
        base = 0 if reference is None else base
        estimate, verdict = _randomized(sessions, counts.ranks, base)
    elif model is not None:
        model = click_model(model)
        estimate = _of_model(sessions, model, counts.ranks, base, progress)
        connected = np.array(graph.component) == graph.component[base]
        estimate = replace(estimate, values=np.where(connected, estimate.values, np.nan))
    elif method in BY_FEATURES:
        estimator = by_features.estimator(sessions, features, method, counts.ranks)
        estimate = _by_features(sessions, estimator, counts.ranks, base, progress)
        verdict.append(OF_FEATURES)
    if method != "random":
        verdict += _of_trust(counts, base)
    if len(sessions.layouts) > 1:
        mixed = f"The log mixes {len(sessions.layouts)} layouts, in which a rank is not the same "
        verdict = [mixed + "place: select the pages of one.", *verdict]
    status = statuses(estimate)
    if method != "all-pairs":
        verdict = [line for line in verdict if "relative to rank" not in line]
        verdict += status_lines(counts.ranks, status, int(counts.ranks[base]))
    low, high = estimate.bounds(level)
    columns: list[Any] = [
        counts.ranks, *map(np.exp, (estimate.values, low, high)), estimate.errors,
        estimate.effective_queries, counts.impressions, counts.clicks, status,
    ]  # fmt: skip
    name = method if model is None else click_model(model).name
    settings = {"method": name, "level": level, "source": sessions.source}
    reference = int(counts.ranks[base])
    return Propensities._of(columns, reference=reference, verdict=tuple(verdict), **settings)


def _of_trust(counts: SwapCounts, base: int) -> list[str]:
    """Return a sentence if clicks at some rank are not proportional to those at the reference."""
    table = np.array(fit_offsets(counts, base, 1 - TRUST_LEVEL / len(counts.ranks)))
    ranks = counts.ranks[(table[:, 4] > 0) | (table[:, 5] < 0)].tolist()
    text = (
        f"Clicks at ranks {ranges(ranks)} are not proportional to those on the same documents at "
        f"rank {counts.ranks[base]}, as with trust bias: propensities alone do not correct them."
    )
    return [text] if ranks else []


def _randomized(sessions: Sessions, ranks: Ints, base: int) -> tuple[LogEstimate, list[str]]:
    """Return the estimate from logged propensities, and what it assumes."""
    if sessions.propensity is None:
        raise DataError(
            f"{sessions.source}: has no logged propensities; name their column, or choose another "
            "method."
        )
    rows = (sessions.rank <= ranks[-1]) & (sessions.propensity > 0)
    groups, what = sessions.page_query, "queries"
    if len(np.unique(groups)) < FOLDS:
        groups, what = sessions.session, "sessions, since there are few queries"
    _, group = np.unique(groups[sessions.page[rows]], return_inverse=True)
    weights = 1.0 / sessions.propensity[rows]
    estimate = fit_randomized(
        group, sessions.rank[rows], sessions.clicked[rows], weights, ranks, base
    )
    effective = weights.sum() ** 2 / np.square(weights).sum()
    return estimate, [
        "The ranking was randomized with logged propensities: position and relevance are "
        "independent if these are correct.",
        f"{effective:,.0f} of {len(rows):,} impressions are effective ({(~rows).sum():,} are left "
        f"out: below the last rank, or with a propensity of 0); intervals are over {what}.",
    ]


def _of_model(
    sessions: Sessions, model: ClickModel, ranks: Ints, base: int, progress: Progress | None
) -> LogEstimate:
    """Return the mean examination by rank of a fitted model, with a jackknife over queries."""
    column, page = np.searchsorted(ranks, sessions.rank), sessions.page
    inside = sessions.rank <= ranks[-1]

    def logarithms(fitted: ClickModel, pages: Bools) -> Floats:
        rows = inside & pages[page]
        examined = fitted.examination_probabilities(sessions)[rows]
        means = np.bincount(column[rows], examined) / np.bincount(column[rows])
        return np.asarray(np.log(means / means[base]))

    model.fit(sessions)
    values = logarithms(model, np.ones(sessions.n_pages, bool))
    influence, fold = jackknife(model, sessions, logarithms, progress)
    return _jackknifed(sessions, values, influence, fold, ranks, base)


def _by_features(
    sessions: Sessions, estimator: Any, ranks: Ints, base: int, progress: Progress | None
) -> LogEstimate:
    """Return the estimate with a ranking by features, with a jackknife over queries."""
    fit, parameters = estimator
    folds, n = query_folds(sessions)
    fold = folds[sessions.page_query]
    values, start = fit(np.ones(sessions.n_pages), np.zeros(parameters))
    rest = []
    for number in range(n if n > 1 else 0):
        if progress is not None:
            progress(number, n)
        rest.append(fit((fold != number).astype(np.float64), start)[0])
    values, rest = values - values[base], [each - each[base] for each in rest]
    influence = (values - np.array(rest or [values])) * (n - 1) / n
    return _jackknifed(sessions, values, influence, fold, ranks, base)


def _jackknifed(
    sessions: Sessions, values: Floats, influence: Floats, fold: Ints, ranks: Ints, base: int
) -> LogEstimate:
    """Return an estimate with the influence of folds of queries, which weigh by their clicks."""
    clicked = sessions.clicked & (sessions.rank <= ranks[-1])
    column = np.searchsorted(ranks, sessions.rank[clicked])
    cells = fold[sessions.page[clicked]] * len(ranks) + column
    weights = np.bincount(cells, minlength=influence.size).reshape(influence.shape)
    return LogEstimate(values, influence, weights.astype(np.float64), base)


def bias_by_rank(propensities: Any, sessions: Sessions) -> tuple[Floats, Floats, str]:
    """Return slope and offset by rank (the entry of rank 0 is unused), and their name."""
    name = getattr(propensities, "source", "") or "propensities"
    if propensities is None:  # clicks as they are
        alpha = np.ones(int(sessions.rank.max(initial=0)) + 1)
        return alpha, np.zeros(len(alpha)), name
    columns: Any
    if isinstance(propensities, Propensities):
        columns = propensities.rank, propensities.propensity, np.zeros(len(propensities.rank))
    elif isinstance(propensities, TrustBias):
        columns = propensities.rank, propensities.alpha, propensities.beta
    elif isinstance(propensities, (Mapping, Sequence, np.ndarray)) and len(propensities):
        is_map = isinstance(propensities, Mapping)
        by_rank = dict(propensities if is_map else enumerate(propensities, 1))
        columns = list(by_rank), list(by_rank.values()), np.zeros(len(by_rank))
    else:
        raise DataError(
            "propensities are those of estimate_propensities or trust_bias, a mapping from ranks, "
            "or one number per rank from rank 1."
        )
    rank, (values, offset) = np.asarray(columns[0], np.int64), np.asarray(columns[1:], np.float64)
    finite = np.isfinite(values) & np.isfinite(offset)
    if not finite.any() or rank.min() < 1:
        raise DataError(f"{name}: has no propensity of a rank from 1.")
    alpha = np.full(int(rank[finite].max()) + 1, np.nan)
    beta = np.zeros(len(alpha))
    alpha[rank[finite]], beta[rank[finite]] = values[finite], offset[finite]
    return alpha, beta, name
