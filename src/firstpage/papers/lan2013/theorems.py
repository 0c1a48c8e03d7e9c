"""Section 5 of Lan et al. (2013) as checks: each printed inequality, and corrected ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations

import numpy as np

from firstpage.core import Array, Bools, Floats
from firstpage.data import Truth
from firstpage.learning.losses import (
    Loss,
    PairwiseExponential,
    PairwiseHinge,
    PairwiseLogistic,
    PlackettLuce,
)
from firstpage.papers.theory.checks import (
    CheckFunction,
    Evidence,
    described_checks,
)

MAX_DOCUMENTS = 8
LOSSES: dict[str, type[PlackettLuce | PairwiseHinge | PairwiseExponential | PairwiseLogistic]] = {
    "hinge": PairwiseHinge, "exponential": PairwiseExponential, "logistic": PairwiseLogistic,
    "listmle": PlackettLuce,
}  # fmt: skip


def discount(ranks: Array) -> Floats:
    """Return 1 / log2(1 + rank)."""
    discounts: Floats = 1 / np.log2(1.0 + ranks)
    return discounts


@dataclass(frozen=True, eq=False)
class LossValues(Mapping[str, Floats]):
    """Losses by name, of the top k or of the full order; each is computed when it is looked up."""

    z: Floats
    k: int | None

    def __getitem__(self, name: str) -> Floats:
        return values(LOSSES[name](k=self.k), self.z)

    def __iter__(self) -> Iterator[str]:
        return iter(LOSSES)

    def __len__(self) -> int:
        return len(LOSSES)


@dataclass(frozen=True, eq=False)
class BoundTerms:
    """All terms of the inequalities, for many score vectors of n documents, one per row of z.

    Attributes
    ----------
    z : ndarray
        Scores in the true order.
    k : int
        Depth of the top.
    alpha : ndarray
        Gain times discount of the first k documents.
    ndcg, ndcg_printed, ndcg_all_ranks : ndarray
        The usual NDCG@k; that of equation (9), whose sum stops at the true rank k but not at the
        predicted rank k; that of the proof, whose sum goes to n.  Ties are broken against the
        truth.
    wkt, wkt_weak : ndarray
        Weighted Kendall's tau, with < as printed and with <=.
    any_inversion, any_inversion_weak : ndarray
        The same, but counting each document at most once.
    top, full : LossValues
        Losses by name, of the top k and of the full order.
    """

    z: Floats
    k: int
    alpha: Floats
    ndcg: Floats
    ndcg_printed: Floats
    ndcg_all_ranks: Floats
    wkt: Floats
    wkt_weak: Floats
    any_inversion: Floats
    any_inversion_weak: Floats
    top: LossValues
    full: LossValues

    @property
    def n(self) -> int:
        return int(self.z.shape[1])

    @property
    def N(self) -> float:
        """N_k, the largest possible sum."""
        return float(self.alpha.sum())

    @property
    def c(self) -> float:
        """The largest alpha."""
        return float(self.alpha.max())

    @property
    def distinct(self) -> Bools:
        """Which rows have no equal scores."""
        mask: Bools = np.diff(np.sort(self.z, axis=1), axis=1).min(axis=1) > 0
        return mask


def bound_terms(z: Floats, k: int) -> BoundTerms:
    """Return all terms for score vectors z, one per row."""
    n = z.shape[1]
    gains = 2.0 ** (n - 1 - np.arange(n)) - 1
    alpha = gains[:k] * discount(np.arange(1, k + 1))
    total = alpha.sum()
    later = np.triu(np.ones((n, n), bool), 1)  # l after j in the true order
    inverted = (z[:, :, None] < z[:, None, :]) & later
    weakly_inverted = (z[:, :, None] <= z[:, None, :]) & later
    # Ties are broken against the truth: the worse document comes first.
    ranks = 1 + (z[:, None, :] > z[:, :, None]).sum(2)
    ranks += ((z[:, None, :] == z[:, :, None]) & later).sum(2)
    discounts = discount(ranks)
    v, weak = inverted.sum(2)[:, :k], weakly_inverted.sum(2)[:, :k]
    return BoundTerms(
        z,
        k,
        alpha,
        ndcg=(np.where(ranks <= k, discounts, 0.0) @ gains) / total,
        ndcg_printed=(discounts[:, :k] @ gains[:k]) / total,
        ndcg_all_ranks=(discounts @ gains) / total,
        wkt=v @ alpha,
        wkt_weak=weak @ alpha,
        any_inversion=(v > 0) @ alpha,
        any_inversion_weak=(weak > 0) @ alpha,
        top=LossValues(z, k),
        full=LossValues(z, None),
    )


def values(loss: Loss, z: Floats) -> Floats:
    """Return a loss of the package on scores in the true order."""
    return loss.value_grad(z.ravel(), true_order(*z.shape))[0]


@lru_cache(16)
def true_order(rows: int, n: int) -> Truth:
    """Return the truth of score vectors in the true order."""
    labels = np.tile(np.arange(n - 1, -1, -1.0), rows)
    return Truth.from_labels(labels, np.repeat(np.arange(rows), n))


def scores(rng: np.random.Generator, n: int, k: int, rows: int) -> Floats:
    """Return score vectors: random of all scales, with ties, tiny gaps, one below all others."""
    z = rng.normal(size=(rows, n)) * 10 ** rng.uniform(-3, 1, (rows, 1))
    ties = rng.integers(0, 3, (rows // 4 + 1, n)).astype(np.float64)
    step = 10 ** rng.uniform(-9, 0, (8, 1))
    first_below = np.where(np.arange(n) > 0, step, 0.0)  # the first one just below the rest
    first_below_distinct = first_below + 1e-3 * step * rng.random((8, n))  # the same without ties
    top_below = np.where(np.arange(n) >= k, step, 0.0)
    line = np.arange(n) * step
    return np.vstack(
        [z, ties, first_below, first_below_distinct, top_below, line, -line, np.zeros((1, n))]
    )


def all_bound_terms(rng: np.random.Generator, samples: int) -> Iterator[BoundTerms]:
    """Yield the terms for all lengths from 2 to 8 and all k, for about `samples` vectors."""
    sizes = [(n, k) for n in range(2, MAX_DOCUMENTS + 1) for k in range(1, n + 1)]
    for n, k in sizes:
        yield bound_terms(scores(rng, n, k, max(samples // len(sizes), 4)), k)


LN2 = float(np.log(2))
Side = Callable[[BoundTerms], Floats]


def at_most(left: Side, right: Side, distinct: bool = False, equal: bool = False) -> CheckFunction:
    """Return the check that left <= right (or that both are equal) on every score vector.

    With `distinct`, only score vectors without ties are tested.
    """

    def run(rng: np.random.Generator, samples: int) -> Evidence:
        tested = failed = 0
        worst, example = 0.0, ""
        for terms in all_bound_terms(rng, samples):
            low, high = left(terms), right(terms)
            rows = terms.distinct if distinct else np.ones(len(low), bool)
            excess = np.abs(low - high) if equal else low - high
            violated = rows & (excess > 1e-9 * (1 + np.abs(high)))
            tested, failed = tested + int(rows.sum()), failed + int(violated.sum())
            if violated.any():
                row = int(np.argmax(np.where(violated, excess, -np.inf)))
                worst = max(worst, float(low[row] / high[row]) if high[row] > 0 else np.inf)
                sign = "is not" if equal else ">"
                # Short lists come first: a short counterexample is the easiest to read.
                example = (
                    example or f"{describe(terms, row)}: {low[row]:.4g} {sign} {high[row]:.4g}"
                )
        numbers = {"scores": tested, "violations": failed}
        ratio = {"worst ratio": worst} if failed and not equal else {}
        return Evidence(not failed, numbers | ratio, example)

    return run


def describe(terms: BoundTerms, row: int) -> str:
    """Return length, depth and scores of a row in words."""
    z = ", ".join(f"{x:.4g}" for x in terms.z[row])
    return f"n = {terms.n}, k = {terms.k}, scores in true order ({z})"


def lemma_1(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that tau and the top-k losses do not depend on the order after the first k."""
    tested, max_change = 0, 0.0
    for n in range(3, 6):
        for k in range(1, n - 1):
            z = scores(rng, n, k, max(samples // 50, 4))
            first = _tau_and_losses(bound_terms(z, k))
            for tail in permutations(range(k, n)):
                other = _tau_and_losses(bound_terms(z[:, [*range(k), *tail]], k))
                tested += len(z)
                change = float((np.abs(first - other) / (1 + np.abs(first))).max())
                max_change = max(max_change, change)
    return Evidence(max_change < 1e-9, {"orders": tested, "largest relative change": max_change})


def _tau_and_losses(terms: BoundTerms) -> Floats:
    return np.array([terms.wkt, *terms.top.values()])


def smaller_loss_better_ndcg(rng: np.random.Generator, samples: int) -> Evidence:
    """Test whether of two rankings the one with the smaller top-k loss has the better NDCG@k."""
    tested = failed = 0
    example = ""
    for terms in all_bound_terms(rng, samples):
        a, b = np.arange(len(terms.z) - 1), np.arange(1, len(terms.z))
        for name, loss in terms.top.items():
            lower = loss[a] < loss[b] - 1e-9
            violated = lower & (terms.ndcg[a] < terms.ndcg[b] - 1e-9)
            tested, failed = tested + int(lower.sum()), failed + int(violated.sum())
            if violated.any() and not example and terms.n > 2:
                row = int(np.argmax(violated * (terms.ndcg[b] - terms.ndcg[a])))
                example = (
                    f"{name}, {describe(terms, row)} with loss {loss[row]:.3g} and NDCG "
                    f"{terms.ndcg[row]:.3f}, but {describe(terms, row + 1)} with loss "
                    f"{loss[row + 1]:.3g} and NDCG {terms.ndcg[row + 1]:.3f}"
                )
    return Evidence(not failed, {"pairs": tested, "violations": failed}, example)


def full_order_is_larger(names: Sequence[str]) -> CheckFunction:
    """Return the check that losses of the full order are at least those of the top k."""

    def run(rng: np.random.Generator, samples: int) -> Evidence:
        tested = failed = 0
        for terms in all_bound_terms(rng, samples):
            for name in names:
                top, full = terms.top[name], terms.full[name]
                tested += len(top)
                failed += int((top > full + 1e-9 * (1 + full)).sum())
        return Evidence(not failed, {"scores": tested, "violations": failed})

    return run


def alpha_decreases(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that alpha decreases with the rank for labels n - rank, so that c = alpha(1)."""
    min_step = np.inf
    for n in range(2, 31):
        z = np.zeros((1, n))
        min_step = min(min_step, float(-np.diff(bound_terms(z, n).alpha).max()))
    return Evidence(min_step > 0, {"lengths": 29, "smallest step": min_step})


def tightness(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that (n - 1) / ln n is the best constant for (18): scores (0, d, .., d) reach it."""
    fraction = np.inf
    for n in range(2, 9):
        z = np.where(np.arange(n) > 0, 1e-9, 0.0)[None, :]
        reached = (n - 1) / float(values(LOSSES["listmle"](k=1), z)[0])
        fraction = min(fraction, float(reached / ((n - 1) / np.log(n))))
    return Evidence(fraction > 1 - 1e-6, {"lengths": 7, "fraction of the constant": fraction})


def _ndcg_loss(terms: BoundTerms) -> Floats:
    return 1 - terms.ndcg


def _tau(terms: BoundTerms) -> Floats:
    return terms.wkt


def _weighted_loss(name: str) -> Side:
    """Return the largest weight times a top-k loss, which bounds tau."""
    return lambda terms: terms.c * terms.top[name]


def _final_bound(name: str, divisor: float = 1.0) -> CheckFunction:
    """Return the check of the bound of 1 - NDCG@k by a top-k loss."""
    return at_most(_ndcg_loss, lambda x: x.c * x.top[name] / x.N / divisor)


CHECKS = described_checks(
    __file__,
    {
        "lemma-1": lemma_1,
        "theorem-1": at_most(_ndcg_loss, lambda x: x.wkt / x.N),
        "theorem-1-distinct": at_most(_ndcg_loss, lambda x: x.wkt / x.N, distinct=True),
        "theorem-1-printed-ndcg": at_most(
            lambda x: 1 - x.ndcg_printed, lambda x: x.wkt / x.N, distinct=True
        ),
        "theorem-1-weak": at_most(_ndcg_loss, lambda x: x.wkt_weak / x.N),
        "theorem-1-sharper": at_most(_ndcg_loss, lambda x: x.any_inversion_weak / x.N),
        "equation-15": at_most(
            lambda x: 1 - x.ndcg_all_ranks, lambda x: 1 - x.ndcg_printed, equal=True
        ),
        "equation-15-bound": at_most(lambda x: 1 - x.ndcg_all_ranks, lambda x: 1 - x.ndcg_printed),
        "theorem-2-hinge": at_most(_tau, _weighted_loss("hinge")),
        "theorem-2-exponential": at_most(_tau, _weighted_loss("exponential")),
        "theorem-2-logistic": at_most(_tau, _weighted_loss("logistic")),
        "theorem-2-logistic-base-2": at_most(_tau, lambda x: x.c * x.top["logistic"] / LN2),
        "theorem-2-listmle": at_most(_tau, lambda x: x.c * x.top["listmle"] / LN2),
        "theorem-2-listmle-once": at_most(
            lambda x: x.any_inversion_weak, lambda x: x.c * x.top["listmle"] / LN2
        ),
        "theorem-2-listmle-constant": at_most(
            lambda x: x.wkt_weak, lambda x: x.c * x.top["listmle"] * (x.n - 1) / np.log(x.n)
        ),
        "theorem-2-listmle-tight": tightness,
        "final-hinge": _final_bound("hinge"),
        "final-exponential": _final_bound("exponential"),
        "final-logistic": _final_bound("logistic"),
        "final-logistic-base-2": _final_bound("logistic", LN2),
        "final-listmle": _final_bound("listmle", LN2),
        "full-pairwise": full_order_is_larger(["hinge", "exponential", "logistic"]),
        "full-listmle": full_order_is_larger(["listmle"]),
        "alpha-decreases": alpha_decreases,
        "smaller-loss": smaller_loss_better_ndcg,
    },
)
