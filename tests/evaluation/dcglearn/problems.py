"""Random learning problems, many of them degenerate, fitted from several starting points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from firstpage.evaluation.dcglearn.pairs import Pairs
from firstpage.evaluation.dcglearn.solver import Optimum, center_rounding, solve
from firstpage.evaluation.dcglearn.sums import PairSums
from firstpage.evaluation.dcglearn.weights import Cone, weight_cone

SIZES = (1, 2, 5, 20, 39, 60, 200, 400)
SHAPES = (
    "any",
    "positions that never differ",
    "the same grades in another order",
    "duplicate pairs",
    "one position differs",
    "two grades of many",
)


@dataclass(frozen=True, eq=False)
class Problem:
    """One learning problem."""

    pairs: Pairs
    cone: Cone
    costs: np.ndarray
    margins: np.ndarray

    def solve(self, start=None, center=None) -> Optimum:
        return solve(PairSums(self.pairs, self.margins), self.cone, self.costs, start, center)


def random_problem(rng: np.random.Generator) -> Problem:
    """Return a problem with C from 1e-6 to 1e6, ties, strong preferences and weights."""
    positions, levels = int(rng.integers(1, 11)), int(rng.integers(2, 6))
    n = int(rng.choice(SIZES))
    left, right = _lists(rng, str(rng.choice(SHAPES)), n, positions, levels)
    value = (np.exp2(left) - np.exp2(right)) @ (1 / np.log2(np.arange(2, positions + 2)))
    noise = rng.choice([0.0, 0.0, 0.1, 0.5])
    flipped = (value < 0) != (rng.random(n) < noise)
    left, right = np.where(flipped[:, None], (right, left), (left, right))
    kind = np.where(rng.random(n) < 0.2, 2, 1)
    if rng.random() < 0.4:
        kind = np.where(rng.random(n) < 0.3, 0, kind)
    weight = rng.choice([1.0, 1.0, 0.5, 2.0], n) if rng.random() < 0.5 else np.ones(n)
    left[0], right[0] = levels - 1, 0  # at least one pair differs
    differs = (left != right).any(axis=1)
    pairs = Pairs(
        left[differs].astype(np.uint8),
        right[differs].astype(np.uint8),
        kind[differs].astype(np.uint8),
        weight[differs],
        levels,
        np.arange(differs.sum()),
    )
    c = 10.0 ** (rng.uniform(-6, 6) if rng.random() < 0.8 else rng.choice([-6.0, 6.0]))
    return Problem(
        pairs,
        weight_cone(positions, levels, bool(rng.random() < 0.3), bool(rng.random() < 0.3)),
        np.array([c * rng.choice([1.0, 0.5]), c, c]),
        np.array([1.0, 1.0, rng.choice([1.0, 1.5, 3.0])]),
    )


def _lists(rng, shape: str, n: int, positions: int, levels: int):
    left, right = rng.integers(0, levels, (2, n, positions))
    if shape == "positions that never differ":
        right = np.where(rng.random(positions) < 0.4, left, right)
    elif shape == "the same grades in another order":
        right = rng.permuted(left, axis=1)
    elif shape == "duplicate pairs":
        copies = rng.integers(0, max(1, n // 4), n)
        left, right = left[copies], right[copies]
    elif shape == "one position differs":
        right = np.where(np.arange(positions) == rng.integers(0, positions, (n, 1)), right, left)
    elif shape == "two grades of many":
        left, right = np.where(left > 0, levels - 1, 0), np.where(right > 0, levels - 1, 0)
    return left, right


def fits(rng: np.random.Generator) -> Iterator[tuple[str, Optimum, float]]:
    """Yield (start, optimum, rounding error of the gap) for several fits of a random problem."""
    problem = random_problem(rng)
    pairs, size = problem.pairs, problem.cone.table.shape[1]
    cold = problem.solve()
    yield "from zero", cold, 0.0
    for _ in range(2):
        counts = np.bincount(rng.integers(0, len(pairs), len(pairs)), minlength=len(pairs))
        sample = pairs[counts > 0].with_weight((pairs.weight * counts)[counts > 0])
        resampled = Problem(sample, problem.cone, problem.costs, problem.margins)
        yield "a bootstrap sample, from the full fit", resampled.solve(cold.steps), 0.0
    permuted = Problem(
        pairs[rng.permutation(len(pairs))], problem.cone, problem.costs, problem.margins
    )
    yield "permuted rows, from the full fit", permuted.solve(cold.steps), 0.0
    sums, start = PairSums(pairs, problem.margins), None
    for factor in (1e-3, 1.0, 1e3):
        costs = np.clip(factor * problem.costs, 1e-6, 1e6)
        optimum = solve(sums, problem.cone, costs, start)
        start = optimum.steps
        yield f"along C, times {factor:g}", optimum, 0.0
    other_steps = np.abs(rng.normal(size=size)) * 10.0 ** rng.integers(-16, 4)
    yield "from another problem's steps", problem.solve(other_steps), 0.0
    center = problem.cone.weights @ np.abs(rng.normal(size=size)) * rng.choice([1e-3, 1.0, 1e3])
    yield (
        "shrunk toward a center",
        problem.solve(cold.steps, center),
        center_rounding(problem.cone, center),
    )
