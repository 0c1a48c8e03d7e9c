"""The paper's search for the most violated ranking under slack scaling: equations (5) to (9).

The product Delta * (1 + score - score of the true ranking) is at most M^2 / (4 lam) for rankings
with 1 + score - true score + lam * Delta <= M.  The paper searches the weight `lam` at which this
bound of the current slack is least by golden section, which need not be the weight of the most
violated ranking.  TopSlack searches by chords, and closes the gap by branch and bound.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from firstpage.core import Floats, Ints

GOLDEN = (np.sqrt(5.0) - 1.0) / 2.0
ROUNDS = 3  # of the golden section, each from a greater slack
MIN_DELTA = 1e-4  # the smallest Delta that weights are searched for
WIDTH = 1e-3  # of the interval of log weights at which a search ends
ROUNDING_EPS = 1e-12


def greatest_product(scores: Floats, gains: Floats, discounts: Floats) -> float:
    """Return the greatest Delta * (1 + score - true score) that the search comes by; at least 0.

    Documents are those of one query, with a discount for each rank.  Delta is 1 minus the
    discounted gain of a ranking relative to that of the true ranking, which has descending gains
    and, where they are equal, descending scores.
    """
    ideal = float(discounts @ np.sort(gains)[::-1])
    if ideal == 0.0:
        return 0.0
    relative_gains = gains / ideal
    true_score = float(discounts @ scores[np.lexsort((-scores, -gains))])
    best = 0.0

    def visit(lam: float) -> tuple[float, float]:
        """Return Delta and score of the best ranking at a weight, and note its product."""
        nonlocal best
        delta, score = _best_ranking(lam, scores, relative_gains, discounts)
        best = max(best, delta * (1.0 + score - true_score))
        return delta, score

    def bound(log_lam: float) -> float:
        """Return max over rankings of score + lam * Delta, minus 2 sqrt(slack * lam)."""
        lam = np.exp(log_lam)
        delta, score = visit(lam)
        return float(score + lam * delta - 2.0 * np.sqrt(slack * lam))

    visit(0.0)
    visit(1.0)
    for _ in range(ROUNDS):
        slack = best  # raised until it is stable
        if slack <= ROUNDING_EPS:
            break
        _golden_section(bound, np.log(slack), np.log(slack / MIN_DELTA**2))
        if best <= slack * (1.0 + 1e-6):
            break
    return best


def _golden_section(value: Callable[[float], float], low: float, high: float) -> None:
    """Search the minimum of a function on an interval."""
    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    value_left, value_right = value(left), value(right)
    while high - low > WIDTH:
        if value_left < value_right:
            high, right, value_right = right, left, value_left
            left = high - GOLDEN * (high - low)
            value_left = value(left)
        else:
            low, left, value_left = left, right, value_right
            right = low + GOLDEN * (high - low)
            value_right = value(right)


def _best_ranking(
    lam: float, scores: Floats, gains: Floats, discounts: Floats
) -> tuple[float, float]:
    """Return Delta and score of the ranking with a loss of greatest score + lam * Delta.

    Delta is 0 if no ranking has a loss.
    """
    key = scores - lam * gains
    order = np.argsort(-key, kind="stable")
    if 1.0 - discounts @ gains[order] <= ROUNDING_EPS:
        order = _cheapest_swap(order, key, gains, discounts)
    delta = 1.0 - float(discounts @ gains[order])
    return (delta, float(discounts @ scores[order])) if delta > ROUNDING_EPS else (0.0, 0.0)


def _cheapest_swap(order: Ints, key: Floats, gains: Floats, discounts: Floats) -> Ints:
    """Return the order after the exchange with a loss that costs least."""
    drops = discounts[:, None] - discounts
    costs = drops * (key[order][:, None] - key[order])
    no_loss = (drops <= 0.0) | (gains[order][:, None] <= gains[order])
    costs[no_loss] = np.inf
    first, second = np.unravel_index(np.argmin(costs), costs.shape)
    swapped = order.copy()
    if np.isfinite(costs[first, second]):
        swapped[[first, second]] = order[[second, first]]
    return swapped
