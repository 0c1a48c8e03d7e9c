"""The interfaces of scorers (for solvers) and of scorings (for model files and exports)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from firstpage.core import Array, BoundKernel, Floats, Ints
from firstpage.learning.scorers.scoring_base import (
    Contributions,
    Importances,
    JsonObject,
    LibraryModel,
)

if TYPE_CHECKING:
    from firstpage.data import Features, Transform
    from firstpage.learning.scorers.forest import Forest
    from firstpage.learning.scorers.network_scoring import NetworkScoring

Slices = list[Ints]
"""Boundaries of consecutive queries, one array per slice of rows."""


class BoundScorer(Protocol):
    """A scorer set up on training data.  It never sees the truth.

    The rows of a slice are scored and back-propagated together; slices may run concurrently.
    """

    X: Any  # the features, as the scorer stores them
    size: int  # number of parameters
    linear: bool  # whether scores are linear in the parameters
    deterministic: bool  # whether equal parameters have equal scores: there is no dropout
    parallel: bool  # whether slices may run concurrently
    relative_error: float  # of an objective, from rounding

    def initial_params(self, seed: int) -> Floats:
        """Return the parameters that a solver starts from."""
        ...

    def load(self, params: Floats) -> None:
        """Use these parameters for all kernels that run afterwards."""
        ...

    def bind_slice(
        self, lo: int, hi: int, scores: Floats, score_gradient: Floats, gradient: Floats
    ) -> tuple[BoundKernel, BoundKernel]:
        """Return kernels for the rows lo:hi: the first writes `scores`, the second back-propagates
        `score_gradient` and writes `gradient`, by the parameters."""
        ...

    def preconditioner(self, slices: Slices, weights: Floats, l2: float) -> Floats | None:
        """Return a matrix T such that the Hessian by u, where the parameters are T u, is about the
        identity, penalty included.  A vector stands for a diagonal matrix.

        It is estimated from some slices of rows, whose second derivatives by score are about
        `weights`.
        """
        ...

    def scoring(self, params: Floats) -> Scoring:
        """Return the fitted model of these parameters."""
        ...

    def predict(self, params: Floats, X: Features, offsets: Ints | None = None) -> Floats:
        """Return one score per row of X, whose queries begin and end at `offsets`."""
        ...

    def skip_draws(self, evaluations: int) -> None:
        """Continue as after this many more evaluations, where the scorer draws at random."""
        ...


class StageView(Protocol):
    """A model inside a cascade."""

    @property
    def name(self) -> str: ...

    @property
    def scoring(self) -> Scoring: ...

    @property
    def transform(self) -> Transform | None: ...


class Scoring(Protocol):
    """A fitted scorer as model files store it: it scores, explains and can be exported.

    Attributes
    ----------
    n_features : int
        The number of features that it reads.
    by_query : bool
        Whether a score depends on the other documents of the query.
    export_kinds : tuple of str
        Forms that other programs can read, the usual one first: "linear", "network", "listwise
        network", "trees", "lightgbm", "xgboost".  Empty where only its stages can be exported.
    coefficients : tuple of array and float, or None
        Weights and intercept of a linear scoring.
    network : NetworkScoring or None
        The scoring itself, if it is a network.
    library_model : LibraryModel or None
        The trees of a library, in its text format.
    params : array of float or None
        The parameters from which a fit can be resumed; None where it cannot.
    stages : mapping of str to StageView
        The models of a cascade by name.
    reads_missing : bool
        Whether features may be missing (NaN).
    """

    @property
    def n_features(self) -> int: ...

    @property
    def reads_missing(self) -> bool: ...

    @property
    def by_query(self) -> bool: ...

    @property
    def export_kinds(self) -> tuple[str, ...]: ...

    @property
    def coefficients(self) -> tuple[Floats, float] | None: ...

    @property
    def network(self) -> NetworkScoring | None: ...

    @property
    def library_model(self) -> LibraryModel | None: ...

    @property
    def params(self) -> Floats | None: ...

    @property
    def stages(self) -> Mapping[str, StageView]: ...

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        """Return one score per document."""
        ...

    def explain(self) -> Importances:
        """Return the importance of each feature."""
        ...

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return what each feature adds to the scores of these documents."""
        ...

    def forest(self, source: str) -> Forest:
        """Return the trees of a scoring that can be exported as "trees".

        `source` names the model in errors about trees that cannot be represented.
        """
        ...

    def to_dict(self) -> JsonObject:
        """Return the scoring as a JSON object, with its `kind`."""
        ...
