"""The same problem by an interior-point method, on the pairs that may matter.

Where C is so large that almost every preference must be met, the optimum leans on about as many
pairs as there are weights, and Newton's steps exchange them one by one.  An interior-point method
does not mind; it needs the pairs as a matrix, so only those near their margins are handed to it.
"""

from __future__ import annotations

import numpy as np

from firstpage.dcglearn.cone import Cone
from firstpage.dcglearn.sums import AnySums
from firstpage.types import Bools, Floats

LARGEST = 50_000  # pairs that it is given
ROUNDS = 20  # of adding pairs that were overlooked
NEAR = 2.0  # margins


def interior(sums: AnySums, cone: Cone, center: Floats) -> Floats | None:
    """Steps near the optimum, or None where too many pairs matter; looks around the point."""
    chosen = sums.lacking(NEAR)
    for _ in range(ROUNDS):
        if chosen.sum() > LARGEST:
            return None
        found = _solved(sums, cone, center, chosen)
        if found is None:
            return None
        sums.move_to(cone.table @ found)
        lost = sums.lacking(0.0) & ~chosen
        if not lost.any():
            return found
        chosen |= lost
    return None


def _solved(sums: AnySums, cone: Cone, center: Floats, chosen: Bools) -> Floats | None:
    import piqp
    from scipy.sparse import block_diag, csc_matrix, diags_array, hstack

    pairs = sums.picked(chosen)
    x = pairs.sparse() @ cone.table
    tied = pairs.kind == 0
    aim = np.where(tied, -1.0, 1.0) * sums.margins[pairs.kind]
    cost = sums.costs[pairs.kind] * pairs.weight
    x, aim = np.concatenate([x, -x[tied]]), np.concatenate([aim, aim[tied]])  # a tie has two sides
    slack = 1.0 / np.sqrt(np.maximum(np.concatenate([cost, cost[tied]]), 1e-300))
    size, count = x.shape[1], len(x)
    solver = piqp.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-9
    solver.setup(
        P=csc_matrix(block_diag([2.0 * cone.metric, diags_array(np.full(count, 2.0))])),
        c=np.concatenate([-2.0 * cone.weights.T @ center, np.zeros(count)]),
        G=csc_matrix(hstack([csc_matrix(x), diags_array(slack)])),
        h_l=aim,
        x_l=np.concatenate([np.zeros(size), np.full(count, -np.inf)]),
    )
    solver.solve()
    found = np.asarray(solver.result.x)[:size]
    return np.maximum(found, 0.0) if np.isfinite(found).all() else None
