"""How well click models predict pages that they were not fitted to.

Pages of one query are not independent, so that intervals and tests take queries as the units: the
mean over impressions is a ratio of sums over queries, linearized, with Student's distribution.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from firstpage.clicks.models.base import LEAST_PROBABILITY, ClickModel
from firstpage.clicks.models.pages import totals
from firstpage.clicks.models.registry import click_model
from firstpage.clicks.sessions import Sessions
from firstpage.core import (
    Bools,
    Chart,
    DataError,
    Floats,
    Ints,
    Progress,
    Table,
    Tabular,
    counted,
    curves,
    stacked,
)
from firstpage.evaluation.measures import adjust_p_values, format_p, significance

Interval = tuple[float, float]
FOLDS = 20  # groups of queries that are left out in turn
FitProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class ClickModelScore:
    """How well one click model predicts pages.

    Attributes
    ----------
    model : str
        The model, with its parameters.
    log_likelihood : float
        Mean log-probability of an observed click or skip, given those above on the page.
    log_likelihood_interval : tuple of float or None
        Bounds of its 95 % interval, by query; None where there is one query only.
    perplexity : float
        Mean over ranks of the perplexity of clicks at the rank, 2 to the power of the negative mean
        log2-probability, over all clicks above: 1 is perfect, 2 a coin.
    perplexity_interval : tuple of float or None
        Bounds of its 95 % interval, by query; None where there is one query only.
    rank_perplexity : array of float
        The perplexity of each rank.
    rank_intervals : tuple of (tuple of float or None)
        Bounds of the 95 % intervals of these.
    examination : array of float
        Mean probability of examining each rank, relative to the first one.
    examination_intervals : tuple of (tuple of float or None)
        Bounds of the 95 % intervals of these, by query, if they were asked for.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q", "q", "r", "r"] * 2, document=["a", "b"] * 4, rank=[1, 2] * 4,
    ...     clicked=[1, 0, 1, 0, 1, 0, 0, 0])
    >>> score = fp.clicks.compare_models(["RankCTR"], sessions, sessions).scores[0]
    >>> score.examination.round(2).tolist()
    [1.0, 0.25]
    """

    model: str
    log_likelihood: float
    log_likelihood_interval: Interval | None
    perplexity: float
    perplexity_interval: Interval | None
    rank_perplexity: Floats
    rank_intervals: tuple[Interval | None, ...]
    examination: Floats
    examination_intervals: tuple[Interval | None, ...] = ()


@dataclass(frozen=True)
class ClickModelDifference:
    """The difference of two click models in mean log-likelihood.

    Attributes
    ----------
    model, against : str
        The two models.
    difference : float
        Log-likelihood of the first minus that of the second, per impression.
    interval : tuple of float or None
        Bounds of its 95 % interval, by query; None where there is one query only.
    p, p_corrected : float
        P-value of the paired t-test over queries, and with Holm's correction for all pairs.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q", "q", "r", "r"] * 2, document=["a", "b"] * 4, rank=[1, 2] * 4,
    ...     clicked=[1, 0, 1, 0, 1, 0, 0, 0])
    >>> comparison = fp.clicks.compare_models(["RankCTR", "GlobalCTR"], sessions, sessions)
    >>> comparison.differences[0].difference > 0
    True
    """

    model: str
    against: str
    difference: float
    interval: Interval | None
    p: float
    p_corrected: float


@dataclass(frozen=True, eq=False, repr=False)
class ClickModelComparison(Tabular):
    """Click models on the same pages; the result of `compare_models`.

    Attributes
    ----------
    scores : tuple of ClickModelScore
        The models, the highest log-likelihood first.
    differences : tuple of ClickModelDifference
        All pairs of models.
    ranks : array of int
        The ranks that the pages have.
    pages, impressions, queries : int
        How many there are.
    known : float
        The fraction of the impressions whose document, for the query, a model was fitted to.
    models : tuple of ClickModel
        The fitted models, in the order of the scores.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q", "q", "r", "r"] * 2, document=["a", "b"] * 4, rank=[1, 2] * 4,
    ...     clicked=[1, 0, 1, 0, 1, 0, 0, 0])
    >>> comparison = fp.clicks.compare_models(["RankCTR", "GlobalCTR"], sessions, sessions)
    >>> comparison.queries, comparison.impressions
    (2, 8)
    """

    scores: tuple[ClickModelScore, ...]
    differences: tuple[ClickModelDifference, ...]
    ranks: Any
    pages: int
    impressions: int
    queries: int
    known: float
    models: tuple[ClickModel, ...]

    def _frame_columns(self) -> dict[str, Any]:
        rows = [self._row(score) for score in self.scores]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def _row(self, score: ClickModelScore) -> dict[str, Any]:
        low, high = score.log_likelihood_interval or (None, None)
        p_low, p_high = score.perplexity_interval or (None, None)
        return {
            "model": score.model, "log_likelihood": score.log_likelihood, "low": low, "high": high,
            "perplexity": score.perplexity, "perplexity_low": p_low, "perplexity_high": p_high,
        }  # fmt: skip

    def against_best(self, model: str) -> ClickModelDifference | None:
        """Return the difference of a model to the best one; None for the best one itself.

        Parameters
        ----------
        model : str
            The model's name in `scores`.

        Returns
        -------
        ClickModelDifference or None
            The difference, which is not positive.
        """
        best = self.scores[0].model
        pair = (d for d in self.differences if (d.model, d.against) == (best, model))
        return next(pair, None)

    def summary_table(self) -> Table:
        """Return log-likelihood, perplexity and the difference to the best model as a table."""
        head = ["model", "log-likelihood", "95 % interval", "perplexity", "95 % interval"]
        head += ["below best by", "p (Holm)"]
        rows = []
        for s in self.scores:
            worse = self.against_best(s.model)
            row = [s.model, f"{s.log_likelihood:.5f}", _shown(s.log_likelihood_interval)]
            row += [f"{s.perplexity:.5f}", _shown(s.perplexity_interval)]
            below = [f"{worse.difference:.5f}", format_p(worse.p_corrected)] if worse else ["", ""]
            rows.append(row + below)
        note = (
            f"per impression, on {counted(self.impressions, 'impressions')} of "
            f"{counted(self.pages, 'pages')}; intervals and paired t-tests over "
            f"{counted(self.queries, 'queries')}\n{self.known:.0%} of the impressions are of "
            "documents that the models were fitted to"
        )
        return Table(head, rows, note=note)

    def rank_table(self) -> Table:
        """Return the perplexity of each rank as a table.

        Returns
        -------
        Table
            A row per rank and a column per model.
        """
        head = ["rank", *(score.model for score in self.scores)]
        rows = [
            [str(rank), *(f"{score.rank_perplexity[i]:.4f}" for score in self.scores)]
            for i, rank in enumerate(self.ranks.tolist())
        ]
        return Table(head, rows, title="perplexity by rank")

    def plot(self) -> Chart:
        """Return charts of examination and of perplexity by rank.

        Returns
        -------
        Chart
            Two drawings, with 95 % intervals by query.
        """
        ranks = self.ranks.tolist()

        def drawing(name: str, values: str, intervals: str) -> str:
            points, bands = {}, {}
            for s in self.scores:
                numbers = getattr(s, values).tolist()
                points[s.model] = list(zip(ranks, numbers, strict=True))
                rows = zip_longest(getattr(s, intervals), numbers)
                bands[s.model] = [interval or (y, y) for interval, y in rows]
            return curves(points, name, "rank", name.split()[0].lower(), bands)

        titles = "Examination by rank, relative to the first rank", "Perplexity by rank"
        first = drawing(titles[0], "examination", "examination_intervals")
        second = drawing(titles[1], "rank_perplexity", "rank_intervals")
        return stacked(list(zip((first, second), titles, strict=True)), "Click models")

    def to_dict(self) -> dict[str, Any]:
        """Return all results as JSON data.

        Returns
        -------
        dict
            Scores, differences and sizes.
        """
        scores = [
            self._row(s)
            | {name: getattr(s, name).tolist() for name in ("rank_perplexity", "examination")}
            | {"rank_perplexity_intervals": s.rank_intervals}
            | {"examination_intervals": s.examination_intervals}
            for s in self.scores
        ]
        return {
            **{name: getattr(self, name) for name in ("pages", "impressions", "queries", "known")},
            "ranks": self.ranks.tolist(),
            "scores": scores,
            "differences": [vars(difference) for difference in self.differences],
        }

    def __repr__(self) -> str:
        return self.summary_table().text()


@dataclass(frozen=True, eq=False)
class Units:
    """The impressions of test pages by query and by rank."""

    query: Any
    rank: Any
    clicked: Bools
    sizes: Floats
    ranks: Any
    rank_sizes: Floats

    @classmethod
    def from_sessions(cls, sessions: Sessions) -> Units:
        """Number the queries and ranks that occur."""
        queries, query = np.unique(sessions.page_query[sessions.page], return_inverse=True)
        ranks, rank = np.unique(sessions.rank, return_inverse=True)
        ones = np.ones(len(query))
        sizes, rank_sizes = totals(query, ones, len(queries)), totals(rank, ones, len(ranks))
        return cls(query, rank, sessions.clicked, sizes, ranks, rank_sizes)

    def rank_means(self, values: Floats) -> Floats:
        """Return the mean of a value per impression of each rank."""
        return totals(self.rank, values, len(self.ranks)) / self.rank_sizes

    def score(self, model: ClickModel, sessions: Sessions) -> tuple[ClickModelScore, Floats]:
        """Return how well a model predicts the pages, and its log-likelihood by query."""
        by_query = totals(self.query, model.log_likelihood(sessions), len(self.sizes)) / self.sizes
        pseudo = significance.mean_pseudo_values(by_query, self.sizes)
        p = model.click_probabilities(sessions)
        logs = np.log2(np.maximum(np.where(self.clicked, p, 1.0 - p), LEAST_PROBABILITY))
        means = self.rank_means(logs)
        perplexity = 2.0**-means
        # derivative of the rank's perplexity by each impression, which sums to 0 over the rank
        scale = -math.log(2) * perplexity / self.rank_sizes
        influence = scale[self.rank] * (logs - means[self.rank])
        sums = totals(self.query, influence / len(self.ranks), len(self.sizes))
        likelihood, mean = float(pseudo.mean()), float(perplexity.mean())
        of_log = likelihood, t_interval(likelihood, pseudo / len(pseudo))
        by_rank = perplexity, self._rank_intervals(perplexity, influence)
        examined = self.examination(model, sessions)
        total = mean, t_interval(mean, sums)
        return ClickModelScore(model.name, *of_log, *total, *by_rank, examined), by_query

    def examination(self, model: ClickModel, sessions: Sessions) -> Floats:
        """Return the mean examination of each rank, relative to the first one."""
        means = self.rank_means(model.examination_probabilities(sessions))
        return np.asarray(means / max(means[0], LEAST_PROBABILITY))

    def _rank_intervals(self, perplexity: Floats, influence: Floats) -> tuple[Interval | None, ...]:
        cells, index = np.unique(self.rank * len(self.sizes) + self.query, return_inverse=True)
        sums, rank = totals(index, influence, len(cells)), cells // len(self.sizes)
        return tuple(
            t_interval(value, sums[rank == r]) for r, value in enumerate(perplexity.tolist())
        )


def _shown(interval: Interval | None) -> str:
    return "" if interval is None else "{:.4f} to {:.4f}".format(*interval)


def t_interval(value: float, terms: Floats) -> Interval | None:
    """Return Student's interval of a sum of independent terms around `value`; None of one query."""
    from scipy.special import stdtrit

    count = len(terms)
    if count < 2:
        return None
    half = float(stdtrit(count - 1, (1 + significance.CONFIDENCE_LEVEL) / 2) * terms.std(ddof=1))
    half *= math.sqrt(count)
    return value - half, value + half


def compare_models(
    models: Sequence[ClickModel | str],
    train: Sessions | None,
    test: Sessions,
    progress: FitProgress | None = None,
    intervals: bool = False,
) -> ClickModelComparison:
    """Fit click models to pages and compare how well they predict others.

    Parameters
    ----------
    models : sequence of ClickModel or str
        Models, or texts such as `UBM` and `PBM(prior=(1, 1))`.
    train : Sessions or None
        The pages to fit to; None where all models are fitted.
    test : Sessions
        The pages to predict.
    progress : callable, optional
        Called with the name of the model, the number of its steps, and the greatest possible one.
    intervals : bool, default False
        Estimate intervals of examination too: each model is fitted anew 20 times, each time without
        a twentieth of the queries of `train`.

    Returns
    -------
    ClickModelComparison
        Log-likelihood and perplexity with intervals by query, and tests of all pairs of models.

    Raises
    ------
    DataError
        If there are no pages or two models are the same.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["q", "q", "r", "r"] * 30, document=["a", "b", "c", "d"] * 30,
    ...     rank=[1, 2] * 60, clicked=[1, 0, 1, 0, 0, 1, 0, 0] * 15)
    >>> train, test = sessions.split(0.5, seed=1)
    >>> comparison = fp.clicks.compare_models(["GlobalCTR", "RankCTR"], train, test)
    >>> [score.model for score in comparison.scores]
    ['RankCTR', 'GlobalCTR']
    """
    parsed = [click_model(model) for model in models]
    names = [model.name for model in parsed]
    if repeated := [name for n, name in enumerate(names) if name in names[:n]]:
        raise DataError(f"{repeated[0]} is compared with itself; name each model once.")
    if not parsed or not test.n_impressions:
        raise DataError(
            "a comparison needs a click model, and pages to predict: test on another log, or on a "
            "larger fraction of this one."
        )
    if train is not None:
        for model in parsed:
            model.fit(train, _named(progress, model.name))
    units = Units.from_sessions(test)
    scored = [(*units.score(model, test), model) for model in parsed]
    if train is not None and intervals:
        scored = [
            (replace(score, examination_intervals=_of_folds(units, m, train, test, progress)), v, m)
            for score, v, m in scored
        ]
    scored.sort(key=lambda row: -row[0].log_likelihood)
    scores, _, fitted = zip(*scored, strict=True)
    differences = _differences([(score.model, values) for score, values, _ in scored], units.sizes)
    sizes = test.n_pages, test.n_impressions, len(units.sizes)
    known = _known(parsed, test)
    return ClickModelComparison(scores, differences, units.ranks, *sizes, known, fitted)


def _of_folds(
    units: Units, model: ClickModel, train: Sessions, test: Sessions, progress: FitProgress | None
) -> tuple[Interval | None, ...]:
    """Return intervals of examination by rank, from fits without a part of the queries."""
    shown = _named(progress, f"{model.name} without a part of the queries")
    influence, _ = jackknife(model, train, lambda m, _: units.examination(m, test), shown)
    values = units.examination(model, test).tolist()
    return tuple(t_interval(x, terms) for x, terms in zip(values, influence.T, strict=True))


def query_folds(sessions: Sessions) -> tuple[Ints, int]:
    """Return the fold of each query, and the number of folds."""
    queries = np.unique(sessions.page_query)
    n, folds = min(FOLDS, len(queries)), np.zeros(sessions.n_queries, np.int64)
    folds[queries] = np.random.default_rng(0).permutation(len(queries)) % n
    return folds, n


def jackknife(
    model: ClickModel,
    sessions: Sessions,
    statistic: Callable[[ClickModel, Bools], Floats],
    progress: Progress | None = None,
) -> tuple[Floats, Ints]:
    """Return the influence of folds of queries (rows) on statistics, and the fold of each page."""
    folds, n = query_folds(sessions)
    fold = folds[sessions.page_query]
    value = statistic(model, np.ones(len(fold), bool))
    if n < 2:
        return np.zeros((n, len(value))), fold
    refits = model.without_queries(sessions, folds, progress)
    rest = np.stack([statistic(m, fold != number) for number, m in enumerate(refits)])
    return np.nan_to_num(value - rest) * (n - 1) / n, fold


def _known(models: Sequence[ClickModel], test: Sessions) -> float:
    """Return the fraction of the impressions whose pairs a model knows; 1 if none has pairs."""
    rows = [m.attractiveness_.rows_of(test) for m in models if m.uses_documents]
    return float((np.max(rows, axis=0) >= 0).mean()) if rows else 1.0


def _named(progress: FitProgress | None, name: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(name, done, total)


def _differences(
    values: Sequence[tuple[str, Floats]], sizes: Floats
) -> tuple[ClickModelDifference, ...]:
    """Return the differences of all pairs of models by query, with corrected tests."""
    rows = []
    for (one, ours), (other, theirs) in itertools.combinations(values, 2):
        pseudo = significance.mean_pseudo_values(ours - theirs, sizes)
        mean = float(pseudo.mean())
        interval = t_interval(mean, pseudo / len(pseudo))
        rows.append((one, other, mean, interval, significance.paired_t(pseudo)))
    corrected = adjust_p_values(np.array([row[-1] for row in rows]), "holm").tolist()
    return tuple(ClickModelDifference(*row, p) for row, p in zip(rows, corrected, strict=True))
