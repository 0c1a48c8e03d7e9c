"""What the clicks of a log say about each pair of query and document: successes in trials.

ctr    successes are clicks, trials impressions.  Assumes that every rank is examined.
coec   successes are clicks, trials the expected clicks: the sum of the click-through rates of the
       ranks (and layouts) at which the document was displayed (Zhang and Jones 2007, Comparing
       Click Logs and Editorial Labels for Training Query Rewriting, WWW workshop on query log
       analysis).  This ratio is 1 for a document that is clicked as often as any at its ranks, and
       equal for good documents high up and bad ones further down.  The rate is therefore the ratio
       times the attractiveness of the ranks, their click-through rate to the power RANKING_SHARE:
       without it, documents that nobody clicks would be judged in the reverse of a good ranking.
sdbn   successes are clicks, trials the impressions down to the last click of their page, or all
       impressions of a page without clicks.  Assumes that people read from the top down and stop
       after a click that satisfies them (simplified DBN: Chapelle and Zhang 2009, A Dynamic
       Bayesian Network Click Model for Web Search Ranking, WWW).  The rate is attractiveness; that
       of `sdbn-satisfaction` is last clicks by clicks, and that of `sdbn-relevance` the product of
       both, last clicks by the same impressions.

With propensities, successes are clicks and trials the sum of the propensities of their ranks: the
rate is that of clicks if the document were always at the reference rank.  With a click model, the
rate is its attractiveness; trials are impressions, weighted by how much a click or a skip tells
about it at the probability of examination that the model assigns to the impression.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from firstpage.clicks.judgments.shrinkage import BinomialRate, PoissonRate, RateFamily
from firstpage.clicks.models import ClickModel, click_model
from firstpage.clicks.models.pages import down_to_last_click, totals
from firstpage.clicks.position_bias.propensities import Propensities
from firstpage.clicks.sessions import Sessions
from firstpage.core import Array, Bools, DataError, Floats, Ints

Method = str | ClickModel | Propensities
RANKING_SHARE = 0.2  # of the fall of click-through with rank (log) that is due to the documents:
# 0.18 of rank 10 in the Yandex sample by all-pairs propensities; 0.23 and 0.25 of ranks 10 and 5 in
# the published curves of Baidu.  The rest is due to examination.
MIN_DISPERSION = 0.1  # of clicks against Poisson counts
EPS = 1e-6  # between probabilities and 0 or 1


class ClickCounts(NamedTuple):
    """Successes and trials per pair, the family of their rates, and factors of their priors."""

    successes: Floats
    trials: Floats
    family: RateFamily
    factor: Floats | float = 1.0  # of the prior mean of a pair, where this depends on its ranks


def _ctr(sessions: Sessions, pair: Ints, pairs: int) -> ClickCounts:
    """Return clicks and impressions."""
    return _sums_of(pair, sessions.clicked, np.ones(len(pair)), pairs)


def _coec(sessions: Sessions, pair: Ints, pairs: int) -> ClickCounts:
    """Return clicks and expected clicks."""
    place = sessions.rank.astype(np.int64)
    if sessions.layout is not None:
        layout = sessions.layout + 1  # -1 is an unknown one
        place = place * (int(layout.max()) + 1) + np.repeat(layout, np.diff(sessions.offsets))
    place = np.unique(place, return_inverse=True)[1]
    clicks, shown = np.bincount(place, sessions.clicked), np.bincount(place)
    mean = sessions.clicked.mean()
    counts = _ratio(sessions.clicked, (clicks / shown)[place], pair, pairs)
    relative = (clicks + 1) / (shown * mean + 1)  # ranks with few impressions are as all
    of_pair = np.bincount(pair, relative[place] ** RANKING_SHARE, pairs)
    factor = of_pair / np.bincount(pair, minlength=pairs)
    return counts._replace(trials=counts.trials / factor, factor=factor)


def _sdbn(part: str, sessions: Sessions, pair: Ints, pairs: int) -> ClickCounts:
    """Return clicks or last clicks, and examined impressions or clicks."""
    examined, last = down_to_last_click(sessions.offsets, sessions.clicked)
    hits = sessions.clicked if part == "attractiveness" else last
    trials = sessions.clicked if part == "satisfaction" else examined
    return _sums_of(pair, hits, trials, pairs)


COUNTED: dict[str, Callable[[Sessions, Ints, int], ClickCounts]] = {
    "coec": _coec,
    "ctr": _ctr,
    "sdbn": partial(_sdbn, "attractiveness"),
    "sdbn-satisfaction": partial(_sdbn, "satisfaction"),
    "sdbn-relevance": partial(_sdbn, "relevance"),
}


def count_clicks(sessions: Sessions, method: Method, pair: Ints, pairs: int) -> ClickCounts:
    """Return what the clicks say about each pair."""
    if not sessions.clicked.any():
        raise DataError("the log has no click on a displayed document; there is nothing to judge.")
    if isinstance(method, str) and method in COUNTED:
        return COUNTED[method](sessions, pair, pairs)
    if isinstance(method, Propensities):
        return _ratio(sessions.clicked, method.at(sessions.rank), pair, pairs)
    model = click_model(method)
    if not model.uses_documents:
        raise DataError(f"{type(model).__name__} has no attractiveness of documents to judge by.")
    is_fitted = not isinstance(method, str) and hasattr(model, "attractiveness_")
    return _by_model(sessions, model if is_fitted else model.fit(sessions), pair, pairs)


def _by_model(sessions: Sessions, model: ClickModel, pair: Ints, pairs: int) -> ClickCounts:
    """Return what the clicks say about attractiveness by a fitted click model.

    The probability of a click given the clicks above it is examination times attractiveness,
    e a.  A beta likelihood that agrees with that of the model at its attractiveness, in the
    first derivative and in the expected information, has

        trials     sum of e (1 - a) / (1 - e a),
        successes  clicks (1 - a) - a (1 - a) sum over skips of e / (1 - e a) + a trials.

    Where documents are examined surely (e = 1) these are the impressions and the clicks.
    """
    attractiveness = np.clip(model.values_of(sessions), EPS, 1 - EPS)
    clicked = sessions.clicked
    examined = np.clip(model.examination_probabilities(sessions, after_clicks=True), EPS, 1.0)
    weight = examined * (1 - attractiveness) / (1 - np.minimum(examined * attractiveness, 1 - EPS))
    score = np.where(clicked, 1 - attractiveness, -attractiveness * weight)
    counts = _sums_of(pair, score + attractiveness * weight, weight, pairs)
    return counts._replace(successes=np.clip(counts.successes, 0.0, counts.trials))


def _ratio(clicked: Bools, expected: Floats, pair: Ints, pairs: int) -> ClickCounts:
    """Return clicks and expected clicks per pair, as counts whose variance is their mean.

    A click is a Bernoulli variable: clicks vary by the factor 1 - m sum(e^2) / sum(e) less than
    Poisson counts, m being the mean rate.  Both are divided by it, so that their ratio remains.
    """
    clicks, trials, _, _ = _sums_of(pair, clicked, expected, pairs)
    squares = np.bincount(pair, expected**2, pairs) * clicked.sum() / max(expected.sum(), EPS)
    dispersion = 1 - np.divide(squares, trials, out=np.zeros(pairs), where=trials > 0)
    dispersion = np.clip(dispersion, MIN_DISPERSION, 1.0)
    return ClickCounts(clicks / dispersion, trials / dispersion, PoissonRate())


def _sums_of(pair: Ints, successes: Array, trials: Array, pairs: int) -> ClickCounts:
    """Return the sums of successes and trials per pair."""
    return ClickCounts(totals(pair, successes, pairs), totals(pair, trials, pairs), BinomialRate())
