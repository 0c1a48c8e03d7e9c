"""Which question next: the one that is expected to tell most about the first k places.

What is not known of an order is summed up by its cuts: of each document, whether it belongs to
the top c, for c = 1 .. k.  The cost is the sum of these entropies, the cut at k weighing most.
An answer about documents a and b moves the mean of every u_i by cov(u_i, u_a - u_b) times a
number whose mean square is known (`information`); to second order, this lowers the entropy of
p = P(u_i above the cut) by phi(z)^2 / (p (1 - p)) times the share of its variance that goes, z
being the distance to the cut in standard deviations.  Summed over documents and cuts, that is a
quadratic form, (e_a - e_b)' V L V (e_a - e_b): all pairs at the price of two matrix products.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from firstpage.labeling.moments import information
from firstpage.labeling.utilities import Utilities
from firstpage.types import Floats, Ints

Pair = tuple[int, int]
ORDER = 0.3  # weight of cut c < k: 0.3 / c, as people read from the top
STALE = 0.5  # the gain of a question each time that it was asked before: one person, one opinion
CANDIDATES = 128  # documents of which pairs are formed, where there are more
HALVINGS = 26
BLUNT = 1e-12


@dataclass(frozen=True, eq=False)
class Cuts:
    """For each cut (columns) and document (rows): how much its side matters, who is at the edge."""

    urgency: Floats
    edge: Floats


def next_pair(
    belief: Utilities,
    k: int,
    among: Ints,
    turn: Ints,
    asked: Mapping[Pair, int] | None = None,
    last: Pair | None = None,
) -> Pair | None:
    """The best question about documents `among`, or None if only the `last` pair is left.

    `turn` ranks all documents; it breaks ties.  `asked` counts pairs (smaller number first);
    questions asked before are worth less, and the `last` one is never asked again at once.
    """
    k = min(k, len(among) - 1)
    if k < 1:
        return None
    among = among[np.argsort(turn[among])]
    cov = belief.covariance[np.ix_(among, among)]
    part = Utilities(belief.mean[among], cov, belief.margin)
    chosen, gain = pair_gains(part, k)
    documents = among[chosen]
    gain = gain * _freshness(documents, asked or {}, last)
    at = int(np.argmax(np.round(gain / gain.max(), 9))) if gain.max() > 0 else -1
    if at < 0:
        return _any_pair(documents, last)
    one, other = divmod(at, len(documents))
    return int(documents[one]), int(documents[other])


def pair_gains(belief: Utilities, k: int) -> tuple[Ints, Floats]:
    """Documents, and how much each question about two of them is expected to tell."""
    cov, variance = belief.covariance, belief.variance
    form = _cost_form(cuts(belief, k))
    chosen = _candidates(cov, form)
    rows = cov[chosen]
    square = rows @ form @ rows.T
    own = np.diagonal(square)
    told = own[:, None] + own - 2.0 * square
    spread = variance[chosen][:, None] + variance[chosen] - 2.0 * rows[:, chosen]
    mean = belief.mean[chosen]
    gain = told * information(mean[:, None] - mean, np.maximum(spread, BLUNT), belief.margin)
    return chosen, np.triu(np.maximum(gain, 0.0), 1)


def cuts(belief: Utilities, k: int) -> Cuts:
    """Where the top c end, for c = 1 .. k, and how uncertain each document's side is.

    The edge moves with the documents near it: its utility is their mean, weighted by densities.
    """
    deviation = np.sqrt(belief.variance)[:, None]
    edges = cut_points(belief, k)
    apart = belief.mean[:, None] - edges
    density = np.exp(-0.5 * (apart / deviation) ** 2) / deviation
    edge = density / np.maximum(density.sum(axis=0), BLUNT)
    with_edge = belief.covariance @ edge
    variance = belief.variance[:, None] - 2.0 * with_edge + (edge * with_edge).sum(axis=0)
    z = apart / np.sqrt(np.maximum(variance, BLUNT))
    chance = np.maximum(ndtr(-np.abs(z)), BLUNT)  # of being on the other side than believed
    sharp = np.exp(-z * z) / (chance * (1.0 - chance) * np.maximum(variance, BLUNT))
    return Cuts(sharp * cut_weights(k), edge)


def cut_points(belief: Utilities, k: int) -> Floats:
    """Utilities above which c documents are expected, for c = 1 .. k; by bisection."""
    mean, deviation = belief.mean[:, None], np.sqrt(belief.variance)[:, None]
    low = np.full(k, float((mean - 9.0 * deviation).min()))
    high = np.full(k, float((mean + 9.0 * deviation).max()))
    wanted = np.arange(1, k + 1)
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = ndtr((mean - middle) / deviation).sum(axis=0) > wanted
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    found: Floats = 0.5 * (low + high)
    return found


def cut_weights(k: int) -> Floats:
    """1 for the cut at k, which makes the set; ORDER / c for the others, which make the order."""
    weights = ORDER / np.arange(1.0, k + 1)
    weights[-1] = 1.0
    return weights


def _cost_form(found: Cuts) -> Floats:
    """L: the sum over cuts and documents i of urgency (e_i - edge)(e_i - edge)'."""
    crossed = found.urgency @ found.edge.T
    form: Floats = (found.edge * found.urgency.sum(axis=0)) @ found.edge.T - crossed - crossed.T
    form[np.diag_indices_from(form)] += found.urgency.sum(axis=1)
    return form


def _candidates(cov: Floats, form: Floats) -> Ints:
    """All documents, or those about whom alone an answer would tell most."""
    if len(cov) <= CANDIDATES:
        return np.arange(len(cov))
    own = np.einsum("ij,ij->i", cov @ form, cov)
    best: Ints = np.sort(np.argsort(-own, kind="stable")[:CANDIDATES])
    return best


def _freshness(documents: Ints, asked: Mapping[Pair, int], last: Pair | None) -> Floats:
    """What a question is worth of what it was at first; 0 for the one just asked."""
    place = {int(d): at for at, d in enumerate(documents)}
    worth = np.ones((len(documents), len(documents)))
    for (one, other), times in asked.items():
        if one in place and other in place:
            worth[place[one], place[other]] = worth[place[other], place[one]] = STALE**times
    if last is not None and last[0] in place and last[1] in place:
        worth[place[last[0]], place[last[1]]] = worth[place[last[1]], place[last[0]]] = 0.0
    return worth


def _any_pair(documents: Ints, last: Pair | None) -> Pair | None:
    """Where nothing is left to learn: some two that were not asked just now."""
    first = [int(d) for d in documents[:3]]
    for one, other in ((0, 1), (0, 2)):
        if other < len(first) and {first[one], first[other]} != set(last or ()):
            return first[one], first[other]
    return None
