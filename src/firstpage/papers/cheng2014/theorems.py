"""How many planes a cutting-plane loop takes, against what is proven of it.

Cheng et al. (2014) quote that Algorithm 1 halts within O(1/epsilon^2) iterations.  For its
one-slack form Joachims, Finley and Yu (2009, theorem 5) prove at most

    log2(D / (4 R^2 C)) + 16 R^2 C / epsilon

with D the greatest loss, R the length of the longest difference of feature vectors, and an end
where no constraint is violated by more than epsilon.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from firstpage.data.truth import Truth
from firstpage.losses.pairwise import PairwiseHinge
from firstpage.papers.theory.checks import Check, Result
from firstpage.rankers.svm import RankSVM
from firstpage.solvers.cutting_plane.one_slack import CuttingPlane, Planes
from firstpage.types import Array, Floats

LOSS = PairwiseHinge(average=True)
EPSILONS = (0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
COSTS = (0.1, 1.0, 10.0, 100.0)


@dataclass(frozen=True, eq=False)
class Data:
    """A few queries of documents; grades that a line of the features explains only in part."""

    X: Array
    y: Floats
    qid: Array

    @property
    def truth(self) -> Truth:
        return Truth.from_labels(self.y, self.qid)

    @property
    def longest(self) -> float:
        """R: a query's mean over pairs of x_u - x_v is no longer than its longest one."""
        most = 0.0
        for a, b in pairwise(self.truth.offsets.tolist()):
            apart = self.X[a:b, None] - self.X[None, a:b]
            most = max(most, float(np.linalg.norm(apart, axis=2).max()))
        return most

    def risk(self, w: Floats) -> tuple[float, Floats]:
        """The mean loss of a query, and its slope by w."""
        values, grad = LOSS.value_grad(self.X @ w, self.truth)
        return float(values.mean()), self.X.T @ grad / len(values)


def made(rng: np.random.Generator, queries: int = 12, docs: int = 8, features: int = 6) -> Data:
    X = rng.normal(size=(queries * docs, features))
    utility = X @ rng.normal(size=features) + rng.normal(size=len(X))
    return Data(X, np.digitize(utility, [-1.0, 0.5, 2.0]).astype(np.float64),
                np.repeat(np.arange(queries), docs))  # fmt: skip


def iterations(data: Data, C: float, epsilon: float, most: int = 20_000) -> int:
    """The plain loop: a plane where the model is least, until it is violated by epsilon at most."""
    planes, w = Planes(data.X.shape[1]), np.zeros(data.X.shape[1])
    slack = 0.0
    for count in range(1, most + 1):
        risk, slope = data.risk(w)
        if risk <= slack + epsilon:
            return count
        planes.add(slope, risk - float(slope @ w))
        w = planes.minimize_model(1 / C)[0]
        slack = max(float((planes.gradients @ w + planes.offsets).max()), 0.0)
    return most


def one_slack_bound(data: Data, C: float, epsilon: float) -> float:
    """Joachims, Finley and Yu's; it is stated for epsilon up to 4 R^2 C; D is 1."""
    curve = 4 * data.longest**2 * C
    return float(max(np.ceil(np.log2(1.0 / curve)), 0.0) + np.ceil(4 * curve / epsilon))


def counted(rng: np.random.Generator) -> list[tuple[float, float, int, float]]:
    """(C, epsilon, iterations, bound) over a grid."""
    data = made(rng)
    return [
        (C, e, iterations(data, C, e), one_slack_bound(data, C, e))
        for C in COSTS
        for e in EPSILONS
        if e <= 4 * data.longest**2 * C
    ]


def halts(rng: np.random.Generator, samples: int) -> Result:
    """iterations <= bound everywhere; and how they really grow as epsilon falls."""
    rows = counted(rng)
    over = [row for row in rows if row[2] > row[3]]
    numbers = {
        "runs": len(rows), "over the bound": len(over),
        "most iterations": max(row[2] for row in rows),
        "greatest share of the bound": max(float(row[2] / row[3]) for row in rows),
        "growth: iterations ~ epsilon^-": max(_growth(rows, C) for C in COSTS),
    }  # fmt: skip
    example = "" if not over else f"C = {over[0][0]:g}, epsilon = {over[0][1]:g}: {over[0][2]}"
    return Result(not over, numbers, example)


def _growth(rows: list[tuple[float, float, int, float]], C: float) -> float:
    """By which power of 1/epsilon iterations grow, from the two smallest epsilons."""
    held = [(e, count) for cost, e, count, _ in rows if cost == C][-3:]
    (e1, n1), (e2, n2) = held[0], held[-1]
    return float(np.log(n2 / n1) / np.log(e1 / e2))


def quadratic(rng: np.random.Generator, samples: int) -> Result:
    """iterations * epsilon^2 does not grow as epsilon falls."""
    rows = counted(rng)
    worst = 0.0
    for C in COSTS:
        held = [count * e**2 for cost, e, count, _ in rows if cost == C]
        worst = max(worst, *(b / a for a, b in pairwise(held)))
    return Result(worst <= 1, {"runs": len(rows), "greatest growth of iterations * eps^2": worst})


def searched(rng: np.random.Generator, samples: int) -> Result:
    """The package's solver, asked for the same gap of the objective, against the plain loop."""
    data = made(rng)
    most, plain, over = 0, 0, 0
    for C in COSTS:
        value = _fitted(data, C, 1e-6)[1]
        for e in EPSILONS:
            count = _fitted(data, C, min(e / value, 0.5))[0]
            most, plain = max(most, count), max(plain, iterations(data, C, e))
            over += count > one_slack_bound(data, C, e)
    numbers = {"most iterations": most, "of the plain loop": plain, "over the bound": over}
    return Result(over == 0 and most <= plain, numbers)


def _fitted(data: Data, C: float, tol: float) -> tuple[int, float]:
    """Iterations, and the objective divided by C."""
    model = RankSVM(average=True, C=C, solver=CuttingPlane(tol)).fit(data.X, data.y, qid=data.qid)
    w = model.coef_
    return int(model.n_iter_), data.risk(w)[0] + float(w @ w) / (2 * C)


CHECKS = [
    Check("cheng2014/halts", "the loop halts within O(1/epsilon^2) iterations", quadratic),
    Check("cheng2014/one-slack", "its one-slack form within log2(D / 4R^2C) + 16 R^2 C / epsilon",
          halts, "ours"),
    Check("cheng2014/line-search", "with the line search it takes no more than the plain loop",
          searched, "ours"),
]  # fmt: skip
