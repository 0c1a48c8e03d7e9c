"""What all scorings share: their explanations, and defaults of what few of them have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from firstpage.core import Floats

if TYPE_CHECKING:
    from firstpage.learning.scorers.forest import Forest

JsonObject: TypeAlias = dict[str, Any]
"""An object of a JSON file, such as a scoring in a model file."""


@dataclass(frozen=True, eq=False)
class Importances:
    """The importance of each input of a scoring.

    Attributes
    ----------
    kind : str
        What the values are.
    values : array of float
        One value per feature, or per name.
    names : tuple of str or None
        What the values belong to; None: the features.
    steps : mapping of int to tuple of arrays
        For features that are read as step functions: the thresholds, and the levels from below the
        first threshold upward.
    """

    kind: str
    values: Floats
    names: tuple[str, ...] | None = None
    steps: Mapping[int, tuple[Floats, Floats]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Contributions:
    """What each feature adds to the score: base + the sum of a row is the score, up to rounding.

    Attributes
    ----------
    kind : str
        What the values are.
    values : array of float
        One row per document, and one column per feature or per name.
    base : array of float or None
        One number per document; None where the values do not sum to the score.
    names : tuple of str or None
        The names of the columns; None: the features.
    """

    kind: str
    values: Floats
    base: Floats | None
    names: tuple[str, ...] | None = None


class LibraryModel(NamedTuple):
    """Trees in the text format of the library that grew them."""

    library: str
    text: str


class ScoringBase:
    """Defaults of the optional properties: no coefficients, network, library model or stages."""

    @property
    def by_query(self) -> bool:
        return False

    @property
    def reads_missing(self) -> bool:
        return False

    @property
    def coefficients(self) -> tuple[Floats, float] | None:
        return None

    @property
    def network(self) -> Any:
        return None

    @property
    def library_model(self) -> LibraryModel | None:
        return None

    @property
    def params(self) -> Floats | None:
        return None

    @property
    def stages(self) -> Mapping[str, Any]:
        return {}

    def forest(self, source: str) -> Forest:
        raise AssertionError(f"{type(self).__name__} has no trees")
