"""DCGLearn: ours against cvxpy with Clarabel, and its growth to ten million pairs.

    make bench          or          python benchmarks/dcglearn.py [--quick]

Bars: at 100,000 pairs (10 places, 5 grades) 20 times faster than cvxpy + Clarabel, to the same
objective; linear growth to 10 million pairs with bounded memory.

Pairs are random orders of grades, judged by 2^grade - 1 and 1/log(1 + place), a tenth reversed;
C = 1 and, in the second table, from 0.001 to 1,000.  Both solve from the same arrays of grades;
cvxpy is given the differences as a sparse matrix, made outside its clock, and the weights with
their order as constraints (it eliminates the slacks itself).  Our time has the certificate in it.
"""

from __future__ import annotations

import resource
import sys
import time
import tracemalloc
from typing import Any

import numpy as np

from common import cpu_seconds, peer, seconds, show, versions
from firstpage.data.preferences.preferences import Preferences
from firstpage.dcglearn.pairs import Pairs, encode
from firstpage.dcglearn.simulation import reverse_pairs, zhou_simulator
from firstpage.dcglearn.solver import Optimum, solve
from firstpage.dcglearn.sums import InMemoryPairSums
from firstpage.dcglearn.weights import weight_cone

K, L = 10, 5
MARGINS = np.ones(3)


def preferences(count: int, seed: int = 0) -> Preferences:
    rng = np.random.default_rng(seed)
    return reverse_pairs(zhou_simulator(2).pairs(count, rng), 0.1, rng)


def ours(pairs: Pairs, c: float, threads: int | None = None) -> Optimum:
    return solve(InMemoryPairSums(pairs, MARGINS, threads), weight_cone(K, L), np.full(3, c))


def theirs(cvxpy: Any, delta: Any, c: float) -> tuple[float, Any]:
    w = cvxpy.Variable(K * L)
    lack = cvxpy.pos(1 - delta @ w)
    order = [w[k * L + 1 : (k + 1) * L] >= w[k * L : (k + 1) * L - 1] for k in range(K)]
    problem = cvxpy.Problem(
        cvxpy.Minimize(cvxpy.sum_squares(w) + c * cvxpy.sum_squares(lack)), order
    )
    problem.solve(solver=cvxpy.CLARABEL)
    return float(problem.value), w.value


def against(cvxpy: Any, count: int) -> None:
    """CPU time of one fit, and what it found."""
    pairs = encode(preferences(count), K, L)
    delta = pairs.sparse()
    mine = cpu_seconds(lambda: ours(pairs, 1.0), 5)
    found = ours(pairs, 1.0)
    rows = [
        [
            "**firstpage**",
            seconds(mine),
            "1.0",
            f"{found.objective:.9g}",
            f"{found.gap / found.objective:.0e}",
        ]
    ]
    if cvxpy is not None:
        best: list[float] = []
        other = cpu_seconds(
            lambda: best.append(theirs(cvxpy, delta, 1.0)[0]), 1 if count > 50_000 else 3, 0
        )
        away = abs(best[-1] - found.objective) / found.objective
        rows.append(
            [
                "cvxpy + Clarabel",
                seconds(other),
                f"{other / mine:.0f}",
                f"{best[-1]:.9g}",
                f"{away:.0e}",
            ]
        )
    head = ["", "CPU", "times ours", "objective", "gap / away from ours"]
    show(f"{count:,} pairs, C = 1", head, rows)


def over_costs(cvxpy: Any, count: int) -> None:
    pairs = encode(preferences(count), K, L)
    delta, rows = pairs.sparse(), []
    for c in (1e-3, 1e-1, 1.0, 10.0, 1e3):
        found = ours(pairs, c)
        row = [
            f"{c:g}",
            seconds(cpu_seconds(lambda c=c: ours(pairs, c), 3)),
            str(found.rounds),
            f"{found.objective:.9g}",
        ]
        if cvxpy is not None:
            value, _ = theirs(cvxpy, delta, c)
            row.append(f"{(found.objective - value) / value:+.0e}")
        rows.append(row)
    head = ["C", "CPU", "steps", "objective", *(["less Clarabel's"] if cvxpy is not None else [])]
    show(f"{count:,} pairs over C", head, rows)


def growth(counts: list[int]) -> None:
    """Time and memory for ever more pairs; from arrays of grades to weights."""
    rows = []
    for count in counts:
        given = preferences(count)
        start, cpu = time.perf_counter(), time.process_time()
        pairs = encode(given, K, L)
        found = ours(pairs, 1.0)
        wall, spent = time.perf_counter() - start, time.process_time() - cpu
        size = sum(a.nbytes for a in (pairs.left, pairs.right, pairs.kind, pairs.weight))
        tracemalloc.start()
        ours(encode(given, K, L), 1.0)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        rows.append([
            f"{count:,}", seconds(wall), seconds(spent), f"{1e9 * spent / count:.0f} ns",
            str(found.rounds), f"{most / count:.0f} bytes", f"{size / count:.0f} bytes",
        ])  # fmt: skip
        del given, pairs
    head = ["pairs", "wall", "CPU", "CPU a pair", "steps", "memory a pair", "of that, pairs"]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    show("Growth, C = 1", head, rows, f"largest size of the process: {most:.1f} GB")


def main() -> None:
    quick = "--quick" in sys.argv
    cvxpy = peer("cvxpy")
    print(versions("numpy", "scipy", "cvxpy", "clarabel"))
    for count in (800, 10_000) if quick else (800, 10_000, 100_000):
        against(cvxpy, count)
    over_costs(cvxpy, 5_000 if quick else 20_000)
    growth([10_000, 100_000] if quick else [10_000, 100_000, 1_000_000, 10_000_000])


if __name__ == "__main__":
    main()
