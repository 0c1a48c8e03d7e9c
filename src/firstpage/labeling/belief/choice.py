"""Choice of the next question: the one expected to reduce the uncertainty of the top k most.

The uncertainty is summed over cuts: p_ic is the probability that document i is among the top c.
The cost is the entropy of all p_ik, which concerns the set, and, for the order, the sum over c < k
of w / c times p_ik p_ic (1 - p_ic): only documents in the set have a rank there, people read from
the top, and w grows as the set becomes known (`order_weight`).

An answer about documents a and b moves the mean of every u_i by cov(u_i, u_a - u_b) times a number
whose mean square is known (`information`).  To second order, this lowers the entropy of p by half
of phi(z)^2 / (p (1 - p)), and p (1 - p) by phi(z)^2, times the fraction of u_i's variance that the
answer removes; z is the distance to the cut in standard deviations.  Summed over documents and cuts
that is a quadratic form, (e_a - e_b)' V L V (e_a - e_b), so all pairs cost a few matrix products.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy  # its modules are loaded when they are first used

from firstpage.core import Floats, Ints
from firstpage.labeling.belief.utilities import Utilities, information

Pair = tuple[int, int]
ORDER_WEIGHT = 1.0  # a greater weight finds the order sooner and the set later
REPEAT_DISCOUNT = 0.1  # factor of a question's gain per earlier time that it was asked
MAX_CANDIDATES = 128  # documents of which pairs are formed
CUT_TOLERANCE = 1e-6  # of a cell of the grid
LAST_STEP = 1e3  # times the tolerance: Newton's steps square the error
MAX_UNGROUPED = 500  # documents
EXPECTED_TOLERANCE = 1e-9  # of the documents expected above a cut
GRID = 32  # points
GROUP_WIDTH = 0.01  # of means and of log deviations
MIN_EXPECTED = 1e-30
EPS = 1e-12


@dataclass(frozen=True, eq=False)
class Cuts:
    """Statistics of the cuts: arrays of shape (documents, cuts).

    `importance` is the weight of knowing on which side of the cut a document is, `boundary` the
    weight of each document in the utility of the cut; columns sum to 1.
    """

    importance: Floats
    boundary: Floats


def next_pair(
    belief: Utilities,
    k: int,
    documents: Ints,
    tie_break: Ints,
    counts: Mapping[Pair, int] | None = None,
    last: Pair | None = None,
) -> Pair | None:
    """Return the most informative pair of `documents`, or None if only the `last` pair remains.

    `tie_break` ranks all documents and breaks ties.  `counts` says how often each pair (smaller
    document first) was asked: repeated questions are worth less, and the `last` pair is never
    asked twice in a row.
    """
    k = min(k, len(documents) - 1)
    if k < 1:
        return None
    documents = documents[np.argsort(tie_break[documents])]
    candidates, gain = pair_gains(belief.marginal(documents), k)
    chosen = documents[candidates]
    gain = gain * _repeat_discounts(chosen, counts or {}, last)
    at = int(np.argmax(np.round(gain / gain.max(), 9))) if gain.max() > 0 else -1
    if at < 0:
        return _any_pair(chosen, last)
    row, column = divmod(at, len(chosen))
    return int(chosen[row]), int(chosen[column])


def pair_gains(belief: Utilities, k: int) -> tuple[Ints, Floats]:
    """Return candidate documents, and the expected gain of a question per pair of them."""
    cuts, variance = cut_statistics(belief, k), belief.variance
    candidates = _candidates(belief, cuts)
    everything = np.arange(len(variance))
    correlated = everything if belief.joint is None else np.union1d(belief.joint, candidates)
    rows = belief.covariance_of(candidates, correlated)
    square = _quadratic(rows, Cuts(cuts.importance[correlated], cuts.boundary[correlated]))
    diagonal = np.diagonal(square)
    reduction = diagonal[:, None] + diagonal - 2.0 * square
    covariance = belief.covariance_of(candidates, candidates)
    difference = variance[candidates][:, None] + variance[candidates] - 2.0 * covariance
    mean = belief.mean[candidates]
    gain = reduction * information(mean[:, None] - mean, np.maximum(difference, EPS), belief.margin)
    return candidates, np.triu(np.maximum(gain, 0.0), 1)


def cut_statistics(belief: Utilities, k: int) -> Cuts:
    """Return where the top c end, for c = 1 .. k, and how uncertain each document's side is.

    The cut moves with the documents near it: its utility is their mean, weighted by densities.
    """
    deviation = np.sqrt(belief.variance)[:, None]
    points = cut_points(belief, k)
    distance = belief.mean[:, None] - points
    density = np.exp(-0.5 * (distance / deviation) ** 2) / deviation
    boundary = density / np.maximum(density.sum(axis=0), EPS)
    covariance = belief.covariance_times(boundary)
    variance = belief.variance[:, None] - 2.0 * covariance + (boundary * covariance).sum(axis=0)
    z = distance / np.sqrt(np.maximum(variance, EPS))
    importance = np.exp(-z * z) / np.maximum(variance, EPS)
    error = np.maximum(scipy.special.ndtr(-np.abs(z[:, -1])), EPS)  # of the side of the last cut
    importance[:, -1] /= 2.0 * error * (1.0 - error)
    member = scipy.special.ndtr(z[:, -1:])
    importance[:, :-1] *= member * order_weight(member) / np.arange(1, k)
    return Cuts(importance, boundary)


def order_weight(member: Floats) -> float:
    """Return the weight of the order: from 0 (set unknown) to ORDER_WEIGHT (set known).

    It is the square of 1 - sum of p (1 - p), relative to its value where all documents have
    the same membership probability.
    """
    mean = float(member.mean())
    unknown = float((member * (1.0 - member)).mean()) / max(mean * (1.0 - mean), EPS)
    return ORDER_WEIGHT * max(1.0 - unknown, 0.0) ** 2


def cut_points(belief: Utilities, k: int) -> Floats:
    """Return the utilities above which c documents are expected, for c = 1 .. k.

    By Newton's method on the logarithm of the number expected above, with bisection where it leaves
    the cell of a grid.  Many documents of almost the same mean and deviation are counted together.
    """
    mean, deviation, counts = belief.mean, np.sqrt(belief.variance), np.ones(len(belief.mean))
    grid = np.linspace((mean - 9.0 * deviation).min(), (mean + 9.0 * deviation).max(), GRID)
    target = np.arange(1, k + 1)
    if len(mean) > MAX_UNGROUPED:
        mean, deviation, counts = _grouped(mean, deviation)
    above = scipy.special.ndtr((mean - grid[:, None]) / deviation) @ counts
    cuts = np.interp(-np.log(target), -np.log(np.maximum(above, MIN_EXPECTED)), grid)
    cell = np.clip(np.searchsorted(-above, -target), 1, GRID - 1)
    low, high, tolerance = grid[cell - 1], grid[cell], CUT_TOLERANCE * (grid[1] - grid[0])
    while (high - low).max() > tolerance:
        z = (mean - cuts[:, None]) / deviation
        above = np.maximum(scipy.special.ndtr(z) @ counts, MIN_EXPECTED)
        slope = np.exp(-0.5 * z * z) @ (counts / deviation) / np.sqrt(2.0 * np.pi)
        low, high = np.where(above > target, cuts, low), np.where(above > target, high, cuts)
        step = above * np.log(above / target) / np.maximum(slope, MIN_EXPECTED)
        exact = np.abs(above - target) <= EXPECTED_TOLERANCE
        if (exact | (np.abs(step) <= LAST_STEP * tolerance)).all():
            return np.asarray(np.clip(cuts + step, low, high))
        inside = (low < cuts + step) & (cuts + step < high)
        cuts = np.where(inside, cuts + step, 0.5 * (low + high))
    return np.asarray(cuts)


def _grouped(mean: Floats, deviation: Floats) -> tuple[Floats, Floats, Floats]:
    """Return means, deviations and sizes of groups of documents that hardly differ in either."""
    cells = np.round(np.stack((mean, np.log(deviation))) / GROUP_WIDTH).astype(np.int64)
    cells -= cells.min(axis=1, keepdims=True)
    _, group, sizes = np.unique(
        cells[0] * (cells[1].max() + 1) + cells[1], return_inverse=True, return_counts=True
    )
    counts = sizes.astype(np.float64)
    centers = [np.bincount(group, values) / counts for values in (mean, deviation)]
    return centers[0], centers[1], counts


def _quadratic(rows: Floats, cuts: Cuts) -> Floats:
    """Return rows L rows' for L = sum over cuts and i of importance (e_i - b)(e_i - b)'.

    b is the boundary of the cut.  L is a diagonal plus three products of thin matrices and is
    never formed.
    """
    weighted, boundary = rows @ cuts.importance, rows @ cuts.boundary
    cross = weighted @ boundary.T
    diagonal = (rows * cuts.importance.sum(axis=1)) @ rows.T
    square: Floats = (
        diagonal + (boundary * cuts.importance.sum(axis=0)) @ boundary.T - cross - cross.T
    )
    return square


def _candidates(belief: Utilities, cuts: Cuts) -> Ints:
    """Return all documents, or those about which a single answer would be most informative.

    The criterion is the diagonal of `_quadratic` over all rows.
    """
    if len(belief.mean) <= MAX_CANDIDATES:
        return np.arange(len(belief.mean))
    weighted = belief.covariance_times(cuts.importance)
    boundary = belief.covariance_times(cuts.boundary)
    reduction = belief.covariance_times(cuts.importance.sum(axis=1), power=2)
    reduction += (boundary * (boundary * cuts.importance.sum(axis=0) - 2.0 * weighted)).sum(axis=1)
    best: Ints = np.sort(np.argsort(-reduction, kind="stable")[:MAX_CANDIDATES])
    return best


def _repeat_discounts(documents: Ints, counts: Mapping[Pair, int], last: Pair | None) -> Floats:
    """Return the factor of the gain per pair: less for repeated pairs, 0 for the last one."""
    index = {int(d): i for i, d in enumerate(documents)}
    factor = np.ones((len(documents), len(documents)))
    for (first, second), times in counts.items():
        if first in index and second in index:
            i, j = index[first], index[second]
            factor[i, j] = factor[j, i] = REPEAT_DISCOUNT**times
    if last is not None and last[0] in index and last[1] in index:
        i, j = index[last[0]], index[last[1]]
        factor[i, j] = factor[j, i] = 0.0
    return factor


def _any_pair(documents: Ints, last: Pair | None) -> Pair | None:
    """Return some pair other than the last one, where no question is informative."""
    head = [int(d) for d in documents[:3]]
    for i, j in ((0, 1), (0, 2)):
        if j < len(head) and {head[i], head[j]} != set(last or ()):
            return head[i], head[j]
    return None
