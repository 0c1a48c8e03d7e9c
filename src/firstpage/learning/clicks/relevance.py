"""The relevance of displayed documents, estimated from clicks that are corrected for their rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from firstpage.clicks import ClickModel, PoissonRate, Sessions, bias_by_rank, grouped_ids, shrink
from firstpage.core import Bools, DataError, Floats, Ints
from firstpage.data import Qrels

Correction = Literal["empirical-bayes", "policy-aware", "ips"]
Display = Literal["estimated", "logged"]
CORRECTIONS = ("empirical-bayes", "policy-aware", "ips")
DISPLAYS = ("estimated", "logged")
MIN_PAGES = 10  # per query in the mean, below which inverse propensities rank better
MIN_EXAMINED = 1e-6  # probability of examination by a click model


@dataclass(frozen=True, eq=False)
class Relevance:
    """The estimated relevance of displayed documents, and how much the log tells about it.

    Attributes
    ----------
    rates : Qrels
        The estimate of each displayed document of a query, at least 0.
    pages : ndarray of float
        The number of pages of each query of `rates`.
    rotates : bool
        Whether some document of a query was on some of the query's pages and not on others.
    correction : str
        The correction.
    effective_clicks : float
        How many clicks of equal weight are as good as those of the log.
    decisions : dict of str to int
        What was left out, in words, and how often.
    verdict : list of str
        What the estimate does not correct.
    """

    rates: Qrels
    pages: Floats
    rotates: bool
    correction: str
    effective_clicks: float
    decisions: dict[str, int]
    verdict: list[str]


def estimate_relevance(
    sessions: Sessions, propensities: Any, correction: str | None, display: str, clip: float | None
) -> Relevance:
    """Return the relevance per query and document: mean click, by the probability of examination.

    P(click at rank k) = alpha[k] * relevance + beta[k]; propensities are alpha, with beta = 0.  A
    click model gives each impression its own alpha, by the clicks above it.
    With "ips" each click is divided by alpha at its rank; with "policy-aware" the clicks of a
    document by the mean alpha over all pages of its query, 0 on those that do not display it;
    "empirical-bayes" shrinks this estimate towards the mean of the query.  None takes the last one
    if there are propensities, pages enough, and documents of the first page vary, else "ips".
    """
    model = propensities if isinstance(propensities, ClickModel) else None
    alpha, beta, name = bias_by_rank(None if model else propensities, sessions)
    known = sessions.rank < len(alpha)
    ranks = sessions.rank[known].astype(np.int64)
    _check_ranks(alpha, ranks, name)
    pair, of_query, of_document = sessions.pairs
    pair = pair[known]
    all_pages = np.bincount(sessions.page_query, minlength=sessions.n_queries).astype(np.float64)
    pages = all_pages[of_query]
    clicked = sessions.clicked[known]
    examined, gain = alpha[ranks], clicked - beta[ranks]
    if model is not None:
        examined = _by_model(model, sessions)
    shown = np.bincount(pair, minlength=len(pages))
    rotates = bool((shown[shown > 0] < pages[shown > 0]).any())
    if correction is None:
        thin = sessions.n_pages < MIN_PAGES * np.count_nonzero(all_pages)
        varied = display == "logged" or (propensities is not None and rotates and not thin)
        correction = "empirical-bayes" if varied else "ips"
    weights = 1.0 / np.maximum(examined[clicked], clip or 0.0)
    if correction == "ips":
        gain /= examined if clip is None else np.maximum(examined, clip)
        rate = np.bincount(pair, gain, len(pages)) / pages
    else:
        if display == "logged":
            mean = _logged(sessions, known, pair, examined, len(pages))
        else:
            mean = np.bincount(pair, examined, len(pages)) / pages
        mean = np.maximum(mean, clip or np.finfo(float).tiny)
        gains = np.bincount(pair, gain, len(pages))
        rate = gains / pages / mean
        weights = 1.0 / mean[pair[clicked]]
    negative = int((rate < 0).sum())
    if correction == "empirical-bayes":
        successes, trials = np.maximum(gains, 0.0), mean * pages * (shown > 0)
        family = PoissonRate()
        posterior = shrink(family, successes, trials, of_query, sessions.n_queries).posterior
        has_clicks = np.bincount(of_query, successes, sessions.n_queries) > 0
        rate, weights = posterior.mean * has_clicks[of_query], 1.0 / posterior.b[pair[clicked]]
    last, below = len(alpha) - 1, int((~known).sum())
    decisions = {
        f"of {len(known):,} impressions are below rank {last}, the last one whose propensity is "
        "known, and are left out": below,
        "estimates of relevance below 0 are raised to 0": negative,
    }
    used = np.flatnonzero(shown)
    listed, ids, offsets, docids = grouped_ids(sessions, of_query[used], of_document[used])
    rates = Qrels(ids, offsets, docids, np.maximum(rate[used], 0.0), source=sessions.source)
    return Relevance(
        rates,
        all_pages[listed],
        rotates,
        correction,
        float(weights.sum() ** 2 / np.square(weights).sum()) if len(weights) else 0.0,
        {text: count for text, count in decisions.items() if count},
        _clipping(clip, correction, None if model else alpha, ranks[clicked]),
    )


def _check_ranks(alpha: Floats, ranks: Ints, name: str) -> None:
    """Refuse ranks with impressions whose propensity is unknown or not above 0."""
    counts = np.bincount(ranks, minlength=len(alpha))
    for rank in np.flatnonzero((counts > 0) & ~(alpha > 0)):
        is_known = not np.isnan(alpha[rank])
        raise DataError(
            f"{name}: the propensity of rank {rank} is "
            f"{f'{alpha[rank]:g}' if is_known else 'not known'}, and {counts[rank]:,} impressions "
            f"are at rank {rank}{': clicks there cannot be weighted' if is_known else ''}."
        )


def _by_model(model: ClickModel, sessions: Sessions) -> Floats:
    """Return the probability that each impression is examined, given the clicks above it."""
    if model.first_click_only or not model.uses_documents:
        raise DataError(
            f"{model.name} does not tell examination from attractiveness below a click; take "
            "another click model, such as PBM or SimplifiedDBN."
        )
    return np.clip(model.examination_probabilities(sessions, True), MIN_EXAMINED, 1.0)


def _logged(sessions: Sessions, known: Bools, pair: Ints, examined: Floats, pairs: int) -> Floats:
    """Return the mean examination of each pair by the logged probabilities of display."""
    if sessions.propensity is None:
        raise DataError(
            f"{sessions.source}: has no logged propensities, which display='logged' needs."
        )
    logged = sessions.propensity[known]
    if not (logged > 0).all():
        zero = ~(logged > 0)
        raise DataError(
            f"{sessions.source}: {int(zero.sum()):,} impressions have a logged propensity of 0, "
            f"the first of them at rank {sessions.rank[known][zero][0]}."
        )
    width = int(sessions.rank.max()) + 1
    at_rank, first, place = np.unique(
        pair * width + sessions.rank[known], return_index=True, return_inverse=True
    )
    # The harmonic mean: pages on which a display was probable are more frequent in the log.
    mean = np.bincount(place) / np.bincount(place, 1.0 / logged)
    means = np.bincount(at_rank // width, mean * examined[first], pairs).astype(np.float64)
    return means


def _clipping(
    clip: float | None, correction: str, alpha: Floats | None, clicked: Ints
) -> list[str]:
    """Return a sentence on the bias of clipping; alpha is None with a click model."""
    if clip is None:
        return []
    if correction != "ips" or alpha is None:
        which = "Propensities" if correction == "ips" else "Mean propensities"
        return [
            f"{which} below {clip:g} are raised to it: documents that were displayed rarely or low "
            "are underestimated."
        ]
    weight = 1.0 / alpha[clicked]
    lost = 1.0 - np.minimum(weight, 1.0 / clip).sum() / weight.sum() if len(weight) else 0.0
    below = np.flatnonzero(alpha < clip)
    if not len(below):
        return [f"Clipping at {clip:g} changes nothing: all propensities are larger."]
    return [
        f"Clipping at {clip:g} takes {100 * lost:.1f}% of the weight of clicks away: relevance at "
        f"{len(below)} ranks from {below[0]} is underestimated, at most by a factor of "
        f"{clip / alpha[below].min():.2f}."
    ]
