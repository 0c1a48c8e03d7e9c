"""What a scorer is to a solver, and a scoring to model files, explanations and other programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias

from firstpage.types import Array, Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features
    from firstpage.data.transforms import MinMax, Standardize
    from firstpage.scorers.forest import Forest

Run = Callable[[], object]
Slices = list[Ints]
"""Boundaries of neighboring queries, one array a slice."""
JsonObject: TypeAlias = dict[str, Any]
"""An object of a JSON file, such as a scoring in a model file."""


class BoundScorer(Protocol):
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

        Learned from some slices of rows, whose second derivatives are about `weights`.
        """
        ...

    def scoring(self, params: Floats) -> Scoring: ...

    def predict(self, params: Floats, X: Features) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Importances:
    """What a scoring relies on.

    kind    what the values are
    values  one per feature, or one per name
    names   what the values belong to; None: the features
    steps   of features that are read as step functions: thresholds, and levels from below on
    """

    kind: str
    values: Floats
    names: tuple[str, ...] | None = None
    steps: Mapping[int, tuple[Floats, Floats]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each feature added to scores: base + the sum of a row is the score, up to rounding.

    kind    what the values are
    values  one row per document, one column per feature, or per name
    base    one per document; None where the values do not add up to the score
    names   of the columns; None: the features
    """

    kind: str
    values: Floats
    base: Floats | None
    names: tuple[str, ...] | None = None


class Network(NamedTuple):
    """relu((x - mean) / deviation W + b) v + c."""

    mean: Floats
    deviation: Floats
    W: Array
    b: Array
    v: Array
    c: float


class LibraryModel(NamedTuple):
    """Trees as the library that grew them writes them."""

    library: str
    text: str


class StageView(Protocol):
    """A model inside a cascade."""

    @property
    def name(self) -> str: ...

    @property
    def scoring(self) -> Scoring: ...

    @property
    def transform(self) -> MinMax | Standardize | None: ...


class Scoring(Protocol):
    """A fitted scorer as model files hold it: it scores, explains itself and can be exported.

    Attributes
    ----------
    n_features
        Features that it reads.
    by_query
        Whether a score depends on the query's other documents.
    export_kinds
        Forms in which another program can take it, the usual one first: "linear", "network",
        "trees", "lightgbm", "xgboost".  Empty where only its stages can be exported.
    coefficients, network, library_model
        What it is made of, where it is that: weights and intercept, the layers of a network, the
        text of the library that grew it.
    params
        What a fit can go on from; None where none can.
    stages
        The models of a cascade by name.
    """

    @property
    def n_features(self) -> int: ...

    @property
    def by_query(self) -> bool: ...

    @property
    def export_kinds(self) -> tuple[str, ...]: ...

    @property
    def coefficients(self) -> tuple[Floats, float] | None: ...

    @property
    def network(self) -> Network | None: ...

    @property
    def library_model(self) -> LibraryModel | None: ...

    @property
    def params(self) -> Floats | None: ...

    @property
    def stages(self) -> Mapping[str, StageView]: ...

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        """Return one score per document, by at most so many threads; None: all cores.

        offsets  where queries begin and end, for scorings `by_query`; None: all are one query's
        """
        ...

    def explain(self) -> Importances:
        """Return what it relies on."""
        ...

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return what each feature added to the scores of these documents."""
        ...

    def forest(self, source: str) -> Forest:
        """Return the trees of a scoring that is exported as "trees".

        source  what to call the model where its trees are more than thresholds and leaves
        """
        ...

    def to_dict(self) -> JsonObject:
        """Return the scoring as JSON can hold it, with its `kind`."""
        ...


class ScoringBase:
    """What most scorings are not: a cascade, linear, a network, or a library's trees."""

    by_query: ClassVar[bool] = False

    @property
    def coefficients(self) -> tuple[Floats, float] | None:
        return None

    @property
    def network(self) -> Network | None:
        return None

    @property
    def library_model(self) -> LibraryModel | None:
        return None

    @property
    def params(self) -> Floats | None:
        return None

    @property
    def stages(self) -> Mapping[str, StageView]:
        return {}

    def forest(self, source: str) -> Forest:
        raise AssertionError(f"{type(self).__name__} has no trees")
