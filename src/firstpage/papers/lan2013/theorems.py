"""Section 5 of Lan et al. (2013) as checks: each printed inequality, and the mended ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from firstpage.data.truth import Truth
from firstpage.losses.listwise import PlackettLuce
from firstpage.losses.loss import Loss
from firstpage.losses.pairwise import PairwiseExponential, PairwiseHinge, PairwiseLogistic
from firstpage.papers.theory.checks import Check, Kind, Result, Run
from firstpage.types import Array, Bools, Floats

LONGEST = 8
LOSSES: dict[str, type[PlackettLuce | PairwiseHinge | PairwiseExponential | PairwiseLogistic]] = {
    "hinge": PairwiseHinge, "exponential": PairwiseExponential, "logistic": PairwiseLogistic,
    "listmle": PlackettLuce,
}  # fmt: skip


def discount(places: Array) -> Floats:
    found: Floats = 1 / np.log2(1.0 + places)
    return found


@dataclass(frozen=True, eq=False)
class Chain:
    """Everything the inequalities speak of, for many score vectors of n documents.  By row:

    ndcg, printed, all_places  the usual NDCG@k; equation (9), whose sum stops at the true place k
                               but not at rank k; the proof's, whose sum goes to n.  Ties are
                               broken against the truth
    wkt, wkt_weak              weighted Kendall's tau, by < as printed and by <=
    some, some_weak            the same with "at least one" instead of how many
    top, full                  losses by name, top-k and of the full order
    """

    z: Floats
    k: int
    alpha: Floats
    ndcg: Floats
    printed: Floats
    all_places: Floats
    wkt: Floats
    wkt_weak: Floats
    some: Floats
    some_weak: Floats
    top: dict[str, Floats]
    full: dict[str, Floats]

    @property
    def n(self) -> int:
        return int(self.z.shape[1])

    @property
    def N(self) -> float:
        """N_k, the most that the sum can be."""
        return float(self.alpha.sum())

    @property
    def c(self) -> float:
        """The greatest alpha."""
        return float(self.alpha.max())

    @property
    def distinct(self) -> Bools:
        """Rows without equal scores."""
        found: Bools = np.diff(np.sort(self.z, axis=1), axis=1).min(axis=1) > 0
        return found


def chain(z: Floats, k: int) -> Chain:
    """All terms for score vectors z, one a row."""
    n = z.shape[1]
    gains = 2.0 ** (n - 1 - np.arange(n)) - 1
    alpha = gains[:k] * discount(np.arange(1, k + 1))
    total = alpha.sum()
    below = np.triu(np.ones((n, n), bool), 1)  # l after j in the true order
    beaten = (z[:, :, None] < z[:, None, :]) & below
    weakly = (z[:, :, None] <= z[:, None, :]) & below
    # The worst order of equals: who is worse in truth comes first.
    ranks = 1 + (z[:, None, :] > z[:, :, None]).sum(2)
    ranks += ((z[:, None, :] == z[:, :, None]) & below).sum(2)
    seen = discount(ranks)
    v, weak = beaten.sum(2)[:, :k], weakly.sum(2)[:, :k]
    return Chain(
        z, k, alpha,
        ndcg=(np.where(ranks <= k, seen, 0.0) @ gains) / total,
        printed=(seen[:, :k] @ gains[:k]) / total, all_places=(seen @ gains) / total,
        wkt=v @ alpha, wkt_weak=weak @ alpha, some=(v > 0) @ alpha, some_weak=(weak > 0) @ alpha,
        top={name: values(cls(k=k), z) for name, cls in LOSSES.items()},
        full={name: values(cls(), z) for name, cls in LOSSES.items()},
    )  # fmt: skip


def values(loss: Loss, z: Floats) -> Floats:
    """A loss of the package on scores in true order."""
    rows, n = z.shape
    labels = np.tile(np.arange(n - 1, -1, -1.0), rows)
    truth = Truth.from_labels(labels, np.repeat(np.arange(rows), n))
    return loss.value_grad(z.ravel(), truth)[0]


def scores(rng: np.random.Generator, n: int, k: int, rows: int) -> Floats:
    """Score vectors to try: random ones of all scales, ties, tiny gaps, one below all others."""
    z = rng.normal(size=(rows, n)) * 10 ** rng.uniform(-3, 1, (rows, 1))
    ties = rng.integers(0, 3, (rows // 4 + 1, n)).astype(np.float64)
    step = 10 ** rng.uniform(-9, 0, (8, 1))
    below = np.where(np.arange(n) > 0, step, 0.0)  # the first one just below the rest
    apart = below + 1e-3 * step * rng.random((8, n))  # the same without ties
    deep = np.where(np.arange(n) >= k, step, 0.0)
    line = np.arange(n) * step
    return np.vstack([z, ties, below, apart, deep, line, -line, np.zeros((1, n))])


def chains(rng: np.random.Generator, samples: int) -> Iterator[Chain]:
    """Chains for all lengths from 2 to 8 and all k, about `samples` vectors together."""
    every = [(n, k) for n in range(2, LONGEST + 1) for k in range(1, n + 1)]
    for n, k in every:
        yield chain(scores(rng, n, k, max(samples // len(every), 4)), k)


LN2 = float(np.log(2))
Side = Callable[[Chain], Floats]


def at_most(left: Side, right: Side, distinct: bool = False, equal: bool = False) -> Run:
    """left <= right on every score vector (or those without ties); `equal`: both are the same."""

    def run(rng: np.random.Generator, samples: int) -> Result:
        tested = failed = 0
        worst, example = 0.0, ""
        for found in chains(rng, samples):
            low, high = left(found), right(found)
            rows = found.distinct if distinct else np.ones(len(low), bool)
            over = np.abs(low - high) if equal else low - high
            bad = rows & (over > 1e-9 * (1 + np.abs(high)))
            tested, failed = tested + int(rows.sum()), failed + int(bad.sum())
            if bad.any():
                at = int(np.argmax(np.where(bad, over, -np.inf)))
                worst = max(worst, float(low[at] / high[at]) if high[at] > 0 else np.inf)
                sign = "is not" if equal else ">"
                # Short lists come first, and a short counter-example is read most easily.
                example = example or f"{shown(found, at)}: {low[at]:.4g} {sign} {high[at]:.4g}"
        numbers = {"scores": tested, "violations": failed}
        ratio = {"worst ratio": worst} if failed and not equal else {}
        return Result(not failed, numbers | ratio, example)

    return run


def shown(found: Chain, row: int) -> str:
    z = ", ".join(f"{x:.4g}" for x in found.z[row])
    return f"n = {found.n}, k = {found.k}, scores in true order ({z})"


def lemma_1(rng: np.random.Generator, samples: int) -> Result:
    """Any order of what comes after the first k: tau and the top-k losses stay what they are."""
    tested, off = 0, 0.0
    for n in range(3, 6):
        for k in range(1, n - 1):
            z = scores(rng, n, k, max(samples // 50, 4))
            first = _terms(chain(z, k))
            for tail in permutations(range(k, n)):
                other = _terms(chain(z[:, [*range(k), *tail]], k))
                tested += len(z)
                off = max(off, float((np.abs(first - other) / (1 + np.abs(first))).max()))
    return Result(off < 1e-9, {"orders": tested, "greatest relative change": off})


def _terms(found: Chain) -> Floats:
    return np.array([found.wkt, *found.top.values()])


def better(rng: np.random.Generator, samples: int) -> Result:
    """Of two rankings the one with the smaller top-k loss: is its NDCG@k no smaller?"""
    tested = failed = 0
    example = ""
    for found in chains(rng, samples):
        a, b = np.arange(len(found.z) - 1), np.arange(1, len(found.z))
        for name, loss in found.top.items():
            lower = loss[a] < loss[b] - 1e-9
            bad = lower & (found.ndcg[a] < found.ndcg[b] - 1e-9)
            tested, failed = tested + int(lower.sum()), failed + int(bad.sum())
            if bad.any() and not example and found.n > 2:
                at = int(np.argmax(bad * (found.ndcg[b] - found.ndcg[a])))
                example = (
                    f"{name}, {shown(found, at)} with loss {loss[at]:.3g} and NDCG "
                    f"{found.ndcg[at]:.3f}, but {shown(found, at + 1)} with loss "
                    f"{loss[at + 1]:.3g} and NDCG {found.ndcg[at + 1]:.3f}"
                )
    return Result(not failed, {"pairs": tested, "violations": failed}, example)


def full_order(names: Sequence[str]) -> Run:
    def run(rng: np.random.Generator, samples: int) -> Result:
        tested = failed = 0
        for found in chains(rng, samples):
            for name in names:
                top, full = found.top[name], found.full[name]
                tested += len(top)
                failed += int((top > full + 1e-9 * (1 + full)).sum())
        return Result(not failed, {"scores": tested, "violations": failed})

    return run


def falling(rng: np.random.Generator, samples: int) -> Result:
    """alpha falls with the place for labels n - place, so that c = alpha(1)."""
    lead = np.inf
    for n in range(2, 31):
        z = np.zeros((1, n))
        lead = min(lead, float(-np.diff(chain(z, n).alpha).max()))
    return Result(lead > 0, {"lengths": 29, "least step": lead})


def tightness(rng: np.random.Generator, samples: int) -> Result:
    """(n - 1) / ln n is the best constant for (18): scores (0, d, .., d) come near it."""
    share = np.inf
    for n in range(2, 9):
        z = np.where(np.arange(n) > 0, 1e-9, 0.0)[None, :]
        reached = (n - 1) / float(values(LOSSES["listmle"](k=1), z)[0])
        share = min(share, float(reached / ((n - 1) / np.log(n))))
    return Result(share > 1 - 1e-6, {"lengths": 7, "share of the constant reached": share})


def _check(
    name: str, claim: str, run: Run, kind: Kind = "printed", holds: bool = True, mends: str = "",
    note: str = "",
) -> Check:  # fmt: skip
    mended = f"lan2013/{mends}" if mends else ""
    return Check(f"lan2013/{name}", claim, run, kind, holds, mended, note)


def _theorem_1() -> list[Check]:
    lost: Side = lambda x: 1 - x.ndcg  # noqa: E731
    return [
        _check("lemma-1", "tau and the losses of the top k do not see the order below it", lemma_1),
        _check("theorem-1", "1 - NDCG@k <= WKT / N_k for any scores",
               at_most(lost, lambda x: x.wkt / x.N), holds=False),
        _check("theorem-1-distinct", "the same for scores without ties",
               at_most(lost, lambda x: x.wkt / x.N, distinct=True), "mended", mends="theorem-1"),
        _check("theorem-1-printed-ndcg", "the same, no ties, for NDCG@k as (9) prints it",
               at_most(lambda x: 1 - x.printed, lambda x: x.wkt / x.N, distinct=True),
               "mended", mends="theorem-1"),
        _check("theorem-1-weak", "1 - NDCG@k <= WKT / N_k for any scores, if WKT counts <= 0",
               at_most(lost, lambda x: x.wkt_weak / x.N), "mended", mends="theorem-1"),
        _check("theorem-1-sharper", "1 - NDCG@k <= sum of alpha(j) over j with v_j >= 1, / N_k",
               at_most(lost, lambda x: x.some_weak / x.N), "ours"),
        _check("equation-15", "with the proof's NDCG, whose sum goes to n, (15) is an equality",
               at_most(lambda x: 1 - x.all_places, lambda x: 1 - x.printed, equal=True),
               holds=False),
        _check("equation-15-bound", "it is <=, which is all that the proof needs",
               at_most(lambda x: 1 - x.all_places, lambda x: 1 - x.printed),
               "mended", mends="equation-15"),
    ]  # fmt: skip


def _pairwise(name: str) -> Side:
    return lambda x: x.c * x.top[name]


def _theorem_2() -> list[Check]:
    tau: Side = lambda x: x.wkt  # noqa: E731
    list_: Side = lambda x: x.c * x.top["listmle"] / LN2  # noqa: E731
    base_2: Side = lambda x: x.c * x.top["logistic"] / LN2  # noqa: E731
    return [
        _check("theorem-2-hinge", "(17) WKT <= c * hinge", at_most(tau, _pairwise("hinge"))),
        _check("theorem-2-exponential", "(17) WKT <= c * exponential",
               at_most(tau, _pairwise("exponential"))),
        _check("theorem-2-logistic", "(17) WKT <= c * logistic, by natural logarithms",
               at_most(tau, _pairwise("logistic")), holds=False),
        _check("theorem-2-logistic-base-2", "(17) WKT <= c * logistic / ln 2",
               at_most(tau, base_2), "mended", mends="theorem-2-logistic"),
        _check("theorem-2-listmle", "(18) WKT <= c / ln 2 * ListMLE",
               at_most(tau, list_), holds=False),
        _check("theorem-2-listmle-once", "(18) with a document counted once, however many beat it",
               at_most(lambda x: x.some_weak, list_), "mended", mends="theorem-2-listmle"),
        _check("theorem-2-listmle-constant", "(18) with (n - 1) / ln n for 1 / ln 2",
               at_most(lambda x: x.wkt_weak,
                       lambda x: x.c * x.top["listmle"] * (x.n - 1) / np.log(x.n)),
               "mended", mends="theorem-2-listmle"),
        _check("theorem-2-listmle-tight", "no smaller constant than (n - 1) / ln n will do",
               tightness, "ours"),
    ]  # fmt: skip


def _final() -> list[Check]:
    lost: Side = lambda x: 1 - x.ndcg  # noqa: E731
    found = [
        _check(f"final-{name}", f"1 - NDCG@k <= c / N_k * {name}, also with ties",
               at_most(lost, lambda x, name=name: x.c * x.top[name] / x.N))  # type: ignore[misc]
        for name in ("hinge", "exponential")
    ]  # fmt: skip
    return [
        *found,
        _check("final-logistic", "1 - NDCG@k <= c / N_k * logistic, by natural logarithms",
               at_most(lost, lambda x: x.c * x.top["logistic"] / x.N), holds=False),
        _check("final-logistic-base-2", "1 - NDCG@k <= c / N_k * logistic / ln 2",
               at_most(lost, lambda x: x.c * x.top["logistic"] / x.N / LN2),
               "mended", mends="final-logistic"),
        _check("final-listmle", "1 - NDCG@k <= c / (N_k ln 2) * ListMLE, though (18) is false",
               at_most(lost, lambda x: x.c * x.top["listmle"] / x.N / LN2)),
        _check("full-pairwise", "pairwise losses of the full order are at least those of the top k",
               full_order(["hinge", "exponential", "logistic"])),
        _check("full-listmle", "ListMLE of the full order is at least that of the top k",
               full_order(["listmle"])),
        _check("falling", "alpha falls with the place", falling),
        _check("better", "5.3: the smaller loss 'will definitely' have the better NDCG@k",
               better, holds=False,
               note="only the bounds follow: a loss of 0 means an NDCG@k of 1 (final-*)"),
    ]  # fmt: skip


CHECKS = [*_theorem_1(), *_theorem_2(), *_final()]
