"""Measures and random problems by plain loops, to hold the quick code against."""

from __future__ import annotations

import numpy as np


def dcg(grades, gains, discounts) -> float:
    return sum(gains[g] * c for g, c in zip(grades, discounts, strict=False))


def ndcg(grades, pool, gains, discounts) -> float:
    best = dcg(sorted(pool, reverse=True), gains, discounts)
    return dcg(grades, gains, discounts) / best if best > 0 else 0.0


def mean_gap(problem, gains, discounts, normalized: bool) -> float:
    """The mean difference of system a and b over queries of (pool, list a, list b)."""
    gaps = []
    for pool, a, b in problem:
        if normalized:
            gaps.append(ndcg(a, pool, gains, discounts) - ndcg(b, pool, gains, discounts))
        else:
            gaps.append(dcg(a, gains, discounts) - dcg(b, gains, discounts))
    return float(np.mean(gaps))


def random_problem(rng, queries: int, docs: int, levels: int, lean: float = 0.0):
    """Random pools with two orders of each; `lean` makes the first the better one."""
    found = []
    for _ in range(queries):
        pool = rng.integers(0, levels, docs)
        a = pool[np.argsort(-(lean * pool + rng.normal(size=docs)))]
        b = pool[rng.permutation(docs)]
        found.append((pool.tolist(), a.tolist(), b.tolist()))
    return found


def as_systems(problem):
    """The same as runs and judgments."""
    qrels, runs = {}, {"a": {}, "b": {}}
    for q, (pool, a, b) in enumerate(problem):
        qrels[f"q{q}"] = {f"d{i}": g for i, g in enumerate(pool)}
        for name, order in (("a", a), ("b", b)):
            left = {g: [f"d{i}" for i, x in enumerate(pool) if x == g] for g in set(pool)}
            runs[name][f"q{q}"] = {left[g].pop(): -float(p) for p, g in enumerate(order)}
    return runs, qrels


def mean_gaps(problem, gains, discounts, normalized: bool):
    """mean_gap for many gains and discounts at once, a row each."""
    places = discounts.shape[1]
    total = np.zeros(len(gains))
    for pool, a, b in problem:
        one, two, best = (
            (gains[:, order[:places]] * discounts).sum(axis=1)
            for order in (a, b, sorted(pool, reverse=True))
        )
        total += (one - two) / np.where(best > 0, best, 1.0) if normalized else one - two
    return total / len(problem)


def compatible(rng, count: int, levels: int, places: int, spread: float = 2.0):
    """Random gains and discounts that are compatible, of very different shapes."""
    up = np.exp(spread * rng.normal(size=(count, levels - 1)))
    down = np.exp(spread * rng.normal(size=(count, places)))
    return _summed(up, down)


def within(rng, count: int, gains, discounts, factor: float, vary: str = "both"):
    """Random ones whose steps lie within a factor of the given ones', often at its ends."""
    up, down = np.diff(gains), discounts - np.append(discounts[1:], 0.0)

    def moved(steps):
        size = (count, len(steps))
        ends, inside = rng.choice([-1.0, 1.0], size), rng.uniform(-1, 1, size)
        return steps * factor ** np.where(rng.random(size) < 0.7, ends, inside)

    up = moved(up) if vary != "discounts" else np.tile(up, (count, 1))
    down = moved(down) if vary != "gains" else np.tile(down, (count, 1))
    return _summed(up, down)


def _summed(up, down):
    gains = np.hstack([np.zeros((len(up), 1)), np.cumsum(up, axis=1)])
    return gains, np.cumsum(down[:, ::-1], axis=1)[:, ::-1]
