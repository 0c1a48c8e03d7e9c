"""What a scorer is to a solver: parameters in one flat array, runs over slices of rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from firstpage.types import Floats, Ints

Run = Callable[[], object]
Slices = list[Ints]
"""Boundaries of neighbouring queries, one array a slice."""


class Fitting(Protocol):
    """A scorer set up on training data.  It never sees truth.

    rows of one slice are scored and pulled back together; slices may run at the same time.
    """

    X: Any  # the features, as the scorer holds them
    size: int  # number of parameters
    parallel: bool  # whether slices may run at the same time
    noise: float  # relative error of an objective, from rounding

    def start(self, seed: int) -> Floats:
        """Parameters to begin with."""
        ...

    def load(self, params: Floats) -> None:
        """Take these parameters for all runs that follow."""
        ...

    def bind(
        self, lo: int, hi: int, scores: Floats, grad: Floats, slope: Floats
    ) -> tuple[Run, Run]:
        """Runs for rows lo:hi: write `scores`; then, from `grad`, write `slope` by parameters."""
        ...

    def conditioner(self, parts: Slices, weights: Floats, l2: float) -> Floats | None:
        """A matrix T: with parameters T u the problem, penalty and all, is about round.  A vector
        stands for its diagonal.

        Learnt from some slices of rows, whose second derivatives are about `weights`.
        """
        ...

    def scoring(self, params: Floats) -> Scoring: ...

    def predict(self, params: Floats, X: Any) -> Floats: ...


class Scoring(Protocol):
    """A fitted scorer as model files hold it."""

    @property
    def n_features(self) -> int: ...

    @property
    def coefficients(self) -> tuple[Floats, float] | None:
        """Weights and intercept, where there are such."""
        ...

    def predict(self, X: Any, threads: int | None = None) -> Floats:
        """One score per document, by at most so many threads; None: all cores."""
        ...

    def to_dict(self) -> dict[str, Any]: ...
