"""Planes below a convex loss, and the least point of penalty plus the highest plane."""

from __future__ import annotations

import numpy as np

from firstpage.errors import DataError
from firstpage.solvers.solver import Objective
from firstpage.types import Floats, Ints

DEEP = -1e6  # below the highest plane, in units of the slopes
OLD = 40  # solutions in which a plane took no part, after which it is let go


def check_penalty(objective: Objective) -> None:
    """Without a penalty the model under planes has no least point."""
    if objective.l2 <= 0:
        raise DataError("cutting planes need a penalty: C must be finite, or l2 above 0.")


class Planes:
    """loss(w) >= slopes[t] @ w + heights[t] for all t; the first plane says that losses are >= 0.

    Planes do not depend on the penalty: those of one C serve the next.
    """

    def __init__(self, size: int) -> None:
        self.slopes = np.zeros((1, size))
        self.heights = np.zeros(1)
        self._gram = np.zeros((1, 1))
        self._age = np.zeros(1, np.int64)

    @classmethod
    def of(cls, slopes: Floats, heights: Floats) -> Planes:
        """Planes that were kept."""
        found = cls(slopes.shape[1])
        found.slopes, found.heights = slopes, heights
        found._gram = slopes @ slopes.T
        found._age = np.zeros(len(heights), np.int64)
        return found

    def __len__(self) -> int:
        return len(self.heights)

    def add(self, slope: Floats, height: float) -> None:
        beside = self.slopes @ slope
        size = len(self)
        gram = np.empty((size + 1, size + 1))
        gram[:size, :size] = self._gram
        gram[size, :size] = gram[:size, size] = beside
        gram[size, size] = slope @ slope
        self._gram = gram
        self.slopes = np.vstack([self.slopes, slope])
        self.heights = np.append(self.heights, height)
        self._age = np.append(self._age, 0)

    def least(self, l2: float) -> tuple[Floats, float]:
        """Parameters that minimise l2 / 2 * |w|^2 + the highest plane; and a bound below that.

        The dual: shares of the planes, at least 0 and 1 together.  Whatever shares the quadratic
        program returns, they give a true bound.
        """
        shares = self._shares(l2)
        params: Floats = -(shares @ self.slopes) / l2
        below = float(shares @ self.heights) - l2 / 2 * float(params @ params)
        self._forget(shares)
        return params, below

    def _shares(self, l2: float) -> Floats:
        """The multipliers of: minimise l2 / 2 * |w|^2 + top, where top is above all planes.

        The program itself, and not its dual, is solved: with a large C the dual's linear part would
        drown in rounding.  Parameters are in units in which they and the planes are about 1.
        """
        if len(self) == 1:
            return np.ones(1)
        import piqp

        steep = float(np.sqrt(np.diag(self._gram).max())) or 1.0
        high = float(np.abs(self.heights).max()) or 1.0
        unit = min(high / steep, steep / l2)
        scale = max(l2 * unit**2, steep * unit, 1e-300)
        # Where planes lie to each other is all that counts; those far below take no part.
        heights = (self.heights - self.heights.max()) / scale
        part = np.flatnonzero(heights > DEEP)
        slopes = self._spanned(part)
        count, size = slopes.shape
        solver = piqp.DenseSolver()
        solver.settings.eps_abs = solver.settings.eps_rel = 1e-10
        solver.settings.eps_duality_gap_abs = solver.settings.eps_duality_gap_rel = 1e-10
        P = np.zeros((size + 1, size + 1), order="F")
        P[range(size), range(size)] = l2 * unit**2 / scale
        c = np.zeros(size + 1)
        c[size] = 1.0
        G = np.empty((count, size + 1), order="F")
        G[:, :size] = slopes * (unit / scale)
        G[:, size] = -1.0
        solver.setup(P=P, c=c, G=G, h_u=-heights[part])
        solver.solve()
        shares = np.zeros(len(self))
        shares[part] = np.maximum(np.nan_to_num(solver.result.z_u), 0.0)
        total = float(shares.sum())
        if total == 0:
            shares[part], total = 1.0, float(count)
        return shares / total

    def _spanned(self, part: Ints) -> Floats:
        """Slopes, in as few coordinates as they span: planes are fewer than many features."""
        slopes = self.slopes[part]
        if slopes.shape[1] <= len(part):
            return slopes
        corner: Floats = np.asarray(np.linalg.qr(slopes.T, mode="r"), np.float64)
        return corner.T

    def _forget(self, shares: Floats) -> None:
        self._age = np.where(shares > 1e-9, 0, self._age + 1)
        keep = self._age < OLD
        keep[0] = keep[-1] = True
        if not keep.all():
            self.slopes, self.heights = self.slopes[keep], self.heights[keep]
            self._gram, self._age = self._gram[np.ix_(keep, keep)], self._age[keep]
