"""Independent reference: objectives, optima and exact arithmetic for DCGLearn."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

from firstpage.data.preferences.preferences import Preferences
from firstpage.evaluation.dcglearn.pairs import Pairs
from firstpage.evaluation.dcglearn.weights import Cone


def random_preferences(
    n: int,
    seed: int = 0,
    *,
    positions: int = 10,
    levels: int = 5,
    ties: float = 0.0,
    noise: float = 0.1,
    strong: float = 0.0,
    same: bool = False,
) -> Preferences:
    """Return pairs judged by 2^grade - 1 and 1/log, with ties, errors and strong preferences."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, levels, (n, positions))
    right = rng.permuted(left, axis=1) if same else rng.integers(0, levels, (n, positions))
    value = (np.exp2(left) - np.exp2(right)) @ (1 / np.log2(np.arange(2, positions + 2)))
    outcome = np.where(value >= 0, 1, -1) * np.where(rng.random(n) < strong, 2, 1)
    outcome = np.where(rng.random(n) < noise, -outcome, outcome)
    close = np.abs(value) <= np.quantile(np.abs(value), ties) if ties else np.zeros(n, bool)
    return Preferences.from_grades(
        left,
        right,
        np.where(close, 0, outcome),
        weight=rng.choice([1.0, 1.0, 0.5, 2.0], n),
        grades=range(levels),
    )


def delta(pairs: Pairs) -> np.ndarray:
    """Return the differences of the pairs by a plain loop, a row per pair."""
    out = np.zeros((len(pairs), pairs.positions * pairs.levels))
    for i in range(len(pairs)):
        for k in range(pairs.positions):
            out[i, k * pairs.levels + pairs.left[i, k]] += 1
            out[i, k * pairs.levels + pairs.right[i, k]] -= 1
    return out


def objective(pairs: Pairs, w: np.ndarray, costs, margins, center=0.0) -> float:
    """Return |w - center|^2 + sum of cost * weight * shortfall^2, as in the paper."""
    total = float(((w - center) ** 2).sum())
    for row, kind, weight in zip(delta(pairs), pairs.kind, pairs.weight, strict=True):
        z = float(row @ w)
        shortfall = margins[kind] - z if kind else abs(z) - margins[0]
        total += costs[kind] * weight * max(0.0, shortfall) ** 2
    return total


def clarabel_optimum(pairs: Pairs, costs, margins, order, center=None) -> tuple[float, np.ndarray]:
    """Solve the program with all its constraints: weights w, a slack per pair, order @ w >= 0."""
    import clarabel
    from scipy.sparse import block_diag, csc_matrix, diags_array, eye_array, hstack, vstack

    x, size, n = pairs.sparse(), pairs.positions * pairs.levels, len(pairs)
    middle = np.zeros(size) if center is None else center
    tied = pairs.kind == 0
    signs = np.where(tied, -1.0, 1.0)
    target = signs * np.asarray(margins)[pairs.kind]
    up = hstack([x, eye_array(n)])
    down = hstack([-x, eye_array(n)]).tocsr()[np.flatnonzero(tied)]
    ordered = hstack([csc_matrix(order), csc_matrix((len(order), n))])
    A = csc_matrix(-vstack([up, down, ordered]))
    b = -np.concatenate([target, target[tied], np.zeros(len(order))])
    cost = np.asarray(costs)[pairs.kind] * pairs.weight
    P = csc_matrix(block_diag([2 * eye_array(size), diags_array(2 * cost)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        P,
        np.concatenate([-2 * middle, np.zeros(n)]),
        A,
        b,
        [clarabel.NonnegativeConeT(len(b))],
        settings,
    )
    solution = solver.solve()
    return float(solution.obj_val) + float(middle @ middle), np.array(solution.x[:size])


def order_constraints(
    positions: int, levels: int, nonnegative: bool, decreasing: bool
) -> np.ndarray:
    """Return rows r of the constraints r @ w >= 0, without the cone."""
    rows = []

    def row(*terms: tuple[int, int, float]) -> None:
        out = np.zeros(positions * levels)
        for k, level, sign in terms:
            out[k * levels + level] += sign
        rows.append(out)

    for k in range(positions):
        if nonnegative:
            row((k, 0, 1.0))
        for level in range(1, levels):
            row((k, level, 1.0), (k, level - 1, -1.0))
            if decreasing and k:
                row(
                    (k - 1, level, 1.0),
                    (k - 1, level - 1, -1.0),
                    (k, level, -1.0),
                    (k, level - 1, 1.0),
                )
    return np.array(rows)


def exact_optimum(pairs: Pairs, cone: Cone, steps: np.ndarray, costs, margins) -> tuple[list, bool]:
    """Return the optimum in 60 digits for the active pairs and positive steps of `steps`.

    The second value says whether the optimality conditions hold in these digits, which is a proof.
    """
    x = (pairs.sparse() @ cone.table).round().astype(int)
    z = x @ steps
    side = np.where(
        pairs.kind > 0,
        (z < np.asarray(margins)[pairs.kind]).astype(int),
        np.where(np.abs(z) > margins[0], -np.sign(z).astype(int), 0),
    )
    free = np.flatnonzero(steps > 0)
    active = np.flatnonzero(side)
    with localcontext() as context:
        context.prec = 60
        metric = [[Decimal(float(v)) for v in row] for row in cone.metric]
        cost = {
            i: Decimal(float(costs[pairs.kind[i]])) * Decimal(float(pairs.weight[i]))
            for i in active
        }
        target = {
            i: Decimal(float(margins[pairs.kind[i]])) * (1 if pairs.kind[i] else -1) for i in active
        }
        variables = range(len(steps))
        square = [[metric[a][b] for b in variables] for a in variables]
        linear = [Decimal(0)] * len(steps)
        for i in active:
            hit = np.flatnonzero(x[i])
            for a in hit:
                linear[a] += cost[i] * target[i] * int(side[i]) * int(x[i, a])
                for b in hit:
                    square[a][b] += cost[i] * int(x[i, a]) * int(x[i, b])
        free_steps = eliminate(
            [[square[a][b] for b in free] for a in free], [linear[a] for a in free]
        )
        best = [Decimal(0)] * len(steps)
        for a, value in zip(free, free_steps, strict=True):
            best[a] = value
        gradient = [sum(square[a][b] * best[b] for b in free) - linear[a] for a in variables]
        optimal = all(v >= 0 for v in free_steps) and all(
            gradient[a] >= 0 for a in variables if a not in set(free)
        )
        for row in range(len(pairs)):
            terms = (int(x[row, a]) * best[a] for a in free if x[row, a])
            difference = sum(terms, start=Decimal(0))
            margin = Decimal(float(margins[pairs.kind[row]]))
            misses = difference < margin if pairs.kind[row] else abs(difference) > margin
            optimal &= (
                misses == bool(side[row])
                or abs((difference if pairs.kind[row] else abs(difference)) - margin) == 0
            )
    return best, bool(optimal)


def eliminate(rows: list[list[Decimal]], right: list[Decimal]) -> list[Decimal]:
    """Solve a positive definite system by Gaussian elimination."""
    a = [[*row, value] for row, value in zip(rows, right, strict=True)]
    n = len(a)
    for i in range(n):
        for j in range(i + 1, n):
            factor = a[j][i] / a[i][i]
            if factor:
                a[j] = [v - factor * u for v, u in zip(a[j], a[i], strict=True)]
    out = [Decimal(0)] * n
    for i in reversed(range(n)):
        out[i] = (a[i][n] - sum(a[i][j] * out[j] for j in range(i + 1, n))) / a[i][i]
    return out
