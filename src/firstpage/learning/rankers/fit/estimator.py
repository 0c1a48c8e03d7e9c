"""What the functions of a fit take a ranker, its documents and its labels to be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias

from firstpage.core import Floats
from firstpage.data import Dataset
from firstpage.data.preferences import PreferencePairs
from firstpage.data.shards import Shards
from firstpage.evaluation.measures import MeasureLike
from firstpage.learning.models.scorings import Stage
from firstpage.learning.rankers.fit.progress import Record, Step
from firstpage.learning.scorers.registry import is_additive
from firstpage.learning.scorers.scorer import Scoring

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from scipy.sparse import sparray, spmatrix

Ties = Literal["share", "random", "resample"]
LearnsFrom = Literal["labels", "votes", "trees"]
"""What the objective of a fit reads: labels, votes on pairs, or labels through trees."""
Grid: TypeAlias = dict[str, list[Any]]
"""The values to try, by parameter."""
StepCallback = Callable[[Step], object]


class DataFrame(Protocol):
    """A frame of pandas or polars: a column per feature."""

    @property
    def columns(self) -> Any: ...
    @property
    def shape(self) -> tuple[int, int]: ...


Matrix: TypeAlias = "ArrayLike | sparray | spmatrix | DataFrame"
"""One row per document and one column per feature."""
Documents: TypeAlias = "Dataset | Shards | Matrix"
QueryIds: TypeAlias = Iterable[object]
Votes: TypeAlias = "PreferencePairs | ArrayLike"
Validation: TypeAlias = "Dataset | tuple[Matrix, ArrayLike, QueryIds] | tuple[Matrix, ArrayLike]"


class Estimator(Protocol):
    """The parameters, the demands on data and the fitted attributes of a ranker."""

    needs_preferences: ClassVar[bool]
    _weights_by_copying: ClassVar[bool]
    _supports_shards: ClassVar[bool]
    _shard_alternative: ClassVar[str]
    _uses_positions: ClassVar[bool]
    _orders_all: ClassVar[bool]
    _learns_from_votes: ClassVar[bool]

    k: int | None
    ties: Ties
    normalize: str | None
    impute: str | float | None
    patience: int | None
    seed: int
    threads: int | None
    warm_start: bool
    verbose: bool

    model_: Scoring
    training_: Record
    params_: Floats | None
    n_features_in_: int
    interrupted_: bool
    _memory: Any

    def compose(self, learns_from: LearnsFrom = "labels") -> Any: ...
    def validation_measure(self) -> MeasureLike: ...
    def get_params(self, deep: bool = True) -> dict[str, Any]: ...
    def predict(self, X: Documents, *, qid: QueryIds | None = None) -> Floats: ...
    def stage_for(self, data: Dataset | Shards) -> Stage: ...


def grows_trees(ranker: object) -> bool:
    """Return whether a ranker's scorer is trees, which read missing values and categories."""
    return is_additive(getattr(ranker, "scorer", "linear"))


def reads_missing(ranker: Estimator) -> bool:
    """Return whether features may be missing (NaN)."""
    return ranker.impute is not None or grows_trees(ranker)
