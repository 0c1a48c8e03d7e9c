"""Do the scores of minimum risk put the right objects on top?  A test of Theorem 6 of Xia et al.

Each minimum comes with a certificate of its accuracy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.optimize import linprog, minimize

from firstpage.core import Array, Floats
from firstpage.learning.losses import Loss
from firstpage.papers.theory.sensitivity import Sensitivity, find_kink, order_sensitive
from firstpage.papers.theory.spaces import (
    Order,
    Pair,
    Phi,
    ProbabilitySpace,
    Surrogate,
    check_depth,
    make_surrogate,
    orders,
    random_space,
    theorem_6_pairs,
)

PLANE_SCORE_LIMIT = 40.0  # bound of scores in linear programs
SCORE_LIMIT = 1e4  # bound of scores in descents
OFFSET = 1e-7  # by which points are moved off kinks before gradients are taken
MAX_PLANES = 400
STALLED_PLANES = 20  # that reduce the gap by less than 1%: it is the error of the differences
CHORDS = 40  # on which convexity is tested


@dataclass(frozen=True, eq=False)
class RiskMinimum:
    """Scores at which the risk is smallest.

    Attributes
    ----------
    scores : ndarray
        The scores.
    risk : float
        The risk at the scores.
    gradient_norm : float
        Norm of the gradient of the risk: 0 at a minimum without kinks.
    gap : float or None
        Of cutting planes: an upper bound on the distance from the minimum risk.
    """

    scores: Floats
    risk: float
    gradient_norm: float
    gap: float | None = None

    def top(self, k: int) -> Order:
        """Return the k objects with the highest scores."""
        return tuple(int(i) for i in np.argsort(-self.scores, kind="stable")[:k])

    def margin(self, top: Sequence[int]) -> float:
        """Return the smallest lead of an object of `top` over the next, or over all others."""
        rest = np.delete(self.scores, list(top))
        line = [*self.scores[list(top)], *([rest.max()] if len(rest) else [])]
        return float(-np.diff(line).max()) if len(line) > 1 else 0.0


def risk(phi: Surrogate, space: ProbabilitySpace, g: Floats) -> float:
    """Return Q(p, g): the expected loss of scores g under the probabilities of the orders."""
    return float(space.probabilities @ phi.values(g))


def risk_gradient(phi: Surrogate, space: ProbabilitySpace, g: Floats) -> Floats:
    """Return the gradient of the risk by the scores."""
    gradient: Floats = space.probabilities @ phi.gradients(g)
    return gradient


def minimize_risk(
    phi: Surrogate,
    space: ProbabilitySpace,
    rng: np.random.Generator,
    starts: int = 3,
    smooth: bool = True,
    convex: bool = False,
) -> list[RiskMinimum]:
    """Return the minima that several random starts lead to: the best, and equally good ones.

    Smooth losses: quasi-Newton, then Newton steps.  Convex losses with kinks: cutting planes.
    Other losses: a search by values alone, without a certificate.
    """
    if not smooth and (convex or phi.convex):
        return [minimize_by_planes(phi, space)]
    minima = [_descend(phi, space, rng.normal(size=phi.n), smooth) for _ in range(starts)]
    minima.sort(key=lambda minimum: minimum.risk)
    tolerated = minima[0].risk + 1e-9 * (1 + abs(minima[0].risk))
    return [minimum for minimum in minima if minimum.risk <= tolerated]


def looks_convex(phi: Surrogate, rng: np.random.Generator) -> bool:
    """Return whether the losses of all orders are below random chords at their midpoints."""
    for _ in range(CHORDS):
        a, b = 3 * rng.normal(size=(2, phi.n))
        ends = (phi.values(a) + phi.values(b)) / 2
        if (phi.values((a + b) / 2) > ends + 1e-9 * (1 + np.abs(ends))).any():
            return False
    return True


def _descend(phi: Surrogate, space: ProbabilitySpace, start: Array, smooth: bool) -> RiskMinimum:
    """Return the minimum reached from a start; scores are bounded, as the risk may not be."""

    def value(g: Array) -> float:
        return risk(phi, space, np.clip(g, -SCORE_LIMIT, SCORE_LIMIT))

    def gradient(g: Array) -> Array:
        clipped = np.clip(g, -SCORE_LIMIT, SCORE_LIMIT)
        derivatives: Array = risk_gradient(phi, space, clipped) * (np.abs(g) < SCORE_LIMIT)
        return derivatives

    def bfgs(start: Array) -> Array:
        solution: Any = minimize(value, start, jac=gradient, method="BFGS", options={"gtol": 1e-9})
        end: Array = np.clip(solution.x, -SCORE_LIMIT, SCORE_LIMIT)
        return end

    g = bfgs(start)
    scale_free = abs(value(g / 2) - value(g)) < 1e-12 * (1 + abs(value(g)))
    for _ in range(4 if scale_free else 0):  # gradients vanish at large scores: normalize
        g = normalize(bfgs(normalize(g)))
    if not smooth:
        g = minimize(value, g, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12}).x
    elif phi.exact:
        g = _newton_steps(phi, space, g, scale_free)
    return RiskMinimum(g, value(g), float(np.linalg.norm(risk_gradient(phi, space, g))))


def normalize(g: Array) -> Array:
    """Return the vector scaled to length 1; 0 is unchanged."""
    scaled: Array = g / (np.linalg.norm(g) or 1.0)
    return scaled


def _newton_steps(phi: Surrogate, space: ProbabilitySpace, g: Floats, scale_free: bool) -> Floats:
    """Return scores after Newton steps, as long as they reduce the gradient."""
    gradient = risk_gradient(phi, space, g)
    for _ in range(6):
        hessian = np.empty((phi.n, phi.n))
        for i in range(phi.n):
            up, down = g.copy(), g.copy()
            up[i] += 1e-4
            down[i] -= 1e-4
            hessian[i] = (risk_gradient(phi, space, up) - risk_gradient(phi, space, down)) / 2e-4
        step = np.linalg.lstsq(hessian + hessian.T, 2 * gradient, rcond=1e-7)[0]
        next_g = normalize(g - step) if scale_free else g - step
        next_gradient = risk_gradient(phi, space, next_g)
        if not np.linalg.norm(next_gradient) < np.linalg.norm(gradient):
            break
        g, gradient = next_g, next_gradient
    return g


def minimize_by_planes(
    phi: Surrogate, space: ProbabilitySpace, pair: Pair | None = None
) -> RiskMinimum:
    """Return the minimum risk of a convex loss with kinks, by cutting planes.

    With `pair` = (i, j), only scores that do not have i above j are considered.  Linear programs
    end at kinks, so that finite differences are taken at a small offset.
    """
    n = phi.n
    offset = np.random.default_rng(0).normal(size=n) * (0.0 if phi.exact else OFFSET)
    tolerance = 1e-9 if phi.exact else 1e-6
    g = np.zeros(n)
    rows: list[Array] = []
    limits: list[float] = []
    if pair is not None:
        rows.append(np.r_[np.eye(n)[pair[0]] - np.eye(n)[pair[1]], 0.0])
        limits.append(0.0)
    best_risk, best_g = np.inf, g
    gaps: list[float] = []
    for _ in range(MAX_PLANES):
        g = g + offset
        value = risk(phi, space, g)
        gradient = space.probabilities @ phi.gradients(g, OFFSET / 100)
        if value < best_risk:
            best_risk, best_g = value, g
        rows.append(np.r_[gradient, -1.0])
        limits.append(float(gradient @ g) - value)
        bounds = [(-PLANE_SCORE_LIMIT, PLANE_SCORE_LIMIT)] * n + [(0.0, None)]
        solution: Any = linprog(
            np.r_[np.zeros(n), 1.0], np.array(rows), np.array(limits), bounds=bounds
        )
        g = solution.x[:n]
        gaps.append(max(best_risk - float(solution.fun), 0.0))
        if gaps[-1] <= tolerance * (1 + abs(best_risk)):
            break
        stalled = len(gaps) > STALLED_PLANES and gaps[-1] > 0.99 * gaps[-1 - STALLED_PLANES]
        if stalled and not phi.exact:
            break
    return RiskMinimum(best_g - best_g.mean(), best_risk, float("nan"), gaps[-1])


MIN_MARGIN = 1e-7  # smaller margins of scores are ties
MAX_CERTIFICATE = 1e-5  # largest gradient norm or gap of a certified minimum


@dataclass(frozen=True)
class BayesAgreement:
    """Result of `bayes_agreement`: how often minimum risk has the top k of the Bayes ranker.

    Attributes
    ----------
    loss : str
        Name of the loss.
    n, k : int
        Number of objects, and depth of the top.
    spaces, agree : int
        Number of spaces, and of those with the same top k.
    margin : float
        Smallest lead of an object of the top over the next, where they agree; infinite if they
        agree nowhere.
    certificate : float
        Largest norm of the gradient at a minimum; of losses with kinks, the largest gap between
        its risk and a lower bound.
    uncertified : int
        Number of spaces without a certified minimum: the risk is unbounded, or the loss has kinks
        and is not convex.
    example : str
        A space in which the top k is wrong.
    """

    loss: str
    n: int
    k: int
    spaces: int
    agree: int
    margin: float
    certificate: float
    uncertified: int = 0
    example: str = ""

    @property
    def holds(self) -> bool:
        """Whether the top k agree on all spaces."""
        return self.agree == self.spaces

    @property
    def wrong(self) -> int:
        """Number of spaces with a certified minimum that has another top k."""
        return self.spaces - self.agree - self.uncertified

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON; an infinite margin or certificate is None."""
        return {
            **vars(self),
            "margin": _finite(self.margin),
            "certificate": _finite(self.certificate),
            "holds": self.holds,
        }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


@dataclass(frozen=True)
class Consistency:
    """Result of `consistency`: whether a loss is consistent with the top-k true loss.

    It is true if the loss is top-k order sensitive, so that Theorem 6 applies, and if no space
    was found in which the minimum risk has a wrong top k.

    Attributes
    ----------
    sensitivity : Sensitivity
        Whether the loss is top-k order sensitive, clause by clause.
    agreement : BayesAgreement
        On how many spaces the minimum risk has the top k of the Bayes ranker.
    holds : bool
        Whether both hold.
    verdict : str
        The result in words.

    Examples
    --------
    >>> import firstpage as fp
    >>> result = fp.papers.consistency("ListMLE(k=1)", n=3, k=1, samples=5, spaces=4)
    >>> bool(result), result.agreement.agree
    (True, 4)
    """

    sensitivity: Sensitivity
    agreement: BayesAgreement

    @property
    def holds(self) -> bool:
        """Whether the loss is order sensitive and no space with a wrong top k was found."""
        return self.sensitivity.holds and self.agreement.holds

    def __bool__(self) -> bool:
        return self.holds

    def __repr__(self) -> str:
        return f"Consistency({self.sensitivity.loss}: {self.verdict})"

    @property
    def verdict(self) -> str:
        """The result in words."""
        k, agreement = self.sensitivity.k, self.agreement
        if agreement.wrong:
            return f"not consistent with the top-{k} true loss: there is a counterexample"
        if not self.sensitivity.holds:
            return (
                f"not top-{k} order sensitive, so that no theorem applies; no counterexample in "
                f"{agreement.spaces - agreement.uncertified} spaces"
            )
        if agreement.uncertified:
            return (
                f"undecided: in {agreement.uncertified} of {agreement.spaces} spaces no minimum "
                "risk was certified"
            )
        return f"consistent with the top-{k} true loss, as far as enumeration can tell"

    def to_dict(self) -> dict[str, Any]:
        """Return the result for JSON.

        Returns
        -------
        dict
            Keys "holds", "verdict", those of `Sensitivity.to_dict` and "agreement".
        """
        return {
            "holds": self.holds,
            "verdict": self.verdict,
            **self.sensitivity.to_dict(),
            "agreement": self.agreement.to_dict(),
        }


def preserving_spaces(
    rng: np.random.Generator, n: int, k: int, count: int
) -> Iterator[tuple[ProbabilitySpace, list[Pair]]]:
    """Yield random spaces that fulfill the conditions of Theorem 6, with the preserved pairs.

    Every other space is adversarial below the top k.
    """
    for number in range(count):
        order = rng.permutation(n).tolist()
        pairs = theorem_6_pairs(order, k, rng)
        yield random_space(rng, n, k, pairs, adversarial=number % 2 == 0), pairs


def bayes_agreement(
    loss: Loss | Phi | Surrogate | str, n: int = 4, k: int = 1, spaces: int = 20, seed: int = 0
) -> BayesAgreement:
    """Compare minimum risk and Bayes ranker on random spaces that preserve Theorem 6's pairs."""
    phi = make_surrogate(loss, n)
    check_depth(k, n)
    rng = np.random.default_rng(seed)
    smooth = find_kink(phi, rng) is None
    convex = phi.convex or (not smooth and looks_convex(phi, rng))
    agree, uncertified, margin, certificate, example = 0, 0, np.inf, 0.0, ""
    for space, _ in preserving_spaces(rng, n, k, spaces):
        top = space.bayes(k)[0]
        minima = minimize_risk(phi, space, rng, smooth=smooth, convex=convex)
        worst = min(minima, key=lambda minimum: minimum.margin(top))
        certified = is_certified(worst, smooth)
        correct = (
            certified and worst.margin(top) > MIN_MARGIN and not has_tie(phi, space, worst, top)
        )
        agree, uncertified = agree + correct, uncertified + (not certified)
        margin = min(margin, worst.margin(top)) if correct else margin
        certificate = max(
            certificate, *(m.gradient_norm if m.gap is None else m.gap for m in minima)
        )
        if certified and not correct and not example:
            example = describe_minimum(space, worst, k)
    return BayesAgreement(
        phi.name, n, k, spaces, agree, float(margin), certificate, uncertified, example
    )


def is_certified(minimum: RiskMinimum, smooth: bool) -> bool:
    """Return whether a point is proven to be a minimum, by its gradient or by its gap."""
    if minimum.gap is not None:
        return minimum.gap <= MAX_CERTIFICATE
    return smooth and minimum.gradient_norm <= MAX_CERTIFICATE


def has_tie(
    phi: Surrogate, space: ProbabilitySpace, minimum: RiskMinimum, top: Sequence[int]
) -> bool:
    """Return whether scores with another top, or with a tie in it, have the same risk.

    Cutting planes return one of many minima; the others count as well.
    """
    if minimum.gap is None:
        return False
    rest = [o for o in range(space.n) if o not in top]
    pairs = [*pairwise(top), *((top[-1], o) for o in rest)]
    tolerance = 1e-8 if phi.exact else 3e-6
    return any(
        minimize_by_planes(phi, space, pair).risk <= minimum.risk + tolerance for pair in pairs
    )


def describe_minimum(space: ProbabilitySpace, minimum: RiskMinimum, k: int) -> str:
    """Return the probabilities of a space and the scores of minimum risk in a sentence."""
    by_probability = np.argsort(-space.probabilities, kind="stable")
    count = np.count_nonzero(space.probabilities)
    probabilities = [
        f"{''.join(str(o + 1) for o in orders(space.n)[row])}: {space.probabilities[row]:.3f}"
        for row in by_probability[: min(6, count)]
    ]
    more = " .." if count > 6 else ""
    top = "".join(str(o + 1) for o in space.bayes(k)[0])
    scores = ", ".join(f"{x:.3f}" for x in minimum.scores - minimum.scores.mean())
    return (
        f"probabilities {', '.join(probabilities)}{more}; the most probable top is {top}, the risk "
        f"is minimal at ({scores})"
    )


def consistency(
    loss: Loss | Phi | Surrogate | str,
    n: int = 4,
    k: int = 1,
    samples: int = 40,
    spaces: int = 20,
    seed: int = 0,
) -> Consistency:
    """Test whether a loss is consistent with the top-k true loss.

    A loss is consistent if the scores of minimum expected loss put the most probable top k on
    top.  This is tested in two ways, on all orders of `n` objects: whether the loss is top-k
    order sensitive, from which consistency follows, and whether the top k is right on random
    probability spaces that fulfill the conditions of the theorem.

    Parameters
    ----------
    loss : str, Loss or callable
        Name of a loss or of a ranker, such as "ListMLE(k=2)", a loss object, or a function
        ``phi(scores, order)``, where `order` has the number of the best object first.
    n : int, default 4
        Number of objects, 2 to 6.
    k : int, default 1
        Depth of the top.
    samples : int, default 40
        Number of random score vectors at which order sensitivity is tested.
    spaces : int, default 20
        Number of random probability spaces.
    seed : int, default 0
        Seed of score vectors and spaces.

    Returns
    -------
    Consistency
        Results of both tests; true if both hold.

    Raises
    ------
    DataError
        If `n` or `k` is out of range, if the loss is unknown, or if a function fails or does not
        return a finite number.

    References
    ----------
    F. Xia, T.-Y. Liu and H. Li: Statistical Consistency of Top-k Ranking. NIPS 2009,
    Definition 3 and Theorem 6.

    Examples
    --------
    >>> import firstpage as fp
    >>> fp.papers.consistency("ListMLE(k=1)", n=3, k=1, samples=5, spaces=4).verdict
    'consistent with the top-1 true loss, as far as enumeration can tell'
    >>> fp.papers.consistency("ListMLE", n=3, k=1, samples=5, spaces=4).verdict
    'not consistent with the top-1 true loss: there is a counterexample'
    """
    phi = make_surrogate(loss, n)
    return Consistency(
        order_sensitive(phi, n, k, samples, seed), bayes_agreement(phi, n, k, spaces, seed)
    )
