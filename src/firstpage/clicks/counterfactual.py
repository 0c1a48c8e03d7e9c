"""What a new ranking would have earned, estimated from the clicks on the old one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np

from firstpage.clicks.models.pages import totals
from firstpage.clicks.policies import clustered_error
from firstpage.clicks.position_bias.propensities import Propensities, bias_by_rank
from firstpage.clicks.sessions import Sessions
from firstpage.core import DataError, Floats, Ints, Table, warn
from firstpage.data import Ids, Run, join_documents, match_queries, sort_groups
from firstpage.evaluation.measures import Convention, Evaluation, Measure

RankingMethod = Literal["policy-aware", "ips", "snips", "dr", "dm"]
METHODS = get_args(RankingMethod)
MIN_SUPPORT = 0.8  # of the weight of the first ranks must be on documents that the log displayed
FULL_SUPPORT = 0.999
MIN_EFFECTIVE = 100  # impressions


@dataclass(frozen=True)
class ClickMeasure(Measure):
    """What is estimated from clicks: Clicks@k, or DCG@k with attractiveness as gain."""

    kind: str = "Clicks"
    cutoff: int = 10
    about: ClassVar[str] = "estimated from clicks"

    @property
    def name(self) -> str:
        """Name of the measure, as in its text."""
        return self.kind

    def __str__(self) -> str:
        return f"{self.kind}@{self.cutoff}"

    @classmethod
    def parse(cls, text: Any) -> ClickMeasure:
        """Return the measure of a text."""
        match = re.fullmatch(r"(clicks|dcg)@([1-9]\d{0,3})", str(text).strip(), re.IGNORECASE)
        if match is None:
            raise DataError(f"clicks estimate Clicks@k and DCG@k, such as Clicks@10; got {text}.")
        return cls("Clicks" if match[1].lower() == "clicks" else "DCG", int(match[2]))


@dataclass(frozen=True, eq=False, repr=False)
class ClickEvaluation(Evaluation):
    """What a ranking would have earned, by measure; `fp.compare` takes several of one log.

    Queries count by their pages in the log.

    Attributes
    ----------
    texts : tuple of str
        Texts of the measures, in the order of the request.
    measures : tuple of Measure
        The measures.
    queries : Ids
        Ids of the queries that were measured.
    values : array of float of shape (n_measures, n_queries)
        Value of every measure for every query.
    convention : Convention
        The convention that applied.
    intervals : dict of str to (float, float)
        Confidence intervals of the means, by text.
    name : str
        Name of the system.
    weights : array of float of shape (n_queries,) or None
        Pages of each query in the log.
    bounds : dict of str to Bounds
        Means without the unjudged documents (`condensed`) and with these as relevant ones
        (`relevant`), by text; empty without ``bounds=True``.
    by : str
        Name of the segments; empty where there are none.
    k : int or None
        Depth of the truth, if it was cut to its top k.
    segments : dict of str to Evaluation
        The same measures within each segment of the queries.
    method : str
        The estimator.
    support : dict of str to float
        The fraction of each measure's weight that is on documents which the log displayed.
    effective : dict of str to float
        How many impressions of equal weight are as good as those of the log (Kish).
    impressions : dict of str to int
        How many impressions of the log have a weight.
    errors : dict of str to float
        Standard errors, from the variance between queries or users.
    propensities : str
        Which propensities were divided by.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 400, document=["a", "b", "b", "a"] * 100, rank=[1, 2] * 200,
    ...     clicked=[1, 0, 1, 0] * 100, propensity=[0.5] * 400)
    >>> result = fp.evaluate_clicks({"fox": {"b": 2.0, "a": 1.0}}, sessions, measures="Clicks@2")
    >>> result["Clicks@2"], result.support["Clicks@2"]
    (1.0, 1.0)
    """

    interval_kind: ClassVar[str] = "linearized"
    method: str = "ips"
    support: dict[str, float] = field(default_factory=dict)
    effective: dict[str, float] = field(default_factory=dict)
    impressions: dict[str, int] = field(default_factory=dict)
    errors: dict[str, float] = field(default_factory=dict)
    propensities: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return means, intervals, support and effective impressions as a dictionary."""
        names = ("method", "propensities", "errors", "support", "effective", "impressions")
        return {**super().to_dict(), **{name: getattr(self, name) for name in names}}

    def summary_table(self) -> Table:
        """Return the estimates with intervals, support and effective impressions."""
        rows = [
            [
                text, self.mean_text(text), self.interval_text(text), f"{self.support[text]:.1%}",
                f"{self.effective[text]:,.0f} of {self.impressions[text]:,}",
            ]
            for text in self.texts
        ]  # fmt: skip
        head = ["measure", "estimate", "interval", "support", "effective impressions"]
        title = f"{len(self.queries):,} queries, {self.method}, {self.propensities}"
        return Table(head, rows, title)

    def __str__(self) -> str:
        return self.summary_table().text()

    __repr__ = __str__


class ClickCells(NamedTuple):
    """Impressions with the same pair, rank and group, counted."""

    pair: Ints
    rank: Ints
    group: Ints
    shown: Floats
    clicks: Floats
    bias: Floats  # clicks are expected to be this times attractiveness, per impression
    inverse: Floats  # sum of the (clipped) 1 / propensity
    squares: Floats
    inverse_clicks: Floats


@dataclass(frozen=True, eq=False)
class ClickLog:
    """A log with propensities, counted once for the estimates of any number of rankings.

    Parameters
    ----------
    sessions : Sessions
        Pages of results with clicks.
    propensities : Propensities, mapping of int to float, or None
        Probabilities that ranks are examined; None divides by the logged probabilities that
        documents were displayed.
    by : {"query", "user"}, default "query"
        What is independent of each other, for intervals.
    clip : float, optional
        The largest 1 / propensity.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 200, document=["a", "b"] * 100, rank=[1, 2] * 100,
    ...     clicked=[1, 0] * 100)
    >>> log = fp.clicks.ClickLog(sessions, {1: 1.0, 2: 0.5})
    >>> fp.evaluate_clicks({"fox": {"b": 2.0, "a": 1.0}}, log, measures="Clicks@2")["Clicks@2"]
    0.5
    """

    sessions: Sessions
    propensities: Propensities | Mapping[int, float] | None = None
    by: Literal["query", "user"] = "query"
    clip: float | None = None

    def __post_init__(self) -> None:
        s = self.sessions
        if self.by not in ("query", "user"):
            raise DataError(f"intervals are by query or user; got {self.by!r}.")
        if self.by == "user" and (s.user is None or (s.user < 0).any()):
            raise DataError(f"{s.source}: has pages without a user; take intervals by query.")
        if self.clip is not None and not self.clip > 0:
            raise DataError(f"clip must be above 0; got {self.clip!r}.")
        if self.propensities is None and s.propensity is None:
            raise DataError(
                f"{s.source}: has no logged propensities; give those of ranks, which "
                "estimate_propensities (`firstpage clicks propensities`) estimates."
            )

    @cached_property
    def examination(self) -> Floats | None:
        """The propensity of each rank from 1, NaN where unknown; None with logged ones."""
        if self.propensities is None:
            return None
        alpha, beta, name = bias_by_rank(self.propensities, self.sessions)
        if beta.any():
            raise DataError(f"{name}: estimates need propensities; trust bias is not corrected.")
        wrong = np.flatnonzero(alpha[1:] <= 0) + 1
        if len(wrong):
            raise DataError(
                f"{name}: the propensity of rank {wrong[0]} must be above 0; "
                f"{np.isin(self.sessions.rank, wrong).sum():,} impressions are at such ranks."
            )
        return alpha[1:]

    @cached_property
    def pages(self) -> Floats:
        """The number of pages of each query."""
        s = self.sessions
        return np.bincount(s.page_query, minlength=s.n_queries).astype(np.float64)

    @property
    def page_group(self) -> Ints:
        """The query or user of each page."""
        s = self.sessions
        return s.page_query if self.by == "query" or s.user is None else s.user  # type: ignore[return-value]

    @cached_property
    def page_groups(self) -> tuple[Ints, Ints, Floats]:
        """Group and query of pages, and how many there are."""
        s, group = self.sessions, self.page_group
        key = group.astype(np.int64) * s.n_queries + s.page_query
        distinct, count = np.unique(key, return_counts=True)
        return distinct // s.n_queries, distinct % s.n_queries, count.astype(np.float64)

    @cached_property
    def cells(self) -> ClickCells:
        """The impressions with known propensities, counted."""
        s, table = self.sessions, self.examination
        if table is None:
            assert s.propensity is not None
            bias, zero = s.propensity, s.rank[s.propensity <= 0]
            if len(zero):
                raise DataError(
                    f"{s.source}: {len(zero):,} impressions, the first at rank {zero[0]}, have a "
                    "logged propensity of 0."
                )
        else:
            bias = np.r_[table, np.nan][np.minimum(s.rank - 1, len(table))]
        known = np.isfinite(bias)
        if not known.all():
            warn(
                f"{int((~known).sum()):,} of {len(known):,} impressions are at ranks without a "
                f"propensity (the first: {s.rank[~known].min()}); they count as not displayed."
            )
        depth, users = int(s.rank.max(initial=0)) + 1, 1
        key = s.pairs.pair * depth + s.rank
        if self.by == "user":
            users = len(s.users)
            key = key * users + self.page_group[s.page]
        distinct, cell = _numbered(key[known])
        pair, rank = np.divmod(distinct // users, depth)
        of_group = distinct % users if self.by == "user" else s.pairs.query[pair]
        clicked, inverse = s.clicked[known], 1 / bias[known]
        if self.clip is not None:
            inverse = np.minimum(inverse, self.clip)
        values = (None, clicked, bias[known], inverse, inverse**2, inverse * clicked)
        sums = [np.bincount(cell, v, len(distinct)).astype(np.float64) for v in values]
        shown, clicks, total, *rest = sums
        return ClickCells(pair, rank, of_group, shown, clicks, total / shown, *rest)

    @cached_property
    def pair_totals(self) -> tuple[Floats, Floats, Floats]:
        """Impressions, clicks, and summed propensities of each pair."""
        cells, n = self.cells, len(self.sessions.pairs.query)
        columns = cells.shown, cells.clicks, cells.shown * cells.bias
        shown, clicks, bias = (totals(cells.pair, v, n) for v in columns)
        return shown, clicks, bias

    def _target(self, run: Run, depth: int) -> NewRanking:
        """Return the first ranks of a run, for the queries of the log."""
        shown, order = self.sessions.displayed, sort_groups(run.scores, run.offsets)[0]
        partner = match_queries(run.queries, shown.queries)
        lengths = np.where(partner >= 0, np.minimum(np.diff(run.offsets), depth), 0)
        query = np.repeat(np.unique(self.sessions.pairs.query)[partner], lengths)
        rank = np.arange(len(query)) - np.repeat(np.cumsum(lengths) - lengths, lengths) + 1
        rows = order[np.repeat(run.offsets[:-1], lengths) + rank - 1]
        return NewRanking(query, rank, join_documents(run, shown, partner)[rows], rows)


def _numbered(keys: Ints) -> tuple[Ints, Ints]:
    """Return the distinct keys in order, and the number of each; only sparse keys are sorted."""
    if keys.max(initial=0) > 4 * len(keys):
        return np.unique(keys, return_inverse=True)
    there = np.zeros(int(keys.max(initial=0)) + 1, bool)
    there[keys] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[keys]


class NewRanking(NamedTuple):
    """The first ranks of a new ranking: query, rank, pair in the log (-1: none), row of the run."""

    query: Ints
    rank: Ints
    pair: Ints
    row: Ints


class EstimateTerms(NamedTuple):
    """An estimate: a term per query, a sum per cell, and a number per rank of the target."""

    base: Floats
    cells: Floats
    support: Floats
    effective: float
    impressions: int


def evaluate_clicks(
    system: Any,
    sessions: Sessions | ClickLog,
    propensities: Propensities | Mapping[int, float] | None = None,
    *,
    measures: Any = ("Clicks@10", "DCG@10"),
    method: RankingMethod | None = None,
    rewards: Any = None,
    clip: float | None = None,
    by: Literal["query", "user"] = "query",
    level: float = 0.95,
    name: str | None = None,
) -> ClickEvaluation:
    """Estimate what a ranking would have earned, from clicks on the rankings of a log.

    Parameters
    ----------
    system : Run or mapping
        The new ranking: {query: {document: score}}.
    sessions : Sessions or ClickLog
        The log; a `ClickLog` is counted once for several rankings.
    propensities : Propensities or mapping of int to float, optional
        Probabilities that ranks are examined.  Without them, clicks are divided by the logged
        probabilities that documents were displayed at their ranks.
    measures : str or iterable of str
        Clicks@k: expected clicks per page on the first k ranks (relative to the reference rank of
        the propensities).  DCG@k: sum of attractiveness / log2(1 + rank), which needs propensities.
        By default of the first 10 ranks; DCG only with propensities.
    method : {"policy-aware", "ips", "snips", "dr", "dm"}, optional
        "policy-aware" divides by the propensity over all ranks at which the log displayed the
        document; "ips" by that of the rank of the click; "snips" also by the mean weight; "dm" and
        "dr" (doubly robust) use `rewards`.  By default the first with propensities, else "ips".
    rewards : Run or mapping, optional
        Predictions of a reward model: {query: {document: value}}; attractiveness, or without
        propensities the probability of a click at the new rank.
    clip : float, optional
        The largest 1 / propensity; estimates become too small, and vary less.
    by : {"query", "user"}, default "query"
        What is independent of each other, for intervals.
    level : float, default 0.95
        Confidence level of the intervals, which take propensities for known.
    name : str, optional
        The name of the ranking; by default that of its run.

    Returns
    -------
    ClickEvaluation
        Estimates with intervals, support and effective impressions; `fp.compare` compares several.

    Raises
    ------
    DataError
        If the log does not support the estimate, and why.

    References
    ----------
    Joachims, Swaminathan and Schnabel, WSDM 2017 (ips); Oosterhuis and de Rijke, "Policy-aware
    unbiased learning to rank for top-k rankings", SIGIR 2020; Oosterhuis, "Doubly robust
    estimation for correcting position bias in click feedback", TOIS 2023; Li et al., "Offline
    evaluation of ranking policies with click models", KDD 2018.

    Examples
    --------
    >>> import firstpage as fp
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 400, document=["a", "b", "b", "a"] * 100, rank=[1, 2] * 200,
    ...     clicked=[1, 0, 1, 1] * 100)
    >>> new = {"fox": {"b": 2.0, "a": 1.0}}
    >>> result = fp.evaluate_clicks(new, sessions, {1: 1.0, 2: 0.5}, measures="Clicks@2")
    >>> round(result["Clicks@2"], 4)
    1.3333
    """
    log = sessions
    if isinstance(log, Sessions):
        log = ClickLog(log, propensities, by, clip)
    elif propensities is not None or clip is not None or by != "query":
        raise DataError("propensities, clip and by are those of the ClickLog.")
    run = system if isinstance(system, Run) else Run.from_dict(system)
    if method is None:
        method = "ips" if log.examination is None else "policy-aware"
    if method not in METHODS:
        raise DataError(f"the method is one of {', '.join(METHODS)}; got {method!r}.")
    if method == "policy-aware" and log.examination is None:
        raise DataError("policy-aware needs the propensities of ranks; take ips or snips.")
    if (rewards is None) == (method in ("dr", "dm")):
        raise DataError("rewards are for dr and dm, which need them: predictions by document.")
    if isinstance(measures, str):
        measures = measures.split(",")
    parsed = [ClickMeasure.parse(text) for text in dict.fromkeys(measures)]
    if log.examination is None and tuple(measures) == ("Clicks@10", "DCG@10"):
        parsed = parsed[:1]  # the default
    model = rewards if rewards is None or isinstance(rewards, Run) else Run.from_dict(rewards)
    name = name or run.name or run.source or "the ranking"
    return _Estimation(log, run, method, model, level, name).evaluation(parsed)


@dataclass(frozen=True)
class _Estimation:
    """Estimates of one ranking by one method."""

    log: ClickLog
    run: Run
    method: str
    rewards: Run | None
    level: float
    name: str

    def evaluation(self, measures: list[ClickMeasure]) -> ClickEvaluation:
        """Return the estimates of all measures."""
        log, s = self.log, self.log.sessions
        kept = np.zeros(s.n_queries, bool)
        target = log._target(self.run, max(m.cutoff for m in measures))
        kept[target.query] = True
        total, pages = log.pages.sum(), np.where(kept, log.pages, 0.0)
        if not kept.any():
            raise DataError(f"{self.name}: has none of the queries of {s.source}.")
        if pages.sum() < total:
            warn(
                f"{self.name}: lacks queries of the log; {total - pages.sum():,.0f} of "
                f"{total:,.0f} pages are left out."
            )
        queries = np.flatnonzero(kept)
        result = ClickEvaluation(
            texts=tuple(map(str, measures)), measures=tuple(measures), name=self.name,
            queries=Ids.from_values([s.queries[q] for q in queries]), convention=Convention(),
            values=np.empty((len(measures), len(queries))), weights=pages[queries],
            method=self.method,
            propensities="logged propensities" if log.examination is None else "by rank",
        )  # fmt: skip
        for row, measure in enumerate(measures):
            self._fill(result, row, measure, target, pages)
        return result

    def _fill(
        self, result: ClickEvaluation, row: int, m: ClickMeasure, target: NewRanking, pages: Floats
    ) -> None:
        """Estimate one measure."""
        log, text, n = self.log, str(m), float(pages.sum())
        first = target.rank <= m.cutoff
        target = NewRanking(*(column[first] for column in target))
        weight = self._rank_weights(m, int(target.rank.max()))[target.rank - 1]
        mass = totals(target.query, weight, len(pages))
        terms = self._terms(target, weight, mass, pages)
        supported = float(pages[target.query] * weight @ terms.support) / float(pages @ mass)
        self._check_support(text, supported, terms, target)
        query = log.sessions.pairs.query[log.cells.pair]
        values = terms.base + totals(query, terms.cells, len(pages)) / np.maximum(pages, 1)
        value = float(values @ pages) / n
        group, page_query, count = log.page_groups
        counted = np.where(pages[page_query] > 0, count, 0.0)
        size = int(group.max()) + 1
        sums = totals(log.cells.group, terms.cells, size)
        sums += totals(group, counted * (terms.base[page_query] - value), size)
        groups = totals(group, counted, size) > 0
        error, half = clustered_error(sums[groups], int(n), self.level)
        result.values[row] = values[pages > 0]
        result.intervals[text] = (value - half, value + half)
        result.errors[text], result.support[text] = error, supported
        result.effective[text], result.impressions[text] = terms.effective, terms.impressions

    def _rank_weights(self, m: ClickMeasure, depth: int) -> Floats:
        """Return what an attractive document adds at each rank."""
        table, ranks = self.log.examination, np.arange(1, depth + 1)
        if m.kind == "DCG" and table is None:
            raise DataError(f"{m} needs the propensities of ranks; without them, take Clicks@k.")
        if table is None:
            return np.ones(depth)
        if m.kind == "DCG":
            return np.asarray(1 / np.log2(1 + ranks))
        if depth > len(table) or np.isnan(table[:depth]).any():
            unknown = np.isnan(np.r_[table, np.full(depth, np.nan)][:depth])
            raise DataError(f"{m} needs the propensity of rank {ranks[unknown][0]}: not known.")
        return table[:depth]

    def _terms(
        self, target: NewRanking, weight: Floats, mass: Floats, pages: Floats
    ) -> EstimateTerms:
        """Return the terms of the method."""
        log, cells, there = self.log, self.log.cells, target.pair >= 0
        size = len(log.sessions.pairs.query)
        new_rank, of_pair = np.zeros(size, np.int64), np.zeros(size)
        new_rank[target.pair[there]] = target.rank[there]
        of_pair[target.pair[there]] = weight[there]
        scale, bias = of_pair[cells.pair], cells.bias
        known = np.zeros(size, bool)  # pairs that the log displayed, where it matters
        if log.examination is None:
            scale, bias = scale * (new_rank[cells.pair] == cells.rank), np.ones(len(bias))
        known[cells.pair[scale > 0]] = True
        support = np.where(there, known[target.pair], 0.0)
        clicks, weights = scale * cells.inverse_clicks, scale * cells.inverse
        squares = float((scale**2 * cells.squares).sum())
        shown, clicked, examined = log.pair_totals
        base, model = np.zeros(len(pages)), np.zeros(size)
        query = log.sessions.pairs.query
        if log.examination is not None and self.method in ("policy-aware", "dr", "dm"):
            inverse = pages[query] / np.where(examined > 0, examined, np.inf)
            inverse = inverse if log.clip is None else np.minimum(inverse, log.clip)
            clicks = scale * inverse[cells.pair] * cells.clicks
            weights = scale * inverse[cells.pair] * cells.shown
            squares = float((scale**2 * inverse[cells.pair] ** 2 * cells.shown).sum())
            if self.method == "policy-aware":
                model = clicked / np.where(examined > 0, examined, np.inf)
                base += totals(query, of_pair * inverse * clicked, len(pages))
                base /= np.maximum(pages, 1)
        elif log.examination is not None:
            support = support * shown[target.pair] / np.maximum(pages[target.query], 1)
        if self.rewards is not None:
            predicted = self._predicted(target)
            base = totals(target.query, weight * predicted, len(pages))
            model[target.pair[there]] = predicted[there]
        control = weights * bias
        effective = float(weights.sum()) ** 2 / squares if squares > 0 else 0.0
        used = int(cells.shown[scale > 0].sum())
        if self.method == "snips":
            total = max(float(control.sum()), 1e-300)
            ratio = float(clicks.sum()) / total
            clicks = float(pages @ mass) / total * (clicks - ratio * control)
            return EstimateTerms(ratio * mass, clicks, support, effective, used)
        if self.method == "dm":
            return EstimateTerms(base, 0.0 * clicks, support, 0.0, 0)
        if self.method != "ips":
            clicks = clicks - control * model[cells.pair]
        return EstimateTerms(base, clicks, support, effective, used)

    def _predicted(self, target: NewRanking) -> Floats:
        """Return the reward model's number for each document of the target."""
        assert self.rewards is not None
        rewards, run = self.rewards, self.run
        partner = match_queries(run.queries, rewards.queries)
        rows = join_documents(run, rewards, partner, "the rewards")[target.row]
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            raise DataError(
                f"the rewards lack {len(missing):,} of {len(rows):,} documents of {self.name} "
                f"(the first: {self._document(target, missing[0])})."
            )
        return rewards.scores[rows]

    def _document(self, target: NewRanking, row: Any) -> str:
        """Return the document in a row of the target, and its query."""
        query = self.log.sessions.queries[target.query[row]]
        return f"{self.run.docids[target.row[row]]} of {query}"

    def _check_support(
        self, text: str, supported: float, terms: EstimateTerms, target: NewRanking
    ) -> None:
        """Refuse an estimate without support; warn where a part of it has none, or it is thin."""
        if supported < FULL_SUPPORT and self.method not in ("dr", "dm"):
            at_rank = "" if self.log.examination is not None else " at their new ranks"
            problem = (
                f"{self.name}: {1 - supported:.1%} of the weight of {text} is on documents that "
                f"the pages of the log do not have{at_rank} (the first: "
                f"{self._document(target, np.argmin(terms.support))})"
            )
            if supported < MIN_SUPPORT:
                raise DataError(
                    f"{problem}: the log does not support {self.method}; at most "
                    f"{1 - MIN_SUPPORT:.0%} may be.  dr and dm need no support, but rewards."
                )
            taken = "as clicked as the others" if self.method == "snips" else "as never clicked"
            warn(f"{problem}; they are taken {taken}.")
        if self.method != "dm" and terms.effective < MIN_EFFECTIVE:
            warn(
                f"{self.name}: {text} rests on {terms.effective:,.1f} effective impressions of "
                f"{terms.impressions:,}; its interval is not reliable."
            )
