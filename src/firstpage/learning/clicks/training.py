"""`from_clicks`: sessions and features become training data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from firstpage.clicks import ClickModel, Sessions
from firstpage.core import DataError, Floats, warn
from firstpage.data import Dataset, join_labels, match_queries
from firstpage.data.preferences import PreferencePairs
from firstpage.learning.clicks.relevance import (
    CORRECTIONS,
    DISPLAYS,
    MIN_PAGES,
    Correction,
    Display,
    Relevance,
    estimate_relevance,
)

MIN_EFFECTIVE_QUERIES = 10
DETERMINISTIC = (
    "{source}: the logging ranker was deterministic at the cut-off: all pages of a query display "
    "the same documents, so clicks tell nothing about {count:,} others, and this correction is "
    "impossible; correction='ips' takes them for irrelevant."
)


@dataclass(frozen=True, eq=False, repr=False)
class ClickTraining:
    """Training data from clicks, for every ranker.

    Attributes
    ----------
    data : Dataset
        The documents of queries with clicks.  Labels are estimates of relevance, divided by the
        largest one of the query, and `query_weights` are this largest one times the number of pages
        (relative to the mean), so that a loss linear in the labels sums over the pages of the log.
    correction : str
        How clicks were corrected.
    effective_clicks, effective_queries : float
        How many clicks, and queries, of equal weight are as good as those of the log.
    decisions : dict of str to int
        What was left out, in words, and how often.
    verdict : tuple of str
        What can be trusted, in sentences.

    Examples
    --------
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays([[1.0], [2.0]], [0, 0], ["fox", "fox"], docid=["a", "b"])
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 4, document=["a", "b", "b", "a"], rank=[1, 2, 1, 2],
    ...     clicked=[1, 1, 1, 0], page=[1, 1, 2, 2])
    >>> clicks = fp.from_clicks(sessions, data, [1.0, 0.5])
    >>> clicks.data.y.round(2).tolist()  # of the estimates 1/2 and (1/0.5 + 1)/2
    [0.33, 1.0]
    >>> ranker = fp.RankSVM().fit(clicks.data, pairs=clicks.pairs)
    """

    data: Dataset
    correction: str
    effective_clicks: float
    effective_queries: float
    decisions: Mapping[str, int]
    verdict: tuple[str, ...]

    @cached_property
    def pairs(self) -> PreferencePairs:
        """Each clicked document against every other one of its query, weighted by its label.

        With the weights of the queries, a pairwise loss is that of the propensity-weighted RankSVM.
        """
        data = self.data
        assert data.docids is not None
        preferred = np.flatnonzero(data.y > 0)
        query = np.searchsorted(data.offsets, preferred, side="right") - 1
        lengths = data.lengths[query]
        starts = np.cumsum(lengths) - lengths
        first = np.repeat(preferred, lengths)
        other = np.arange(len(first)) - np.repeat(starts - data.offsets[query], lengths)
        first, other = first[first != other], other[first != other]
        tied = np.zeros(len(first), bool)
        return PreferencePairs(
            data.queries, data.offsets, data.docids, first, other, tied, data.y[first],
            source=data.source,
        )  # fmt: skip

    def __str__(self) -> str:
        left_out = [f"{count:,} {text}." for text, count in self.decisions.items()]
        return "\n".join([*self.verdict, *left_out])

    def __repr__(self) -> str:
        return f"ClickTraining({self.correction}: {self.data!r})"


def from_clicks(
    sessions: Sessions,
    features: Dataset,
    propensities: Any = None,
    *,
    correction: Correction | None = None,
    display: Display = "estimated",
    clip: float | None = None,
) -> ClickTraining:
    """Return training data of a log of clicks, corrected for the ranks of the documents.

    Parameters
    ----------
    sessions : Sessions
        Pages of results with clicks.
    features : Dataset
        The documents of the queries with their features and ids; its labels are not used.
    propensities : Propensities, TrustBias, click model, mapping or sequence, optional
        The probability that ranks are examined: an estimate, one number per rank from rank 1, or
        {rank: propensity}.  `TrustBias` corrects clicks by slope and offset.  A fitted click model
        gives each impression the probability that it was examined, given the clicks above it on the
        page, for users who stop after a good result.  Impressions below the last known rank are
        left out.  None takes clicks as they are, as if all ranks were examined.
    correction : {"empirical-bayes", "policy-aware", "ips"}, optional
        "ips" divides each click by the propensity of its rank, and takes documents that were never
        displayed for irrelevant.  "policy-aware" divides the clicks of a document by its mean
        propensity over all pages of the query, which is 0 where it is not displayed, and leaves
        documents that were never displayed out.  "empirical-bayes" shrinks the latter estimates
        towards the mean of the query, the more the less often a document was examined.  By default
        it is taken with propensities if the documents of the first page vary and queries have 10
        pages or more in the mean, and else "ips".
    display : {"estimated", "logged"}, default "estimated"
        Whether the probabilities that a document is displayed at a rank are frequencies of the log,
        or its logged propensities; not with "ips".
    clip : float, optional
        Raise propensities to this value at least.  It reduces the variance; the bias is stated.

    Returns
    -------
    ClickTraining
        A weighted Dataset, pairs, and what can be trusted.

    Raises
    ------
    DataError
        If a propensity is 0 or unknown at a rank with impressions, if no clicked document has
        features, or if the log cannot tell what the correction needs.

    References
    ----------
    Joachims, Swaminathan and Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM 2017;
    Vardasbi, Oosterhuis and de Rijke, "When inverse propensity scoring does not work", CIKM 2020
    (trust bias); Oosterhuis and de Rijke, "Policy-aware unbiased learning to rank for top-k
    rankings", SIGIR 2020; Vardasbi, de Rijke and Markov, "Cascade model-based propensity estimation
    for counterfactual learning to rank", SIGIR 2020 (click models).

    Examples
    --------
    >>> import firstpage as fp
    >>> data = fp.Dataset.from_arrays([[1.0], [2.0]], [0, 0], ["fox", "fox"], docid=["a", "b"])
    >>> sessions = fp.Sessions.from_arrays(
    ...     query=["fox"] * 2, document=["a", "b"], rank=[1, 2], clicked=[0, 1])
    >>> fp.from_clicks(sessions, data, [1.0, 0.5]).data.y.tolist()
    [0.0, 1.0]
    """
    if correction not in (None, *CORRECTIONS) or display not in DISPLAYS:
        raise DataError(
            f"correction is one of {', '.join(CORRECTIONS)}, and display one of "
            f"{', '.join(DISPLAYS)}; got {correction!r} and {display!r}."
        )
    if clip is not None and not 0 < clip <= 1:
        raise DataError(f"clip is above 0 and at most 1; got {clip!r}.")
    if display == "logged" and (correction == "ips" or isinstance(propensities, ClickModel)):
        raise DataError("display='logged' needs propensities by rank, and not the correction ips.")
    relevance = estimate_relevance(sessions, propensities, correction, display, clip)
    label = "naive" if propensities is None else relevance.correction
    data, pages, decisions = _joined(sessions, features, relevance)
    mean_pages = float(relevance.pages.mean())
    if relevance.correction != "ips" and mean_pages < MIN_PAGES:
        warn(
            f"{sessions.source}: {mean_pages:.1f} pages per query are few for "
            f"{relevance.correction}: with fewer than {MIN_PAGES}, rankers of simulated clicks got "
            "worse than with clicks as they are, most of all with trust bias; take the correction "
            "ips, or more pages."
        )
    best = np.maximum.reduceat(data.y, data.offsets[:-1])
    clicked = best > 0
    if not clicked.any():
        raise DataError(f"{sessions.source}: no click is on a document of {features.source}.")
    if not clicked.all():
        decisions["queries without clicks tell nothing"] = int((~clicked).sum())
        data, pages, best = data[clicked], pages[clicked], best[clicked]
    weights = best * pages / pages.mean()
    data = replace(data, y=data.y / np.repeat(best, data.lengths), query_weights=weights)
    effective = float(weights.sum() ** 2 / np.square(weights).sum())
    verdict = relevance.verdict + _verdict(label, relevance.effective_clicks, effective)
    counts = (relevance.effective_clicks, effective)
    return ClickTraining(data, label, *counts, relevance.decisions | decisions, tuple(verdict))


def _joined(
    sessions: Sessions, features: Dataset, relevance: Relevance
) -> tuple[Dataset, Floats, dict[str, int]]:
    """Return the documents of queries with pages, labeled; the numbers of pages; counts."""
    source = f"{features.source} with clicks of {sessions.source}"
    rates, correction = relevance.rates, relevance.correction
    partner = match_queries(features.queries, rates.queries)
    decisions = {
        "queries with features have no page": int((partner < 0).sum()),
        "queries with pages have no features": len(rates.queries) - int((partner >= 0).sum()),
    }
    if not (partner >= 0).any():
        raise DataError(
            f"{features.source} has none of the {len(rates.queries):,} queries of "
            f"{sessions.source}, such as {rates.queries[0] if len(rates.queries) else ''!r}; "
            "a log is joined by the ids of queries."
        )
    data = features[np.flatnonzero(partner >= 0)]
    unjudged: Any = "zero" if correction == "ips" else "drop"
    (labeled,), report = join_labels([replace(data, source=source)], rates, unjudged)
    unseen = report.documents - report.matched
    if correction != "ips" and unseen and not relevance.rotates:
        raise DataError(DETERMINISTIC.format(source=sessions.source, count=unseen))
    verb = "are taken for irrelevant" if correction == "ips" else "are left out"
    where = " at these ranks" if any("below rank" in text for text in relevance.decisions) else ""
    decisions[f"documents were never displayed{where} and {verb}"] = unseen
    known = match_queries(rates.queries, features.queries) >= 0
    decisions["displayed documents have no features"] = (
        int(np.diff(rates.offsets)[known].sum()) - report.matched
    )
    pages = relevance.pages[match_queries(labeled.queries, rates.queries)]
    return labeled, pages, {text: count for text, count in decisions.items() if count}


def _verdict(label: str, clicks: float, queries: float) -> list[str]:
    """Return sentences on what the data are worth."""
    lines = [
        "Clicks are not corrected: what was displayed high counts more."
        if label == "naive"
        else f"Clicks are corrected by {label}.",
        f"The clicks are worth {clicks:,.0f} of equal weight, on {queries:,.1f} equal queries.",
    ]
    if queries < MIN_EFFECTIVE_QUERIES:
        lines.append("Few queries decide: the ranker may not carry over to others.")
    return lines
