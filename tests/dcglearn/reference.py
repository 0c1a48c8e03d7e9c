"""Plain and independent: objectives, optima and exact arithmetic for DCGLearn."""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

from firstpage.data.preferences.preferences import Preferences
from firstpage.dcglearn.pairs import Pairs
from firstpage.dcglearn.weights import Cone


def random_preferences(
    n: int, seed: int = 0, *, places: int = 10, levels: int = 5, ties: float = 0.0,
    noise: float = 0.1, strong: float = 0.0, same: bool = False,
) -> Preferences:  # fmt: skip
    """Pairs of lists judged by 2^grade - 1 and 1/log, with ties, errors and strong preferences."""
    rng = np.random.default_rng(seed)
    left = rng.integers(0, levels, (n, places))
    right = rng.permuted(left, axis=1) if same else rng.integers(0, levels, (n, places))
    worth = (np.exp2(left) - np.exp2(right)) @ (1 / np.log2(np.arange(2, places + 2)))
    outcome = np.where(worth >= 0, 1, -1) * np.where(rng.random(n) < strong, 2, 1)
    outcome = np.where(rng.random(n) < noise, -outcome, outcome)
    close = np.abs(worth) <= np.quantile(np.abs(worth), ties) if ties else np.zeros(n, bool)
    return Preferences.from_grades(
        left, right, np.where(close, 0, outcome), weight=rng.choice([1.0, 1.0, 0.5, 2.0], n),
        grades=range(levels),
    )  # fmt: skip


def delta(pairs: Pairs) -> np.ndarray:
    """One row a pair, written out one by one."""
    out = np.zeros((len(pairs), pairs.places * pairs.levels))
    for i in range(len(pairs)):
        for k in range(pairs.places):
            out[i, k * pairs.levels + pairs.left[i, k]] += 1
            out[i, k * pairs.levels + pairs.right[i, k]] -= 1
    return out


def objective(pairs: Pairs, w: np.ndarray, costs, margins, center=0.0) -> float:
    """|w - center|^2 + sum of cost * weight * lack^2, as the paper writes it."""
    total = float(((w - center) ** 2).sum())
    for row, kind, weight in zip(delta(pairs), pairs.kind, pairs.weight, strict=True):
        z = float(row @ w)
        lack = margins[kind] - z if kind else abs(z) - margins[0]
        total += costs[kind] * weight * max(0.0, lack) ** 2
    return total


def clarabel_optimum(pairs: Pairs, costs, margins, order, center=None) -> tuple[float, np.ndarray]:
    """The program with all its constraints: weights w, a slack a pair, order @ w >= 0."""
    import clarabel
    from scipy.sparse import block_diag, csc_matrix, diags_array, eye_array, hstack, vstack

    x, size, n = pairs.sparse(), pairs.places * pairs.levels, len(pairs)
    middle = np.zeros(size) if center is None else center
    tied = pairs.kind == 0
    signs = np.where(tied, -1.0, 1.0)
    aim = signs * np.asarray(margins)[pairs.kind]
    up = hstack([x, eye_array(n)])
    down = hstack([-x, eye_array(n)]).tocsr()[np.flatnonzero(tied)]
    ordered = hstack([csc_matrix(order), csc_matrix((len(order), n))])
    A = csc_matrix(-vstack([up, down, ordered]))
    b = -np.concatenate([aim, aim[tied], np.zeros(len(order))])
    cost = np.asarray(costs)[pairs.kind] * pairs.weight
    P = csc_matrix(block_diag([2 * eye_array(size), diags_array(2 * cost)]))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    solver = clarabel.DefaultSolver(
        P, np.concatenate([-2 * middle, np.zeros(n)]), A, b,
        [clarabel.NonnegativeConeT(len(b))], settings,
    )  # fmt: skip
    found = solver.solve()
    return float(found.obj_val) + float(middle @ middle), np.array(found.x[:size])


def order_constraints(places: int, levels: int, nonnegative: bool, decreasing: bool) -> np.ndarray:
    """Rows r with r @ w >= 0: written out, not through the cone."""
    rows = []

    def row(*terms: tuple[int, int, float]) -> None:
        out = np.zeros(places * levels)
        for k, level, sign in terms:
            out[k * levels + level] += sign
        rows.append(out)

    for k in range(places):
        if nonnegative:
            row((k, 0, 1.0))
        for level in range(1, levels):
            row((k, level, 1.0), (k, level - 1, -1.0))
            if decreasing and k:
                row(
                    (k - 1, level, 1.0), (k - 1, level - 1, -1.0),
                    (k, level, -1.0), (k, level - 1, 1.0),
                )  # fmt: skip
    return np.array(rows)


def exact_optimum(pairs: Pairs, cone: Cone, steps: np.ndarray, costs, margins) -> tuple[list, bool]:
    """The optimum in 60 digits, if the right pairs and steps are at their bounds; and whether the
    conditions for an optimum hold in these digits, which is a proof."""
    x = (pairs.sparse() @ cone.table).round().astype(int)
    z = x @ steps
    side = np.where(
        pairs.kind > 0, (z < np.asarray(margins)[pairs.kind]).astype(int),
        np.where(np.abs(z) > margins[0], -np.sign(z).astype(int), 0),
    )  # fmt: skip
    free = np.flatnonzero(steps > 0)
    active = np.flatnonzero(side)
    with localcontext() as context:
        context.prec = 60
        metric = [[Decimal(float(v)) for v in row] for row in cone.metric]
        cost = {
            i: Decimal(float(costs[pairs.kind[i]])) * Decimal(float(pairs.weight[i]))
            for i in active
        }
        aim = {
            i: Decimal(float(margins[pairs.kind[i]])) * (1 if pairs.kind[i] else -1) for i in active
        }
        every = range(len(steps))
        square = [[metric[a][b] for b in every] for a in every]
        wish = [Decimal(0)] * len(steps)
        for i in active:
            hit = np.flatnonzero(x[i])
            for a in hit:
                wish[a] += cost[i] * aim[i] * int(side[i]) * int(x[i, a])
                for b in hit:
                    square[a][b] += cost[i] * int(x[i, a]) * int(x[i, b])
        part = eliminate([[square[a][b] for b in free] for a in free], [wish[a] for a in free])
        best = [Decimal(0)] * len(steps)
        for a, value in zip(free, part, strict=True):
            best[a] = value
        slope = [sum(square[a][b] * best[b] for b in free) - wish[a] for a in every]
        fine = all(v >= 0 for v in part) and all(slope[a] >= 0 for a in every if a not in set(free))
        for i in range(len(pairs)):
            there = sum(int(x[i, a]) * best[a] for a in free if x[i, a])
            margin = Decimal(float(margins[pairs.kind[i]]))
            lacks = there < margin if pairs.kind[i] else abs(there) > margin
            fine &= (
                lacks == bool(side[i])
                or abs((there if pairs.kind[i] else abs(there)) - margin) == 0
            )
    return best, bool(fine)


def eliminate(rows: list[list[Decimal]], right: list[Decimal]) -> list[Decimal]:
    """Gauss, for a positive definite matrix."""
    a = [[*row, value] for row, value in zip(rows, right, strict=True)]
    n = len(a)
    for i in range(n):
        for j in range(i + 1, n):
            share = a[j][i] / a[i][i]
            if share:
                a[j] = [v - share * u for v, u in zip(a[j], a[i], strict=True)]
    out = [Decimal(0)] * n
    for i in reversed(range(n)):
        out[i] = (a[i][n] - sum(a[i][j] * out[j] for j in range(i + 1, n))) / a[i][i]
    return out
