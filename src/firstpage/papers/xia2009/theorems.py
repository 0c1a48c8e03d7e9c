"""Xia, Liu and Li (2009) as checks: definitions, propositions 4, 5, 8 to 10, theorems 6 and 7.

Proposition 10 has three objects, and shows where the full order misleads.  The orders 123, 213 and
321 have the chances p1, p2 and p2.  For p1 > p2 object 1 is the likeliest first one; which object a
loss puts first depends on p1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from scipy.optimize import brentq

from firstpage.losses.focused import focused_net
from firstpage.losses.listwise import Cosine, PlackettLuce, SoftmaxCrossEntropy, SquaredError
from firstpage.losses.loss import Loss
from firstpage.losses.pairwise import PairwiseExponential, PairwiseHinge, PairwiseLogistic
from firstpage.losses.permutation import PermutationCrossEntropy
from firstpage.papers.theory.checks import Check, Result, Run
from firstpage.papers.theory.consistency import Least, agreement, by_planes, least, spaces_for, told
from firstpage.papers.theory.sensitivity import order_sensitive, points
from firstpage.papers.theory.spaces import (
    STEP,
    Space,
    Surrogate,
    before,
    changes_top,
    orders,
    places,
    surrogate,
    swapped,
)
from firstpage.types import Array, Floats


class KFactor(Surrogate):
    """- sum over top-k lists of P(list | psi) log P(list | g), P being Luce's.

    psi falls with every place (n, n - 1, .. 1), or only over the first `level` places.
    """

    exact, convex = True, True

    def __init__(self, n: int, k: int, level: int | None = None) -> None:
        self.n, self.k = n, k
        self.name = f"k-factor ListNet, k = {k}"
        self._tops = [list(top) for top in permutations(range(n), k)]
        falls = np.arange(n, 0, -1.0)
        if level is not None:
            falls = np.maximum(level - np.arange(n), 0).astype(np.float64)
        psi = falls[places(n)]
        self._target = np.exp(np.array([self._logs(row) for row in psi]))

    def _logs(self, g: Floats) -> Floats:
        """log P of every top-k list."""
        found = np.zeros(len(self._tops))
        for at, top in enumerate(self._tops):
            for i, member in enumerate(top):
                left = [o for o in range(self.n) if o not in top[:i]]
                found[at] += g[member] - np.logaddexp.reduce(g[left])
        return found

    def values(self, g: Floats) -> Floats:
        found: Floats = -(self._target @ self._logs(g))
        return found

    def slopes(self, g: Floats, step: float = STEP) -> Floats:
        pull = np.zeros((len(self._tops), self.n))
        for at, top in enumerate(self._tops):
            for i, member in enumerate(top):
                left = [o for o in range(self.n) if o not in top[:i]]
                share: Array = np.exp(g[left] - np.logaddexp.reduce(g[left]))
                pull[at, member] += 1.0
                pull[at, left] -= share
        found: Floats = -(self._target @ pull)
        return found


CASES = (0.34, 0.36, 0.40, 0.44, 0.48, 0.50, 0.52, 0.53, 0.55, 0.70, 0.90)
THRESHOLD = 0.5261
FULL_ORDER: dict[str, Loss] = {
    "ListMLE": PlackettLuce(), "RankCosine": Cosine(), "ListNet": SoftmaxCrossEntropy(),
    "RankNet": PairwiseLogistic(),
}  # fmt: skip


def space(p1: float) -> Space:
    p2 = (1 - p1) / 2
    return Space.of({(0, 1, 2): p1, (1, 0, 2): p2, (2, 1, 0): p2})


def least_at(loss: Loss, p1: float) -> Least:
    return least(surrogate(loss, 3), space(p1), np.random.default_rng(0), 1)[0]


def centered(found: Least) -> Floats:
    scores: Floats = found.scores - found.scores.mean()
    return scores


def threshold(loss: Loss) -> float:
    """From which p1 on object 1 is first."""

    def lead(p1: float) -> float:
        scores = least_at(loss, p1).scores
        return float(scores[0] - scores[1])

    return float(brentq(lead, 0.335, 0.9, xtol=1e-6))


def as_printed(rng: np.random.Generator, samples: int) -> Result:
    """Does ListMLE miss object 1 at every p1 > p2?"""
    right = [p1 for p1 in CASES if least_at(PlackettLuce(), p1).top(1) == (0,)]
    example = ""
    if right:
        scores = ", ".join(f"{x:.3f}" for x in centered(least_at(PlackettLuce(), 0.55)))
        example = f"at p1 = .55 the risk is least at ({scores}): object 1 is first, as it should be"
    return Result(not right, {"cases": len(CASES), "right": len(right)}, example)


def mended(rng: np.random.Generator, samples: int) -> Result:
    """Below the threshold 2 is first, above it 1; top-1 ListMLE has 1 first always."""
    at = threshold(PlackettLuce())
    full = {p1: least_at(PlackettLuce(), p1) for p1 in CASES}
    wrong = sum(f.top(1) != ((1,) if p1 < at else (0,)) for p1, f in full.items())
    wrong += sum(least_at(PlackettLuce(1), p1).top(1) != (0,) for p1 in CASES)
    wrong += any(not space(p1).preserves(1, 0, j) for p1 in CASES for j in (1, 2))
    g = centered(full[0.40])
    numbers = {"threshold": at, **{f"g{i + 1} at p1 = .40": float(x) for i, x in enumerate(g)}}
    numbers["greatest slope"] = max(f.slope for f in full.values())
    return Result(not wrong and abs(at - THRESHOLD) < 2e-4, numbers)


def others(rng: np.random.Generator, samples: int) -> Result:
    """The other full-order losses go wrong as well, each up to a threshold of its own."""
    found = {name: threshold(loss) for name, loss in FULL_ORDER.items()}
    numbers = {f"{name} from p1 =": at for name, at in found.items()}
    return Result(all(1 / 3 < at < 0.9 for at in found.values()), numbers)


PROPOSITION_10_CHECKS = [
    Check("xia2009/proposition-10", "as it reads: with p123 = p1, p213 = p321 = p2, full-order "
          "ListMLE is wrong for every p1 > p2", as_printed, holds=False),
    Check("xia2009/proposition-10-some", "it is wrong for 1/3 < p1 < .5261 and right above; top-1 "
          "ListMLE is right always", mended, "mended", mends="xia2009/proposition-10"),
    Check("xia2009/proposition-10-others", "the other full-order losses are wrong too, for p1 "
          "just above 1/3", others, "ours"),
]  # fmt: skip


LISTWISE: list[type[PlackettLuce | Cosine | SoftmaxCrossEntropy | PermutationCrossEntropy]] = [
    PlackettLuce, Cosine, SoftmaxCrossEntropy, PermutationCrossEntropy,
]  # fmt: skip
SIZES = [(3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 2)]
CLEAR = 1e-7


def sensitive_losses(k: int) -> list[Loss]:
    """Losses that are top-k order sensitive."""
    others: list[Loss] = [PairwiseLogistic(k), PairwiseExponential(k), SquaredError(k)]
    return [*(cls(k=k) for cls in LISTWISE), *others]


def bayes(rng: np.random.Generator, samples: int) -> Result:
    """The top-k 0-1 risk of every order, against 1 - the chance of its subgroup."""
    tested, wrong = 0, 0
    for space, k in _spaces(rng, samples):
        where, held = orders(space.n)[:, :k], space.subgroups(k)
        risks = [float(space.chances[(where != top).any(1)].sum()) for top in where]
        best = tuple(where[int(np.argmin(risks))].tolist())
        tested, wrong = tested + 1, wrong + (best != space.bayes(k)[0] or held[best] == 0)
    return Result(not wrong, {"spaces": tested, "other optima": wrong})


def _spaces(rng: np.random.Generator, samples: int) -> Iterator[tuple[Space, int]]:
    for n, k in SIZES:
        for space, _ in spaces_for(rng, n, k, max(samples // 200, 2)):
            yield space, k


def proposition_4(rng: np.random.Generator, samples: int) -> Result:
    """All orders of one subgroup, for every loss that is sensitive."""
    tested, off = 0, 0.0
    for phi, k, _ in _pairs(rng):
        for g in points(rng, phi.n, max(samples // 200, 4)):
            held: dict[tuple[int, ...], list[float]] = {}
            for order, value in zip(orders(phi.n).tolist(), phi.values(g), strict=True):
                held.setdefault(tuple(order[:k]), []).append(float(value))
            spread = [(max(v) - min(v)) / (1 + abs(max(v))) for v in held.values()]
            tested, off = tested + len(spread), max(off, *spread)
    return Result(off < 1e-9, {"subgroups": tested, "greatest relative difference": off})


def proposition_5(rng: np.random.Generator, samples: int) -> Result:
    """At equal scores of i and j: slopes by i of an order and of the swapped one."""
    tested, least_, off = 0, np.inf, 0.0
    for phi, k, (i, j) in _pairs(rng):
        first, differ = before(phi.n, i, j), changes_top(phi.n, k, i, j)
        for g in points(rng, phi.n, max(samples // 200, 4)):
            g[j] = g[i]
            slopes = phi.slopes(g)[:, i]
            more = (slopes[swapped(phi.n, i, j)] - slopes) / (1 + np.abs(slopes))
            tested += int(first.sum())
            least_ = min(least_, float(more[first & differ].min()))
            off = max(off, float(np.abs(more[first & ~differ]).max(initial=0.0)))
    numbers = {"orders": tested, "least difference": least_, "greatest inside a subgroup": off}
    return Result(least_ >= -1e-9 and off < 1e-9, numbers)


def _pairs(rng: np.random.Generator) -> Iterator[tuple[Surrogate, int, tuple[int, int]]]:
    """Every sensitive loss on 4 objects, for each k, with a pair."""
    for k in (1, 2, 3):
        for loss in sensitive_losses(k):
            i, j = rng.choice(4, 2, replace=False)
            yield surrogate(loss, 4), k, (int(i), int(j))


def proposition_8(rng: np.random.Generator, samples: int) -> Result:
    """Every pair that a space preserves at k is preserved at k - 1."""
    tested, lost = 0, 0
    for n, k in [(3, 2), (4, 2), (4, 3), (5, 3)]:
        for space, _ in spaces_for(rng, n, k, max(samples // 200, 2)):
            for i, j in space.pairs(k):
                tested, lost = tested + 1, lost + (not space.preserves(k - 1, i, j))
    return Result(not lost, {"pairs": tested, "lost": lost})


def proposition_8_converse(rng: np.random.Generator, samples: int) -> Result:
    """A pair that is preserved at k - 1 and not at k."""
    tested = 0
    for space, _ in spaces_for(rng, 4, 1, max(samples // 100, 10)):
        for i, j in space.pairs(1):
            tested += 1
            if not space.preserves(2, i, j):
                one, two = space.subgroups(1), space.subgroups(2)
                bad = next(t for t in two if _against(t, i, j, two))
                example = (
                    f"{i + 1} is first with {one[(i,)]:.3f} and {j + 1} with {one[(j,)]:.3f}, but "
                    f"the top {bad[0] + 1}{bad[1] + 1} has {two[bad]:.3f}, and no more than with "
                    "the two swapped"
                )
                return Result(False, {"pairs": tested}, example)
    return Result(True, {"pairs": tested})


def _against(top: tuple[int, ...], i: int, j: int, chances: dict[tuple[int, ...], float]) -> bool:
    change = {i: j, j: i}
    fits = i in top and (j not in top or top.index(i) < top.index(j))
    return fits and chances[top] <= chances[tuple(change.get(o, o) for o in top)]


def proposition_9(rng: np.random.Generator, samples: int) -> Result:
    """Each loss that is sensitive at k, looked at with k + 1."""
    tested, lost, example = 0, 0, ""
    for k in (1, 2, 3):
        for loss in sensitive_losses(k):
            if order_sensitive(loss, 4, k, 10):
                tested += 1
                deeper = order_sensitive(loss, 4, k + 1, 10)
                lost += not deeper
                example = example or ("" if deeper else f"{loss}: {', '.join(deeper.broken)}")
    return Result(tested > 0 and not lost, {"losses": tested, "lost": lost}, example)


def theorem_7(rng: np.random.Generator, samples: int) -> Result:
    """Every pair that a space preserves, at the scores of least risk of every sensitive loss."""
    tested, wrong, lead, slope = 0, 0, np.inf, 0.0
    for n, k in SIZES:
        losses = [surrogate(loss, n) for loss in sensitive_losses(k)]
        for space, _ in spaces_for(rng, n, k, max(samples // 500, 2)):
            for phi in losses:
                found = least(phi, space, rng, 1)[0]
                slope = max(slope, found.slope)
                gaps = [found.scores[i] - found.scores[j] for i, j in space.pairs(k)]
                tested, wrong = tested + len(gaps), wrong + sum(bool(gap <= CLEAR) for gap in gaps)
                lead = min(lead, float(min(gaps)))
    numbers = {"pairs": tested, "wrong": wrong, "least lead": lead, "greatest slope": slope}
    return Result(not wrong, numbers)


def agree(losses: list[tuple[Loss | Surrogate, int, int]], share: int = 100) -> Run:
    """(loss, n, k): the scores of least risk have the Bayes ranker's top k on every space."""

    def run(rng: np.random.Generator, samples: int) -> Result:
        spaces = agreed = 0
        lead, slope, example = np.inf, 0.0, ""
        for loss, n, k in losses:
            found = agreement(loss, n, k, max(samples // share, 4), int(rng.integers(2**31)))
            spaces, agreed = spaces + found.spaces, agreed + found.agree
            lead, slope = min(lead, found.lead), max(slope, found.slope)
            if found.example and not example:
                example = f"{found.loss}, k = {k}: {found.example}"
        numbers = {"spaces": spaces, "agree": agreed, "least lead": lead, "certificate": slope}
        return Result(agreed == spaces, numbers, example)

    return run


def sensitive(losses: list[tuple[Loss | Surrogate, int, int]], only: str = "") -> Run:
    """(loss, n, k): all are sensitive; with `only`, none is, and by that clause alone."""

    def run(rng: np.random.Generator, samples: int) -> Result:
        wrong, example = 0, ""
        for loss, n, k in losses:
            seed = int(rng.integers(2**31))
            found = order_sensitive(loss, n, k, max(samples // 100, 10), seed)
            fine = found.broken == ((only,) if only else ())
            wrong += not fine
            broken = [c for c in found.clauses if not c.holds]
            if broken and (only or not fine) and not example:
                example = f"{found.loss}, k = {k}: {broken[0].name}: {broken[0].example}"
        return Result(not wrong, {"losses": len(losses), "otherwise": wrong}, example)

    return run


def hinge_tie(rng: np.random.Generator, samples: int) -> Result:
    """First with .40, .35 and .25: where is the risk of the top-1 hinge least?"""
    space = Space.of({(0, 1, 2): 0.40, (1, 0, 2): 0.35, (2, 1, 0): 0.25})
    phi = surrogate(PairwiseHinge(1), 3)
    found, level = by_planes(phi, space), by_planes(phi, space, (0, 1))
    numbers = {"least risk": found.risk, "least risk with 1 not above 2": level.risk}
    return Result(level.risk > found.risk + 1e-8, numbers, told(space, level, 1))


def refuted(run: Run) -> Run:
    """The claim that another claim is false: its counter-example is what is wanted."""

    def turned(rng: np.random.Generator, samples: int) -> Result:
        found = run(rng, samples)
        return Result(not found.holds and bool(found.example), found.numbers, found.example)

    return turned


DEPTHS = (1, 2)
FULL: list[tuple[Loss | Surrogate, int, int]] = [(c(), 4, k) for k in DEPTHS for c in LISTWISE]
CUT: list[tuple[Loss | Surrogate, int, int]] = [(c(k=k), 4, k) for k in DEPTHS for c in LISTWISE]
HINGES: list[tuple[Loss | Surrogate, int, int]] = [
    (PairwiseHinge(k), n, k) for n, k in ((3, 1), (4, 2))
]
LUCE = "ListNet with the k-factor Luce model and a psi that falls at every place"

CHECKS = [
    Check("xia2009/equation-7", "the Bayes ranker has the likeliest top-k subgroup", bayes),
    Check("xia2009/proposition-4", "orders of one subgroup cost the same", proposition_4),
    Check("xia2009/proposition-5", "at equal scores, slopes are ordered as losses are",
          proposition_5),
    Check("xia2009/theorem-7", "where a pair is preserved, the risk is least with i above j",
          theorem_7),
    Check("xia2009/theorem-6", "n - 1 preserved pairs and a sensitive loss: the top k is right",
          agree([(loss, 4, k) for k in DEPTHS for loss in sensitive_losses(k)])),
    Check("xia2009/theorem-6-corners", "it needs a loss without corners: the top-k hinge, which "
          "has (1) to (3), misses the top k", refuted(agree(HINGES)), "ours"),
    Check("xia2009/theorem-6-hinge", "of three objects that are first with .40, .35 and .25, the "
          "top-1 hinge does not put the first one on top", refuted(hinge_tie), "ours"),
    Check("xia2009/proposition-8", "what is preserved at k is preserved at k - 1", proposition_8),
    Check("xia2009/proposition-8-converse", "the opposite does not hold: a pair may be preserved "
          "at k - 1 and not at k", refuted(proposition_8_converse)),
    Check("xia2009/proposition-9", "what is sensitive at k is sensitive at k + 1", proposition_9),
    Check("xia2009/section-4.2", "a top-1 sensitive loss may serve any top-k true loss",
          agree([(PlackettLuce(1), 4, 2), (PlackettLuce(1), 4, 3), (Cosine(1), 4, 2)])),
    *PROPOSITION_10_CHECKS,
    Check("xia2009/section-4.3-full", "ListMLE, RankCosine and ListNet of the full order fail at "
          "k < n - 1, by the subgroup clause alone", sensitive(FULL, "subgroup")),
    Check("xia2009/section-4.3-full-misses", "so they may miss the top k",
          refuted(agree(FULL, 400))),
    Check("xia2009/section-4.3-top-k", "their top-k forms are order sensitive", sensitive(CUT)),
    Check("xia2009/footnote-4", f"{LUCE} is not top-k order sensitive",
          sensitive([(KFactor(4, k), 4, k) for k in DEPTHS], "subgroup")),
    Check("xia2009/footnote-4-permutations", f"{LUCE} is sensitive for whole permutations",
          sensitive([(KFactor(4, k), 4, 4) for k in DEPTHS])),
    Check("xia2009/footnote-4-top-k", "with the top-k psi the k-factor form is order sensitive",
          sensitive([(KFactor(4, k, level=k), 4, k) for k in DEPTHS]), "ours"),
    Check("xia2009/pairwise", "top-k logistic and exponential pairs, and top-k regression, are "
          "order sensitive (the paper leaves pairs open)",
          sensitive([(cls(k), 4, k) for k in DEPTHS
                     for cls in (PairwiseLogistic, PairwiseExponential, SquaredError)]), "ours"),
    Check("xia2009/hinge", "the top-k hinge fails by its corners alone",
          sensitive([(PairwiseHinge(k), 4, k) for k in DEPTHS], "differentiable"), "ours"),
    Check("xia2009/focused-pairs", "FocusedNet with beta = 0 is order sensitive",
          sensitive([(focused_net(k, 0.0), 4, k) for k in DEPTHS]), "ours"),
    Check("xia2009/focused", "FocusedNet with beta above 0 fails at k = 2, by the clause of order "
          "alone", sensitive([(focused_net(2, b), 4, 2) for b in (0.3, 0.7, 1.0)], "ordered"),
          "ours"),
]  # fmt: skip
