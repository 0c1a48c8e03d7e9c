"""Coordinates in which a problem is about round: parameters are T u."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from firstpage.types import Floats


@dataclass(frozen=True, eq=False)
class Coordinates:
    """T is a matrix, a vector (the diagonal of one), or None for the parameters themselves."""

    T: Floats | None
    size: int

    def outward(self, u: Floats) -> Floats:
        """Parameters of coordinates."""
        if self.T is None:
            return u
        found: Floats = self.T * u if self.T.ndim == 1 else self.T @ u
        return found

    def inward(self, slope: Floats) -> Floats:
        """A slope by parameters as one by coordinates."""
        if self.T is None:
            return slope
        found: Floats = self.T * slope if self.T.ndim == 1 else self.T.T @ slope
        return found

    def find(self, params: Floats) -> Floats:
        """Coordinates of parameters."""
        if self.T is None:
            return params
        if self.T.ndim == 1:
            return params / self.T
        return np.asarray(np.linalg.solve(self.T, params), np.float64)

    def times(self, factor: float) -> Coordinates:
        """With all units so many times longer."""
        T = np.ones(self.size) if self.T is None else self.T
        return Coordinates(T * factor, self.size)
