"""What a belief says about places: the order, and how sure it is of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from firstpage.labeling.belief.utilities import Utilities
from firstpage.types import Floats, Ints

SAMPLES = 2000  # a chance is then known to about .01
FEW = 400  # to see whether it is time to stop, which is asked after every answer
SEED = 20120812


@dataclass(frozen=True, eq=False)
class Standing:
    """The top k as believed, best first.

    `places[d, r]`: the chance that document d has place r (from 0); `membership`: that it is among
    the top k; `confidence[r]`: that the document at place r of `order` belongs there;
    `set_confidence`: that these documents are the top k.
    """

    order: Ints
    places: Floats
    membership: Floats
    confidence: Floats
    set_confidence: float


def standing(
    belief: Utilities,
    k: int,
    among: Ints | None = None,
    samples: int = SAMPLES,
    order: Ints | None = None,
) -> Standing:
    """From samples of the utilities of documents `among` (all); the others have no chance.

    The order is that of the means, unless another one is given to be judged.
    """
    n = len(belief.mean)
    among = np.arange(n) if among is None else among
    k = min(k, len(among)) if order is None else len(order)
    if order is None:
        order = among[np.argsort(-belief.mean[among], kind="stable")][:k]
    tops = sampled_tops(belief, k, among, samples)
    places = np.zeros((n, k))
    for place in range(k):
        places[:, place] = np.bincount(tops[:, place], minlength=n)
    places /= len(tops)
    same = (np.sort(tops, axis=1) == np.sort(order)).all(axis=1)
    return Standing(
        order, places, places.sum(axis=1), places[order, np.arange(k)], float(same.mean())
    )


def surer_than(confidence: float, belief: Utilities, k: int, among: Ints) -> bool:
    """Whether the k documents of greatest mean are the best with at least this chance.

    They are not more surely so than any one of them is above any other document; where that
    already is too little, as it mostly is, nothing is sampled.
    """
    order = among[np.argsort(-belief.mean[among], kind="stable")]
    top, rest = order[:k], order[k:]
    if not (len(top) and len(rest)):
        return True
    apart = belief.mean[top][:, None] - belief.mean[rest]
    variance = belief.variance[top][:, None] + belief.variance[rest]
    variance = variance - 2.0 * belief.covariance[np.ix_(top, rest)]
    if ndtr((apart / np.sqrt(np.maximum(variance, 1e-12))).min()) < confidence:
        return False
    return standing(belief, k, among, FEW).set_confidence >= confidence


def sampled_tops(belief: Utilities, k: int, among: Ints, samples: int) -> Ints:
    """The top k, best first, in samples of the utilities; always the same samples.

    Documents that four standard deviations would not bring near the k-th are left out.
    """
    mean, deviation = belief.mean[among], np.sqrt(belief.variance[among])
    bar = np.sort(mean - 4.0 * deviation)[::-1][k - 1 : k]
    near = among[mean + 4.0 * deviation >= bar] if k else among[:0]
    cov = belief.covariance[np.ix_(near, near)]
    root = np.linalg.cholesky(cov + 1e-9 * np.diag(np.diagonal(cov)))
    noise = np.random.default_rng(SEED).standard_normal((samples, len(near)))
    drawn = belief.mean[near] + noise @ root.T
    best = np.argsort(-drawn, axis=1, kind="stable")[:, :k]
    found: Ints = near[best]
    return found
