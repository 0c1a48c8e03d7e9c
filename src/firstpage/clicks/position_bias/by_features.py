"""Propensities that are estimated with a ranking by features: regression EM and dual learning.

Both need no document that was seen at several ranks, but a ranking by a linear function of the
features that is right: what it does not explain counts as examination.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from firstpage.clicks.models.features import feature_design
from firstpage.clicks.models.pages import totals
from firstpage.clicks.sessions import Sessions
from firstpage.core import Array, Bools, DataError, Floats, Ints
from firstpage.data import Dataset

Estimator = Callable[[Floats, Floats], tuple[Floats, Floats]]  # of page weights and a start
RIDGE = 1.0  # precision of the weights of standardized features
ROUNDS = 6  # of dual learning, which alternates between ranking and propensities
STEPS, WARM_STEPS, ROUND_STEPS = 200, 30, 10  # of L-BFGS; warm ones begin at another fit
LARGEST = 3.0  # logarithm of a weight of a click in dual learning
EPS = 1e-9  # between probabilities and 0 or 1


def estimator(
    sessions: Sessions, features: Dataset | None, method: str, ranks: Ints
) -> tuple[Estimator, int]:
    """Return a function from weights of pages to log propensities, and its number of parameters."""
    design = feature_design(features, sessions)
    has = design[:, 1] > 0
    z = design[:, 2:]
    scale = z[has].std(axis=0)
    z[has] = (z[has] - z[has].mean(axis=0)) / np.where(scale > 0, scale, 1.0)
    z[:, scale == 0] = 0.0
    z = np.column_stack([np.ones(len(z)), z])
    pair = sessions.pairs.pair
    used = has[pair] & (sessions.rank <= ranks[-1])
    if not sessions.clicked[used].any():
        raise DataError(f"{sessions.source}: no clicked document has features.")
    column = np.searchsorted(ranks, np.minimum(sessions.rank, ranks[-1]))
    fit = _regression if method == "regression-em" else _dual
    return fit(sessions, z, used, column, len(ranks)), z.shape[1] + len(ranks)


def _minimize(loss: Any, start: Floats, steps: int) -> Floats:
    from scipy.optimize import minimize

    return np.asarray(
        minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": steps}).x
    )


def _regression(sessions: Sessions, z: Floats, used: Bools, column: Ints, ranks: int) -> Estimator:
    """Return the estimator that maximizes the likelihood of regression EM (Wang et al. 2018).

    P(click) is the examination of the rank times a logistic function of the features.
    """
    from scipy.special import expit

    cell = sessions.pairs.pair[used] * ranks + column[used]
    page, clicked = sessions.page[used], sessions.clicked[used]

    def estimate(weights: Floats, start: Floats) -> tuple[Floats, Floats]:
        row = weights[page]
        clicks = totals(cell, row * clicked, len(z) * ranks).reshape(-1, ranks)
        skips = totals(cell, row, len(z) * ranks).reshape(-1, ranks) - clicks

        def loss(x: Floats) -> tuple[float, Floats]:
            a, e = expit(z @ x[:-ranks])[:, None], expit(x[-ranks:])
            p = np.clip(a * e, EPS, 1 - EPS)
            by_log = clicks - skips * p / (1 - p)
            penalty = RIDGE * np.r_[0.0, x[1:-ranks]]
            gradient = z.T @ (by_log.sum(axis=1) * (1 - a[:, 0])) - penalty
            gradient = np.r_[gradient, by_log.sum(axis=0) * (1 - e)]
            value = (clicks * np.log(p) + skips * np.log1p(-p)).sum() - penalty @ x[:-ranks] / 2
            return -float(value), -gradient

        best = _minimize(loss, start, WARM_STEPS if start.any() else STEPS)
        return np.log(expit(best[-ranks:])), best

    return estimate


def _dual(sessions: Sessions, z: Floats, used: Bools, column: Ints, ranks: int) -> Estimator:
    """Return the estimator of the dual learning algorithm (Ai et al. 2018), on all pages at once.

    The softmax loss of the ranking weights clicks by 1 / propensity, and that of the propensities
    by 1 / relevance, each relative to the first result of the page.
    """
    on_page, of_all = sessions.page[used], column[used]
    hit = totals(sessions.page, used & sessions.clicked, sessions.n_pages) > 0
    rows = np.flatnonzero(used & hit[sessions.page])  # other pages count for the propensities only
    pair, column, clicked = sessions.pairs.pair[rows], column[rows], sessions.clicked[rows]
    pages, page = np.unique(sessions.page[rows], return_inverse=True)
    first = np.searchsorted(page, np.arange(len(pages)))

    def scores(x: Floats) -> tuple[Floats, Floats]:
        s: Array = (z @ x)[pair]
        s = s - np.maximum.reduceat(s, first)[page]
        return s, np.log(np.add.reduceat(np.exp(s), first))

    def estimate(weights: Floats, start: Floats) -> tuple[Floats, Floats]:
        x, logs = start[:-ranks], start[-ranks:].copy()
        count = weights[pages][page] * clicked
        shown = np.maximum(totals(of_all, weights[on_page], ranks), EPS)
        for _ in range(1 if start.any() else ROUNDS):
            inverse = logs[column[first]][page] - logs[column]
            u = count * np.exp(np.clip(inverse, -LARGEST, LARGEST))
            of_page = np.add.reduceat(u, first)

            def loss(x: Floats, u: Any = u, of_page: Any = of_page) -> tuple[float, Floats]:
                s, total = scores(x)
                penalty = RIDGE * np.r_[0.0, x[1:]]
                gradient = u - of_page[page] * np.exp(s - total[page])
                by_pair = totals(pair, gradient, len(z))
                value = float(u @ s - of_page @ total - penalty @ x / 2)
                return -value, -(z.T @ by_pair - penalty)

            x = _minimize(loss, x, ROUND_STEPS)
            s, _ = scores(x)
            v = count * np.exp(np.clip(s[first][page] - s, -LARGEST, LARGEST))
            logs = np.log(np.maximum(totals(column, v, ranks) / shown, EPS))
        return logs, np.r_[x, logs]

    return estimate
