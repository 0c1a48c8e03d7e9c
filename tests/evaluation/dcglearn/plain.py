"""Reference measures and random problems by plain loops."""

from __future__ import annotations

import numpy as np

Lists = dict[str, dict[str, float]]
Problem = list[tuple[list[int], list[int], list[int]]]


def dcg(grades, gains, discounts) -> float:
    return sum(gains[g] * c for g, c in zip(grades, discounts, strict=False))


def ndcg(grades, pool, gains, discounts) -> float:
    best = dcg(sorted(pool, reverse=True), gains, discounts)
    return dcg(grades, gains, discounts) / best if best > 0 else 0.0


def mean_gap(problem, gains, discounts, normalized: bool) -> float:
    """Return the mean difference of systems a and b over queries of (pool, list a, list b)."""
    gaps = []
    for pool, a, b in problem:
        if normalized:
            gaps.append(ndcg(a, pool, gains, discounts) - ndcg(b, pool, gains, discounts))
        else:
            gaps.append(dcg(a, gains, discounts) - dcg(b, gains, discounts))
    return float(np.mean(gaps))


def random_problem(rng, queries: int, docs: int, levels: int, quality: float = 0.0) -> Problem:
    """Return random pools with two orders of each; `quality` makes the first one better."""
    problem = []
    for _ in range(queries):
        pool = rng.integers(0, levels, docs)
        a = pool[np.argsort(-(quality * pool + rng.normal(size=docs)))]
        b = pool[rng.permutation(docs)]
        problem.append((pool.tolist(), a.tolist(), b.tolist()))
    return problem


def as_systems(problem: Problem) -> tuple[dict[str, Lists], Lists]:
    """Return the problem as runs and judgments."""
    qrels: Lists = {}
    runs: dict[str, Lists] = {"a": {}, "b": {}}
    for q, (pool, a, b) in enumerate(problem):
        qrels[f"q{q}"] = {f"d{i}": g for i, g in enumerate(pool)}
        for name, order in (("a", a), ("b", b)):
            remaining = {g: [f"d{i}" for i, x in enumerate(pool) if x == g] for g in set(pool)}
            runs[name][f"q{q}"] = {remaining[g].pop(): -float(p) for p, g in enumerate(order)}
    return runs, qrels


def mean_gaps(problem, gains, discounts, normalized: bool):
    """Return `mean_gap` for many gains and discounts, a row each."""
    positions = discounts.shape[1]
    total = np.zeros(len(gains))
    for pool, a, b in problem:
        value_a, value_b, best = (
            (gains[:, order[:positions]] * discounts).sum(axis=1)
            for order in (a, b, sorted(pool, reverse=True))
        )
        total += (
            (value_a - value_b) / np.where(best > 0, best, 1.0) if normalized else value_a - value_b
        )
    return total / len(problem)


def compatible(
    rng, count: int, levels: int, positions: int, sigma: float = 2.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return random gains and discounts that are monotone, of very different shapes."""
    gain_steps = np.exp(sigma * rng.normal(size=(count, levels - 1)))
    discount_steps = np.exp(sigma * rng.normal(size=(count, positions)))
    return _summed(gain_steps, discount_steps)


def within(
    rng, count: int, gains, discounts, factor: float, vary: str = "both"
) -> tuple[np.ndarray, np.ndarray]:
    """Return random gains and discounts with steps within a factor, often at its limits."""
    gain_steps, discount_steps = np.diff(gains), discounts - np.append(discounts[1:], 0.0)

    def perturb(steps):
        size = (count, len(steps))
        ends, interior = rng.choice([-1.0, 1.0], size), rng.uniform(-1, 1, size)
        return steps * factor ** np.where(rng.random(size) < 0.7, ends, interior)

    gain_steps = perturb(gain_steps) if vary != "discounts" else np.tile(gain_steps, (count, 1))
    discount_steps = (
        perturb(discount_steps) if vary != "gains" else np.tile(discount_steps, (count, 1))
    )
    return _summed(gain_steps, discount_steps)


def _summed(gain_steps, discount_steps) -> tuple[np.ndarray, np.ndarray]:
    gains = np.hstack([np.zeros((len(gain_steps), 1)), np.cumsum(gain_steps, axis=1)])
    return gains, np.cumsum(discount_steps[:, ::-1], axis=1)[:, ::-1]
