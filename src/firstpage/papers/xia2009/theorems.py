"""Xia, Liu and Li (2009) as checks: definitions, propositions 4, 5, 8 to 10, theorems 6 and 7.

Proposition 10 has three objects, and shows where losses of the full order mislead.  The orders 123,
213 and 321 have the probabilities p1, p2 and p2.  For p1 > p2 object 1 is most probably the first;
which object a loss puts first depends on p1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import numpy as np
from scipy.optimize import brentq

from firstpage.core import Floats
from firstpage.learning.losses import (
    Cosine,
    Loss,
    PairwiseExponential,
    PairwiseHinge,
    PairwiseLogistic,
    PermutationCrossEntropy,
    PlackettLuce,
    SoftmaxCrossEntropy,
    SquaredError,
    focused_net,
)
from firstpage.papers.theory.checks import CheckFunction, Evidence, described_checks
from firstpage.papers.theory.consistency import (
    RiskMinimum,
    bayes_agreement,
    describe_minimum,
    minimize_by_planes,
    minimize_risk,
    preserving_spaces,
)
from firstpage.papers.theory.sensitivity import order_sensitive, trial_scores
from firstpage.papers.theory.spaces import (
    DIFFERENCE_STEP,
    ProbabilitySpace,
    Surrogate,
    changes_top,
    make_surrogate,
    orders,
    positions,
    precedes,
    swapped,
)


class KFactorListNet(Surrogate):
    """- sum over top-k lists of P(list | psi) log P(list | g), with P of Luce's model.

    psi decreases with every rank (n, n - 1, .. 1), or only over the first `level` ranks.
    """

    exact, convex = True, True

    def __init__(self, n: int, k: int, level: int | None = None) -> None:
        self.n, self.k = n, k
        self.name = f"k-factor ListNet, k = {k}"
        self._tops = np.array(list(permutations(range(n), k)))
        self._chosen = np.eye(n)[self._tops]  # by list, rank and object
        self._remaining = np.cumsum(self._chosen, axis=1) - self._chosen == 0  # not chosen before
        psi_by_rank = np.arange(n, 0, -1.0)
        if level is not None:
            psi_by_rank = np.maximum(level - np.arange(n), 0).astype(np.float64)
        psi = psi_by_rank[positions(n)]
        self._target = np.exp(np.array([self._log_probabilities(row) for row in psi]))

    def _log_choices(self, g: Floats) -> Floats:
        """Return log P that an object is chosen next, for each list, rank and object."""
        scores = np.where(self._remaining, g, -np.inf)
        logs: Floats = scores - np.logaddexp.reduce(scores, axis=2, keepdims=True)
        return logs

    def _log_probabilities(self, g: Floats) -> Floats:
        """Return log P of every top-k list."""
        logs = np.take_along_axis(self._log_choices(g), self._tops[:, :, None], axis=2)
        totals: Floats = logs.sum(axis=(1, 2))
        return totals

    def values(self, g: Floats) -> Floats:
        """Return the loss of every order."""
        losses: Floats = -(self._target @ self._log_probabilities(g))
        return losses

    def gradients(self, g: Floats, step: float = DIFFERENCE_STEP) -> Floats:
        """Return the gradient of every order, one per row."""
        log_gradients = (self._chosen - np.exp(self._log_choices(g))).sum(axis=1)
        gradients: Floats = -(self._target @ log_gradients)
        return gradients


CASES = (0.34, 0.36, 0.40, 0.44, 0.48, 0.50, 0.52, 0.53, 0.55, 0.70, 0.90)
THRESHOLD = 0.5261
FULL_ORDER: dict[str, Loss] = {
    "ListMLE": PlackettLuce(), "RankCosine": Cosine(), "ListNet": SoftmaxCrossEntropy(),
    "RankNet": PairwiseLogistic(),
}  # fmt: skip


def proposition_10_space(p1: float) -> ProbabilitySpace:
    """Return the space of Proposition 10."""
    p2 = (1 - p1) / 2
    return ProbabilitySpace.from_orders({(0, 1, 2): p1, (1, 0, 2): p2, (2, 1, 0): p2})


def minimum_at(loss: Loss, p1: float) -> RiskMinimum:
    """Return the minimum risk of a loss in the space of Proposition 10."""
    space = proposition_10_space(p1)
    return minimize_risk(make_surrogate(loss, 3), space, np.random.default_rng(0), 1)[0]


def centered(minimum: RiskMinimum) -> Floats:
    """Return the scores with a mean of 0."""
    scores: Floats = minimum.scores - minimum.scores.mean()
    return scores


def threshold(loss: Loss) -> float:
    """Return the p1 above which object 1 is first."""

    def lead(p1: float) -> float:
        scores = minimum_at(loss, p1).scores
        return float(scores[0] - scores[1])

    return float(brentq(lead, 0.335, 0.9, xtol=1e-6))


def as_printed(rng: np.random.Generator, samples: int) -> Evidence:
    """Test whether ListMLE misses object 1 at every p1 > p2."""
    correct = [p1 for p1 in CASES if minimum_at(PlackettLuce(), p1).top(1) == (0,)]
    example = ""
    if correct:
        scores = ", ".join(f"{x:.3f}" for x in centered(minimum_at(PlackettLuce(), 0.55)))
        example = f"at p1 = .55 the risk is minimal at ({scores}): object 1 is correctly first"
    return Evidence(not correct, {"cases": len(CASES), "correct": len(correct)}, example)


def corrected(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that 2 is first below the threshold and 1 above it; for top-1 ListMLE always 1."""
    p1_threshold = threshold(PlackettLuce())
    minima = {p1: minimum_at(PlackettLuce(), p1) for p1 in CASES}
    wrong = sum(m.top(1) != ((1,) if p1 < p1_threshold else (0,)) for p1, m in minima.items())
    wrong += sum(minimum_at(PlackettLuce(1), p1).top(1) != (0,) for p1 in CASES)
    wrong += any(not proposition_10_space(p1).preserves(1, 0, j) for p1 in CASES for j in (1, 2))
    g = centered(minima[0.40])
    numbers = {"threshold": p1_threshold}
    numbers |= {f"g{i + 1} at p1 = .40": float(x) for i, x in enumerate(g)}
    numbers["largest gradient norm"] = max(m.gradient_norm for m in minima.values())
    return Evidence(not wrong and abs(p1_threshold - THRESHOLD) < 2e-4, numbers)


def others(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that the other full-order losses are wrong up to a threshold, too."""
    thresholds = {name: threshold(loss) for name, loss in FULL_ORDER.items()}
    numbers = {f"{name} correct from p1 =": p1 for name, p1 in thresholds.items()}
    return Evidence(all(1 / 3 < p1 < 0.9 for p1 in thresholds.values()), numbers)


LISTWISE: list[type[PlackettLuce | Cosine | SoftmaxCrossEntropy | PermutationCrossEntropy]] = [
    PlackettLuce,
    Cosine,
    SoftmaxCrossEntropy,
    PermutationCrossEntropy,
]
SIZES = [(3, 1), (3, 2), (4, 1), (4, 2), (4, 3), (5, 2)]  # n, k
MIN_MARGIN = 1e-7


def sensitive_losses(k: int) -> list[Loss]:
    """Return losses that are top-k order sensitive."""
    others: list[Loss] = [PairwiseLogistic(k), PairwiseExponential(k), SquaredError(k)]
    return [*(cls(k=k) for cls in LISTWISE), *others]


def bayes(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that the top-k 0-1 risk is minimal for the most probable subgroup."""
    tested, wrong = 0, 0
    for space, k in _spaces(rng, samples):
        tops, subgroups = orders(space.n)[:, :k], space.subgroups(k)
        risks = [float(space.probabilities[(tops != top).any(1)].sum()) for top in tops]
        best = tuple(tops[int(np.argmin(risks))].tolist())
        tested, wrong = tested + 1, wrong + (best != space.bayes(k)[0] or subgroups[best] == 0)
    return Evidence(not wrong, {"spaces": tested, "other optima": wrong})


def _spaces(rng: np.random.Generator, samples: int) -> Iterator[tuple[ProbabilitySpace, int]]:
    for n, k in SIZES:
        for space, _ in preserving_spaces(rng, n, k, max(samples // 200, 2)):
            yield space, k


def proposition_4(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that all orders of a subgroup have the same loss, for every sensitive loss."""
    tested, max_difference = 0, 0.0
    for phi, k, _ in _pairs(rng):
        for g in trial_scores(rng, phi.n, max(samples // 200, 4)):
            losses: dict[tuple[int, ...], list[float]] = {}
            for order, value in zip(orders(phi.n).tolist(), phi.values(g), strict=True):
                losses.setdefault(tuple(order[:k]), []).append(float(value))
            ranges = [(max(v) - min(v)) / (1 + abs(max(v))) for v in losses.values()]
            tested, max_difference = tested + len(ranges), max(max_difference, *ranges)
    numbers = {"subgroups": tested, "largest relative difference": max_difference}
    return Evidence(max_difference < 1e-9, numbers)


def proposition_5(rng: np.random.Generator, samples: int) -> Evidence:
    """Test derivatives by i of an order and of the swapped one, at equal scores of i and j."""
    tested, min_difference, max_inside = 0, np.inf, 0.0
    for phi, k, (i, j) in _pairs(rng):
        first, differ = precedes(phi.n, i, j), changes_top(phi.n, k, i, j)
        for g in trial_scores(rng, phi.n, max(samples // 200, 4)):
            g[j] = g[i]
            derivatives = phi.gradients(g)[:, i]
            difference = derivatives[swapped(phi.n, i, j)] - derivatives
            difference /= 1 + np.abs(derivatives)
            tested += int(first.sum())
            min_difference = min(min_difference, float(difference[first & differ].min()))
            inside = np.abs(difference[first & ~differ])
            max_inside = max(max_inside, float(inside.max(initial=0.0)))
    numbers = {
        "orders": tested,
        "smallest difference": min_difference,
        "largest inside a subgroup": max_inside,
    }
    return Evidence(min_difference >= -1e-9 and max_inside < 1e-9, numbers)


def _pairs(rng: np.random.Generator) -> Iterator[tuple[Surrogate, int, tuple[int, int]]]:
    """Yield every sensitive loss on 4 objects, for each k, with a random pair."""
    for k in (1, 2, 3):
        for loss in sensitive_losses(k):
            i, j = rng.choice(4, 2, replace=False)
            yield make_surrogate(loss, 4), k, (int(i), int(j))


def proposition_8(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that every pair that a space preserves at k is preserved at k - 1."""
    tested, failed = 0, 0
    for n, k in [(3, 2), (4, 2), (4, 3), (5, 3)]:
        for space, _ in preserving_spaces(rng, n, k, max(samples // 200, 2)):
            for i, j in space.pairs(k):
                tested, failed = tested + 1, failed + (not space.preserves(k - 1, i, j))
    return Evidence(not failed, {"pairs": tested, "failed": failed})


def proposition_8_converse(rng: np.random.Generator, samples: int) -> Evidence:
    """Search for a pair that is preserved at k - 1 and not at k."""
    tested = 0
    for space, _ in preserving_spaces(rng, 4, 1, max(samples // 100, 10)):
        for i, j in space.pairs(1):
            tested += 1
            if not space.preserves(2, i, j):
                top_1, top_2 = space.subgroups(1), space.subgroups(2)
                top = next(t for t in top_2 if _contradicts(t, i, j, top_2))
                example = (
                    f"{i + 1} is first with probability {top_1[(i,)]:.3f} and {j + 1} with "
                    f"{top_1[(j,)]:.3f}, but the top {top[0] + 1}{top[1] + 1} has "
                    f"{top_2[top]:.3f}, "
                    "no more than with the two swapped"
                )
                return Evidence(False, {"pairs": tested}, example)
    return Evidence(True, {"pairs": tested})


def _contradicts(
    top: tuple[int, ...], i: int, j: int, probabilities: dict[tuple[int, ...], float]
) -> bool:
    """Return whether a top with i before j is no more probable than with the two swapped."""
    exchange = {i: j, j: i}
    i_before_j = i in top and (j not in top or top.index(i) < top.index(j))
    swapped_top = tuple(exchange.get(o, o) for o in top)
    return i_before_j and probabilities[top] <= probabilities[swapped_top]


def proposition_9(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that each loss that is sensitive at k is sensitive at k + 1."""
    tested, failed, example = 0, 0, ""
    for k in (1, 2, 3):
        for loss in sensitive_losses(k):
            if order_sensitive(loss, 4, k, 10):
                tested += 1
                deeper = order_sensitive(loss, 4, k + 1, 10)
                failed += not deeper
                example = example or ("" if deeper else f"{loss}: {', '.join(deeper.broken)}")
    return Evidence(tested > 0 and not failed, {"losses": tested, "failed": failed}, example)


def theorem_7(rng: np.random.Generator, samples: int) -> Evidence:
    """Test every preserved pair of a space at the minimum risk of every sensitive loss."""
    tested, wrong, margin, gradient_norm = 0, 0, np.inf, 0.0
    for n, k in SIZES:
        losses = [make_surrogate(loss, n) for loss in sensitive_losses(k)]
        for space, _ in preserving_spaces(rng, n, k, max(samples // 500, 2)):
            for phi in losses:
                minimum = minimize_risk(phi, space, rng, 1)[0]
                gradient_norm = max(gradient_norm, minimum.gradient_norm)
                gaps = [minimum.scores[i] - minimum.scores[j] for i, j in space.pairs(k)]
                tested, wrong = (
                    tested + len(gaps),
                    wrong + sum(bool(gap <= MIN_MARGIN) for gap in gaps),
                )
                margin = min(margin, float(min(gaps)))
    numbers = {
        "pairs": tested, "wrong": wrong, "smallest margin": margin,
        "largest gradient norm": gradient_norm,
    }  # fmt: skip
    return Evidence(not wrong, numbers)


LossCase = tuple[Loss | Surrogate, int, int]  # loss, n, k


def agrees_with_bayes(losses: list[LossCase], samples_per_space: int = 100) -> CheckFunction:
    """Return the check that minimum risk has the top k of the Bayes ranker on every space."""

    def run(rng: np.random.Generator, samples: int) -> Evidence:
        spaces = agree = 0
        margin, certificate, example = np.inf, 0.0, ""
        for loss, n, k in losses:
            count, seed = max(samples // samples_per_space, 4), int(rng.integers(2**31))
            result = bayes_agreement(loss, n, k, count, seed)
            spaces, agree = spaces + result.spaces, agree + result.agree
            margin = min(margin, result.margin)
            certificate = max(certificate, result.certificate)
            if result.example and not example:
                example = f"{result.loss}, k = {k}: {result.example}"
        numbers = {
            "spaces": spaces, "agree": agree, "smallest margin": margin,
            "certificate": certificate,
        }  # fmt: skip
        return Evidence(agree == spaces, numbers, example)

    return run


def is_sensitive(losses: list[LossCase], broken_clause: str = "") -> CheckFunction:
    """Return the check that all losses are sensitive, or that all break just this clause."""

    def run(rng: np.random.Generator, samples: int) -> Evidence:
        wrong, example = 0, ""
        for loss, n, k in losses:
            seed = int(rng.integers(2**31))
            result = order_sensitive(loss, n, k, max(samples // 100, 10), seed)
            as_expected = result.broken == ((broken_clause,) if broken_clause else ())
            wrong += not as_expected
            broken = [c for c in result.clauses if not c.holds]
            if broken and (broken_clause or not as_expected) and not example:
                example = f"{result.loss}, k = {k}: {broken[0].name}: {broken[0].example}"
        return Evidence(not wrong, {"losses": len(losses), "exceptions": wrong}, example)

    return run


def hinge_tie(rng: np.random.Generator, samples: int) -> Evidence:
    """Test where the top-1 hinge is minimal for objects that are first with .40, .35 and .25."""
    space = ProbabilitySpace.from_orders({(0, 1, 2): 0.40, (1, 0, 2): 0.35, (2, 1, 0): 0.25})
    phi = make_surrogate(PairwiseHinge(1), 3)
    minimum, tied = minimize_by_planes(phi, space), minimize_by_planes(phi, space, (0, 1))
    numbers = {"minimum risk": minimum.risk, "minimum risk with 1 not above 2": tied.risk}
    example = describe_minimum(space, tied, 1)
    return Evidence(tied.risk > minimum.risk + 1e-8, numbers, example)


def refuted(run: CheckFunction) -> CheckFunction:
    """Return the check that another one is false; it must find a counterexample."""

    def negated(rng: np.random.Generator, samples: int) -> Evidence:
        evidence = run(rng, samples)
        refuted = not evidence.holds and bool(evidence.example)
        return Evidence(refuted, evidence.numbers, evidence.example)

    return negated


DEPTHS = (1, 2)
FULL_FORMS: list[LossCase] = [(c(), 4, k) for k in DEPTHS for c in LISTWISE]
TOP_K_FORMS: list[LossCase] = [(c(k=k), 4, k) for k in DEPTHS for c in LISTWISE]
HINGES: list[LossCase] = [(PairwiseHinge(k), n, k) for n, k in ((3, 1), (4, 2))]
PAIRS = (PairwiseLogistic, PairwiseExponential, SquaredError)
TOP_1_FORMS: list[LossCase] = [(PlackettLuce(1), 4, 2), (PlackettLuce(1), 4, 3), (Cosine(1), 4, 2)]
LUCE_FORMS = [KFactorListNet(4, k) for k in DEPTHS]
CHECKS = described_checks(
    __file__,
    {
        "equation-7": bayes,
        "proposition-4": proposition_4,
        "proposition-5": proposition_5,
        "theorem-7": theorem_7,
        "theorem-6": agrees_with_bayes(
            [(loss, 4, k) for k in DEPTHS for loss in sensitive_losses(k)]
        ),
        "theorem-6-kinks": refuted(agrees_with_bayes(HINGES)),
        "theorem-6-hinge": refuted(hinge_tie),
        "proposition-8": proposition_8,
        "proposition-8-converse": refuted(proposition_8_converse),
        "proposition-9": proposition_9,
        "section-4.2": agrees_with_bayes(TOP_1_FORMS),
        "proposition-10": as_printed,
        "proposition-10-some": corrected,
        "proposition-10-others": others,
        "section-4.3-full": is_sensitive(FULL_FORMS, "subgroup"),
        "section-4.3-full-misses": refuted(agrees_with_bayes(FULL_FORMS, 400)),
        "section-4.3-top-k": is_sensitive(TOP_K_FORMS),
        "footnote-4": is_sensitive([(loss, 4, loss.k) for loss in LUCE_FORMS], "subgroup"),
        "footnote-4-permutations": is_sensitive([(loss, 4, 4) for loss in LUCE_FORMS]),
        "footnote-4-top-k": is_sensitive([(KFactorListNet(4, k, level=k), 4, k) for k in DEPTHS]),
        "pairwise": is_sensitive([(cls(k), 4, k) for k in DEPTHS for cls in PAIRS]),
        "hinge": is_sensitive([(PairwiseHinge(k), 4, k) for k in DEPTHS], "differentiable"),
        "focused-pairs": is_sensitive([(focused_net(k, 0.0), 4, k) for k in DEPTHS]),
        "focused": is_sensitive([(focused_net(2, b), 4, 2) for b in (0.3, 0.7, 1.0)], "ordered"),
    },
)
