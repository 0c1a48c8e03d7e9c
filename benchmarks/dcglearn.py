"""Speed of DCGLearn, compared with cvxpy and Clarabel, and its growth to ten million pairs.

    make bench          or          python benchmarks/dcglearn.py [--quick]

Targets: 20 times faster than cvxpy with Clarabel at 100,000 pairs (10 positions, 5 grades), at the
same objective; linear growth to 10 million pairs, with bounded memory.

Pairs are random orders of grades, judged by the gains 2^grade - 1 and the discounts
1 / log(1 + position); a tenth of them is reversed.  C is 1 and, in one table, 0.001 to 1,000.

Held equal: the pairs, C and the objective.  cvxpy gets the differences as a sparse matrix, which is
not timed, and the order of the weights as constraints; it eliminates the slack variables itself.
Not equal: the time of Firstpage includes the certificate of the optimum.
"""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from typing import Any

import numpy as np

from common import cpu_seconds, peer, seconds, show, versions
from firstpage.data.preferences import Preferences
from firstpage.evaluation.dcglearn import (
    Optimum,
    Pairs,
    PairSums,
    encode,
    reverse_pairs,
    solve,
    weight_cone,
    zhou_simulator,
)

K, L = 10, 5
MARGINS = np.ones(3)


def preferences(count: int, seed: int = 0) -> Preferences:
    """Return simulated preferences, a tenth of them reversed."""
    rng = np.random.default_rng(seed)
    return reverse_pairs(zhou_simulator(2).pairs(count, rng), 0.1, rng)


def solve_with_firstpage(pairs: Pairs, c: float, threads: int | None = None) -> Optimum:
    """Return the optimum with its certificate."""
    return solve(PairSums(pairs, MARGINS, threads), weight_cone(K, L), np.full(3, c))


def solve_with_clarabel(cvxpy: Any, delta: Any, c: float) -> float:
    """Return the objective that cvxpy reaches with Clarabel."""
    w = cvxpy.Variable(K * L)
    shortfall = cvxpy.pos(1 - delta @ w)
    order = [w[k * L + 1 : (k + 1) * L] >= w[k * L : (k + 1) * L - 1] for k in range(K)]
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(w) + c * cvxpy.sum_squares(shortfall)), order
    )
    problem.solve(solver=cvxpy.CLARABEL)
    return float(problem.value)


def compare(cvxpy: Any, count: int) -> None:
    """Print the CPU time and the objective of one fit with each solver."""
    pairs = encode(preferences(count), K, L)
    delta = pairs.sparse()
    our_time = cpu_seconds(lambda: solve_with_firstpage(pairs, 1.0), 5)
    optimum = solve_with_firstpage(pairs, 1.0)
    rows = [
        [
            "Firstpage",
            seconds(our_time),
            "1.0",
            f"{optimum.objective:.9g}",
            f"{optimum.gap / optimum.objective:.0e}",
        ]
    ]
    if cvxpy is not None:
        objectives: list[float] = []
        their_time = cpu_seconds(
            lambda: objectives.append(solve_with_clarabel(cvxpy, delta, 1.0)),
            1 if count > 50_000 else 3,
            0,
        )
        difference = abs(objectives[-1] - optimum.objective) / optimum.objective
        rows.append(
            [
                "cvxpy with Clarabel",
                seconds(their_time),
                f"{their_time / our_time:.0f}",
                f"{objectives[-1]:.9g}",
                f"{difference:.0e}",
            ]
        )
    head = ["solver", "CPU", "ratio", "objective", "relative gap, or difference from Firstpage"]
    show(f"{count:,} pairs, C = 1", head, rows)


def compare_over_costs(cvxpy: Any, count: int) -> None:
    """Print CPU time and objective for several values of C."""
    pairs = encode(preferences(count), K, L)
    delta, rows = pairs.sparse(), []
    for c in (1e-3, 1e-1, 1.0, 10.0, 1e3):
        optimum = solve_with_firstpage(pairs, c)
        row = [
            f"{c:g}",
            seconds(cpu_seconds(lambda c=c: solve_with_firstpage(pairs, c), 3)),
            str(optimum.iterations),
            f"{optimum.objective:.9g}",
        ]
        if cvxpy is not None:
            objective = solve_with_clarabel(cvxpy, delta, c)
            row.append(f"{(optimum.objective - objective) / objective:+.0e}")
        rows.append(row)
    difference = ["relative difference from Clarabel"] if cvxpy is not None else []
    show(f"{count:,} pairs, by C", ["C", "CPU", "Newton steps", "objective", *difference], rows)


def growth(counts: list[int]) -> None:
    """Print time and memory by the number of pairs, from arrays of grades to weights."""
    rows = []
    for count in counts:
        judged = preferences(count)
        start, cpu_start = time.perf_counter(), time.process_time()
        pairs = encode(judged, K, L)
        optimum = solve_with_firstpage(pairs, 1.0)
        wall, cpu = time.perf_counter() - start, time.process_time() - cpu_start
        size = sum(a.nbytes for a in (pairs.left, pairs.right, pairs.kind, pairs.weight))
        tracemalloc.start()
        solve_with_firstpage(encode(judged, K, L), 1.0)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append(
            [
                f"{count:,}",
                seconds(wall),
                seconds(cpu),
                f"{1e9 * cpu / count:.0f} ns",
                str(optimum.iterations),
                f"{peak / count:.0f} bytes",
                f"{size / count:.0f} bytes",
            ]
        )
        del judged, pairs
    head = [
        "pairs",
        "wall",
        "CPU",
        "CPU per pair",
        "Newton steps",
        "memory per pair",
        "of that, the pair itself",
    ]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    show("Growth, C = 1", head, rows, f"peak memory of the process: {peak:.1f} GB")


def main() -> None:
    quick = "--quick" in sys.argv
    cvxpy = peer("cvxpy")
    print(versions("numpy", "scipy", "cvxpy", "clarabel"))
    for count in (800, 10_000) if quick else (800, 10_000, 100_000):
        compare(cvxpy, count)
    compare_over_costs(cvxpy, 5_000 if quick else 20_000)
    growth([10_000, 100_000] if quick else [10_000, 100_000, 1_000_000, 10_000_000])


if __name__ == "__main__":
    main()
