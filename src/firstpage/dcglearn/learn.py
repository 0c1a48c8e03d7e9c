"""DCGLearn: the weights of a utility from preferences over rankings (Zhou et al. 2013)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

import numpy as np

from firstpage.data.preferences import Preferences, Unjudged, spread
from firstpage.data.utility import Form, Utility
from firstpage.dcglearn.checks import check_parameters, check_size, notes
from firstpage.dcglearn.cone import cone
from firstpage.dcglearn.factor import factors
from firstpage.dcglearn.newton import Optimum
from firstpage.dcglearn.pairs import Pairs, encode
from firstpage.dcglearn.segments import Segment, learn_segments
from firstpage.dcglearn.validation import (
    GRID,
    Match,
    Path,
    Recipe,
    Tick,
    agreement,
    cross_validated,
    differences,
    folds,
    validated,
)
from firstpage.errors import DataError, FirstpageWarning
from firstpage.types import Array, Floats, Ints

FALLBACK = 1.0  # C where there is too little to choose it by


@dataclass(eq=False)
class DCGLearn:
    """Learn what a document of each grade is worth at each place.

    K         places that count
    L         grades; None: those that occur (see `Preferences.of`)
    C         cost of a preference that is missed; "cv": by cross-validation over `grid`
    C_tie     cost of rankings that people find equal and the measure does not; None: as C
    decreasing    a step from grade to grade is worth no more at a later place
    nonnegative   penalise the worth above the worst grade, instead of that around the mean
    strong    margin that "much better" asks for (1: as "better")
    unjudged  documents without a grade: "worst", "condense" (left out) or "refuse"
    grades    whole numbers upward, if they are to be named
    pooling   how far a segment's measure is drawn to that of all: 1 fully, 0 not at all
    threads   None: all cores

    After `fit`: utility_, weights_ (K x L), gains_, discounts_, share_ (of rank one), C_, path_,
    accuracy_, objective_, gap_ (the optimum is not lower than objective_ - gap_), segments_.
    """

    K: int = 10
    L: int | None = None
    C: float | Literal["cv"] = "cv"
    C_tie: float | None = None
    _: KW_ONLY
    decreasing: bool = False
    nonnegative: bool = False
    strong: float = 1.0
    unjudged: Unjudged = "worst"
    grades: Sequence[int] | None = None
    pooling: float = 1.0
    grid: Sequence[float] = GRID
    folds: int = 5
    seed: int = 0
    threads: int | None = None

    def fit(
        self, left: Any, right: Any = None, outcome: Any = None, *,
        valid: Preferences | None = None, tick: Tick | None = None, **more: Any,
    ) -> DCGLearn:  # fmt: skip
        """From `Preferences`, or lists of grades and outcomes as `Preferences.of` takes them.

        `valid`: preferences by which to choose C, instead of cross-validation.  `tick` is told
        (done, total) while C is chosen.
        """
        check_parameters(**self.get_params())
        given = (
            left if isinstance(left, Preferences) else Preferences.of(left, right, outcome, **more)
        )
        if not len(given):
            raise DataError(f"{given.source}: there is no pair to learn from.")
        fresh = replace(self)  # what fails leaves an older fit as it was
        fresh._fit(given, valid, tick)
        vars(self).update({k: v for k, v in vars(fresh).items() if k.endswith("_")})
        return self

    def _fit(self, given: Preferences, valid: Preferences | None, tick: Tick | None) -> None:
        self.fitted_with_ = self.get_params()
        self.given_ = given.regraded(self._grades(given))
        check_size(self.K, len(self.given_.grades))
        self.unjudged_ = self.unjudged
        self.recipe_ = self._recipe()
        self.pairs_ = self._encoded(self.given_)
        self._check_preferences()
        for note in notes(self.given_, self.pairs_):
            self._say(note)
        groups = self.groups_
        self.path_ = self._path(groups, valid, tick)
        self.C_ = self._cost()
        sums = self.recipe_.sums(self.pairs_)
        self._keep(self.recipe_.fit(sums, self.C_))
        self.segments_: dict[str, Segment] = learn_segments(
            self.given_, self.pairs_, self.recipe_, self.C_, self.pooling, self.optimum_,
            list(self._folds(groups)) if self.given_.segment is not None else [],
        )  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        """Only asked for what is not there."""
        if name.endswith("_") and not name.startswith("_"):
            raise AttributeError(f"DCGLearn has no {name} before it is fitted; call fit first.")
        raise AttributeError(f"DCGLearn has no {name!r}")

    @property
    def places_(self) -> int:
        """K as it was when the measure was learned."""
        return self.recipe_.cone.places

    def _recipe(self) -> Recipe:
        """The problem without its pairs."""
        shape = cone(self.K, len(self.given_.grades), self.nonnegative, self.decreasing)
        return Recipe(shape, np.array([1.0, 1.0, self.strong]), self.C_tie, self.threads)

    def _grades(self, given: Preferences) -> tuple[int, ...]:
        if self.grades is not None:
            return tuple(self.grades)
        if self.L is None:
            return given.grades
        first = given.grades[0]
        wanted = tuple(range(first, first + self.L))
        if given.grades[-1] > wanted[-1]:
            raise DataError(
                f"{given.source}: the grades go from {first} to {given.grades[-1]}, which is more "
                f"than L = {self.L}; leave L out, or name the grades."
            )
        return wanted

    def _encoded(self, given: Preferences) -> Pairs:
        return encode(given, self.places_, len(given.grades), self.unjudged_)

    def _check_preferences(self) -> None:
        if not len(self.pairs_):
            raise DataError(
                f"{self.given_.source}: no pair has both a weight and a difference of grades in "
                f"the first {self.K} places; nothing can be learned."
            )
        if self.pairs_.ties == len(self.pairs_):
            raise DataError(
                f"{self.given_.source}: all pairs are ties; a measure needs some preferences."
            )

    @property
    def groups_(self) -> Array:
        """What stays together in folds and resampling: the pairs of one query."""
        rows = self.pairs_.rows
        query = self.given_.query
        return spread(None if query is None else query[rows], len(rows))

    def _path(self, groups: Array, valid: Preferences | None, tick: Tick | None) -> Path | None:
        if self.C != "cv":
            return None
        try:
            if valid is not None:
                held = self._encoded(valid.regraded(self.given_.grades))
                return validated(self.recipe_, self.pairs_, held, sorted(self.grid))
            return cross_validated(
                self.recipe_, self.pairs_, groups, sorted(self.grid), self.folds, self.seed, tick
            )
        except DataError as error:
            self._say(f"C = {FALLBACK:g}: {error}", 5)
            return None

    def _say(self, note: str, above: int = 4) -> None:
        """What a person should know; `above` finds the line that called `fit`."""
        warnings.warn(note, FirstpageWarning, stacklevel=above)

    def _folds(self, groups: Array) -> Iterator[tuple[Ints, Ints]]:
        if len(np.unique(groups)) > 1:
            yield from folds(groups, self.folds, self.seed)

    def _cost(self) -> float:
        if self.C != "cv":
            return float(self.C)
        return FALLBACK if self.path_ is None else self.path_.best

    def _keep(self, optimum: Optimum) -> None:
        self.optimum_ = optimum
        self.weights_: Floats = optimum.table.reshape(self.places_, -1)
        found = factors(self.weights_)
        self.gains_, self.discounts_, self.share_ = found.gains, found.discounts, found.share
        self.objective_, self.gap_ = optimum.objective, optimum.gap
        self.accuracy_ = self.agreement().accuracy

    @property
    def relative_(self) -> bool:
        """Whether discounts are known less the last one only: all pairs order the same grades."""
        some = self.pairs_[:1000]  # enough to see it, nearly always
        return _same_grades(some) and _same_grades(self.pairs_)

    @property
    def utility_(self) -> Utility:
        """The learned measure, to save or to measure with."""
        parts = {name: part.utility for name, part in self.segments_.items()}
        return Utility(
            self.given_.grades, self.weights_, self.gains_, self.discounts_, "gains",
            self.about(), parts,
        )  # fmt: skip

    def about(self) -> dict[str, Any]:
        """How it came to be, as the file says it."""
        pairs, given, asked = self.pairs_, self.given_, self.fitted_with_
        found: dict[str, Any] = {
            "method": "DCGLearn", "pairs": len(given), "ties": int(given.tied.sum()),
            "without_difference": len(given) - len(pairs), "C": self.C_,
            "C_tie": float(self.recipe_.costs(self.C_)[0]), "decreasing": asked["decreasing"],
            "nonnegative": asked["nonnegative"], "strong": float(self.recipe_.margins[2]),
            "unjudged": self.unjudged_, "accuracy": self.accuracy_,
            "accuracy_of_gains": self.agreement(form="gains").accuracy,
            "rank_one_share": self.share_, "objective": self.objective_, "gap": self.gap_,
            "discounts": "relative to the last place" if self.relative_ else "absolute",
        }  # fmt: skip
        if self.path_ is not None:
            found["validated"] = {
                "C": list(self.path_.costs), "accuracy": self.path_.means.tolist(),
                "accuracy_of_gains": self.path_.of_gains.mean(axis=0).tolist(),
            }  # fmt: skip
        return found

    def agreement(self, given: Preferences | None = None, form: Form = "weights") -> Match:
        """How far the measure agrees with preferences: those learned from, or others."""
        pairs = self.pairs_ if given is None else self._encoded(given.regraded(self.given_.grades))
        table = self.weights_ if form == "weights" else np.outer(self.discounts_, self.gains_)
        return agreement(pairs, table)

    def along(self, grid: Sequence[float] | None = None) -> dict[float, Utility]:
        """The regularisation path: the measure for each C, learned from the same pairs."""
        costs = sorted(float(c) for c in (self.grid if grid is None else grid))
        found = {}
        for c, optimum in zip(costs, self.recipe_.path(self.pairs_, costs), strict=True):
            table = optimum.table.reshape(self.places_, -1)
            best = factors(table)
            about = {"C": c, "objective": optimum.objective, "gap": optimum.gap}
            found[c] = Utility(
                self.given_.grades, table, best.gains, best.discounts, "gains", about
            )  # fmt: skip
        return found

    def score(self, given: Preferences) -> float:
        """The share of preferences that the measure agrees with."""
        return self.agreement(given).accuracy

    def decision_function(self, given: Preferences) -> Floats:
        """Worth of the left ranking less that of the right one, a number a pair."""
        same = given.regraded(self.given_.grades)
        left, right = same.encoded(self.places_, self.unjudged_)
        kind = np.zeros(len(left), np.int8)
        every = Pairs(left, right, kind, same.weight, len(same.grades), np.arange(len(left)))
        return differences(every, self.weights_)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> DCGLearn:
        for name, value in params.items():
            if name not in self._names():
                raise DataError(f"DCGLearn has no parameter {name!r}; it has {self._names()}.")
            setattr(self, name, value)
        return self

    def with_params(self, **params: Any) -> DCGLearn:
        """An unfitted copy with other parameters."""
        return replace(self, **params)

    @classmethod
    def _names(cls) -> list[str]:
        kept: Mapping[str, Any] = cls.__dataclass_fields__
        return [name for name, f in kept.items() if f.init and name != "_"]


def _same_grades(pairs: Pairs) -> bool:
    """Whether both rankings of every pair have the same grades, in whatever order."""
    return bool((np.sort(pairs.left, axis=1) == np.sort(pairs.right, axis=1)).all())
