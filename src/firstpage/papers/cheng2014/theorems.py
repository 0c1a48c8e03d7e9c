"""The number of iterations of a cutting-plane loop, compared with proven bounds.

Cheng et al. (2014) quote that Algorithm 1 halts within O(1/epsilon^2) iterations.  For its
one-slack form Joachims, Finley and Yu (2009, theorem 5) prove at most

    log2(D / (4 R^2 C)) + 16 R^2 C / epsilon

with D the largest loss and R the largest norm of a difference of feature vectors; the loop ends
when no constraint is violated by more than epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from firstpage.core import Array, Floats
from firstpage.data import Truth
from firstpage.learning.losses import PairwiseHinge
from firstpage.learning.rankers import RankSVM
from firstpage.learning.solvers import CuttingPlane, Planes
from firstpage.papers.theory.checks import Evidence, described_checks

LOSS = PairwiseHinge(average=True)
EPSILONS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
COSTS = (0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class RankingProblem:
    """A few queries; the grades are a linear function of the features with noise."""

    X: Array
    y: Floats
    qid: Array

    @cached_property
    def truth(self) -> Truth:
        return Truth.from_labels(self.y, self.qid)

    @cached_property
    def max_difference_norm(self) -> float:
        """R: the norm of a mean of x_u - x_v over pairs is at most the largest norm."""
        max_norm = 0.0
        for a, b in pairwise(self.truth.offsets.tolist()):
            differences = self.X[a:b, None] - self.X[None, a:b]
            max_norm = max(max_norm, float(np.linalg.norm(differences, axis=2).max()))
        return max_norm

    def risk(self, w: Floats) -> tuple[float, Floats]:
        """Return the mean loss of a query, and its gradient by w."""
        values, grad = LOSS.value_grad(self.X @ w, self.truth)
        return float(values.mean()), self.X.T @ grad / len(values)


def random_problem(
    rng: np.random.Generator, queries: int = 12, docs: int = 8, features: int = 6
) -> RankingProblem:
    """Return a problem with random features and noisy linear grades."""
    X = rng.normal(size=(queries * docs, features))
    utility = X @ rng.normal(size=features) + rng.normal(size=len(X))
    return RankingProblem(
        X,
        np.digitize(utility, [-1.0, 0.5, 2.0]).astype(np.float64),
        np.repeat(np.arange(queries), docs),
    )


def iterations(data: RankingProblem, C: float, epsilon: float, max_iterations: int = 20_000) -> int:
    """Return the iterations of the plain loop: a plane at the minimum of the model per iteration.

    The loop ends when the plane is violated by at most epsilon.
    """
    planes, w = Planes(data.X.shape[1]), np.zeros(data.X.shape[1])
    slack = 0.0
    for count in range(1, max_iterations + 1):
        risk, gradient = data.risk(w)
        if risk <= slack + epsilon:
            return count
        planes.add(gradient, risk - float(gradient @ w))
        w = planes.minimize_model(1 / C)[0]
        slack = max(float((planes.gradients @ w + planes.offsets).max()), 0.0)
    return max_iterations


def one_slack_bound(data: RankingProblem, C: float, epsilon: float) -> float:
    """Return the bound of Joachims, Finley and Yu, for epsilon up to 4 R^2 C; D is 1."""
    curvature = 4 * data.max_difference_norm**2 * C
    return float(max(np.ceil(np.log2(1.0 / curvature)), 0.0) + np.ceil(4 * curvature / epsilon))


def count_iterations(rng: np.random.Generator) -> list[tuple[float, float, int, float]]:
    """Return (C, epsilon, iterations, bound) over a grid."""
    data = random_problem(rng)
    return [
        (C, e, iterations(data, C, e), one_slack_bound(data, C, e))
        for C in COSTS
        for e in EPSILONS
        if e <= 4 * data.max_difference_norm**2 * C
    ]


def one_slack(rng: np.random.Generator, samples: int) -> Evidence:
    """Test the one-slack bound, and measure how iterations grow as epsilon decreases."""
    rows = count_iterations(rng)
    above_bound = [row for row in rows if row[2] > row[3]]
    numbers = {
        "runs": len(rows),
        "above the bound": len(above_bound),
        "largest number of iterations": max(row[2] for row in rows),
        "largest fraction of the bound": max(float(row[2] / row[3]) for row in rows),
        "largest growth exponent of iterations in 1/epsilon": max(_growth(rows, C) for C in COSTS),
    }
    example = ""
    if above_bound:
        C, epsilon, count, _ = above_bound[0]
        example = f"C = {C:g}, epsilon = {epsilon:g}: {count}"
    return Evidence(not above_bound, numbers, example)


def _growth(rows: list[tuple[float, float, int, float]], C: float) -> float:
    """Return the power of 1/epsilon with which iterations grow at the smallest epsilons."""
    counts = [(e, count) for cost, e, count, _ in rows if cost == C][-3:]
    (e1, n1), (e2, n2) = counts[0], counts[-1]
    return float(np.log(n2 / n1) / np.log(e1 / e2))


def quadratic(rng: np.random.Generator, samples: int) -> Evidence:
    """Test that iterations * epsilon^2 does not grow as epsilon decreases."""
    rows = count_iterations(rng)
    worst = 0.0
    for C in COSTS:
        scaled_counts = [count * e**2 for cost, e, count, _ in rows if cost == C]
        worst = max(worst, *(b / a for a, b in pairwise(scaled_counts)))
    return Evidence(worst <= 1, {"runs": len(rows), "largest growth of iterations * eps^2": worst})


def line_search(rng: np.random.Generator, samples: int) -> Evidence:
    """Compare the solver of the package, at the same gap of the objective, with the plain loop."""
    data = random_problem(rng)
    max_count, max_plain, above_bound = 0, 0, 0
    for C in COSTS:
        value = _fit(data, C, 1e-6)[1]
        for e in EPSILONS:
            count = _fit(data, C, min(e / value, 0.5))[0]
            max_count = max(max_count, count)
            max_plain = max(max_plain, iterations(data, C, e))
            above_bound += count > one_slack_bound(data, C, e)
    numbers = {
        "largest number of iterations": max_count,
        "largest number of the plain loop": max_plain,
        "above the bound": above_bound,
    }
    return Evidence(above_bound == 0 and max_count <= max_plain, numbers)


def _fit(data: RankingProblem, C: float, tol: float) -> tuple[int, float]:
    """Return the iterations, and the objective divided by C."""
    model = RankSVM(average=True, C=C, solver=CuttingPlane(tol)).fit(data.X, data.y, qid=data.qid)
    w = model.coef_
    return int(model.n_iter_), data.risk(w)[0] + float(w @ w) / (2 * C)


CHECKS = described_checks(
    __file__, {"halts": quadratic, "one-slack": one_slack, "line-search": line_search}
)
