"""Which question next: the one that is expected to tell most about the first k places.

What is not known is summed up by cuts: p_ic is the chance that document i is among the top c.  The
cost is the entropy of all p_ik, which makes the set; and, for the order, the sum over c < k of
w / c times p_ik p_ic (1 - p_ic): only who is in the set has a place there, people read from the
top, and w grows as the set gets known (`order_weight`).

An answer about documents a and b moves the mean of every u_i by cov(u_i, u_a - u_b) times a number
whose mean square is known (`information`).  To second order, this lowers the entropy of p by half
of phi(z)^2 / (p (1 - p)), and p (1 - p) by phi(z)^2, times the share of u_i's variance that goes; z
is the distance to the cut in standard deviations.  Summed over documents and cuts that is a
quadratic form, (e_a - e_b)' V L V (e_a - e_b): all pairs at the price of a few matrix products.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from firstpage.labeling.belief.utilities import Utilities, information
from firstpage.types import Floats, Ints

Pair = tuple[int, int]
ORDER = 1.0  # more of it finds the order sooner and the set later
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
    found = cuts(belief, k)
    chosen = _candidates(cov, found)
    rows = cov[chosen]
    square = _quadratic(rows, found)
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
    urgency = np.exp(-z * z) / np.maximum(variance, BLUNT)
    wrong = np.maximum(ndtr(-np.abs(z[:, -1])), BLUNT)  # side of the last cut than believed
    urgency[:, -1] /= 2.0 * wrong * (1.0 - wrong)
    member = ndtr(z[:, -1:])
    urgency[:, :-1] *= member * order_weight(member) / np.arange(1, k)
    return Cuts(urgency, edge)


def order_weight(member: Floats) -> float:
    """ORDER times the square of how far the set is known, 0 at the beginning and 1 at the end.

    That is 1 - sum of p (1 - p), as a share of what it is where all have the same chance.
    """
    share = float(member.mean())
    unknown = float((member * (1.0 - member)).mean()) / max(share * (1.0 - share), BLUNT)
    return ORDER * max(1.0 - unknown, 0.0) ** 2


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


def _quadratic(rows: Floats, found: Cuts) -> Floats:
    """rows L rows', L being the sum over cuts and documents i of urgency (e_i - edge)(e_i - edge)'.

    L is a diagonal and three products of thin matrices; it is never formed.
    """
    urgent, edge = rows @ found.urgency, rows @ found.edge
    crossed = urgent @ edge.T
    own = (rows * found.urgency.sum(axis=1)) @ rows.T
    square: Floats = own + (edge * found.urgency.sum(axis=0)) @ edge.T - crossed - crossed.T
    return square


def _candidates(cov: Floats, found: Cuts) -> Ints:
    """All documents, or those about whom alone an answer would tell most.

    That is the diagonal of `_quadratic`, over all rows.
    """
    if len(cov) <= CANDIDATES:
        return np.arange(len(cov))
    urgent, edge = cov @ found.urgency, cov @ found.edge
    told = (cov * cov) @ found.urgency.sum(axis=1)
    told += (edge * (edge * found.urgency.sum(axis=0) - 2.0 * urgent)).sum(axis=1)
    best: Ints = np.sort(np.argsort(-told, kind="stable")[:CANDIDATES])
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
