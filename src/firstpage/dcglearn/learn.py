"""DCGLearn: the weights of a utility from preferences over rankings (Zhou et al. 2013)."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

import numpy as np

from firstpage.data.preferences.files import PreferenceFiles, read_preferences
from firstpage.data.preferences.preferences import Preferences, Unjudged
from firstpage.data.preferences.utility import Form, Utility
from firstpage.dcglearn.pairs import Pairs, check_parameters, check_size, encode
from firstpage.dcglearn.segments import Segment, learn_segments
from firstpage.dcglearn.shard import How, PreferenceShard
from firstpage.dcglearn.sharded import Sharded, job_of, surveyed
from firstpage.dcglearn.solver import Optimum
from firstpage.dcglearn.validation import (
    GRID,
    Held,
    Match,
    Path,
    Problem,
    Recipe,
    agreement,
    differences,
    folds,
    validated,
)
from firstpage.dcglearn.weights import cone, factors, utility_of
from firstpage.engine.addresses import working
from firstpage.errors import DataError, FirstpageWarning
from firstpage.types import Array, Floats, Ints, Progress

FALLBACK = 1.0  # C where there is too little to choose it by


@dataclass(eq=False)
class DCGLearn:
    """Learn what a document of each grade is worth at each place.

    K         places that count
    L         grades; None: those that occur (see `Preferences.from_grades`)
    C         cost of a preference that is missed; "cv": by cross-validation over `grid`
    C_tie     cost of rankings that people find equal and the measure does not; None: as C
    decreasing    a step from grade to grade is worth no more at a later place
    nonnegative   penalize the worth above the worst grade, instead of that around the mean
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
        valid: Preferences | None = None, progress: Progress | None = None, engine: Any = None,
        **more: Any,
    ) -> DCGLearn:  # fmt: skip
        """From `Preferences`, or lists of grades and outcomes as `Preferences.from_grades` takes
        them; or from a file, or a folder of files, each of which is worked on where it is.

        `valid`: preferences by which to choose C, instead of cross-validation.  `progress` is told
        (done, total) while C is chosen.  `engine`: where to work on a folder, "threads",
        "dask://host:port" or a Dask Client.
        """
        check_parameters(**self.get_params())
        given = opened(left) if isinstance(left, (str, os.PathLike)) else left
        fresh = replace(self)  # what fails leaves an older fit as it was
        if isinstance(given, PreferenceFiles):
            fresh._fit_files(given, valid, progress, engine)
        elif engine is not None:
            raise DataError("engine goes with a folder of files; these preferences are in memory.")
        elif isinstance(given, Preferences):
            fresh._fit_held(given, valid, progress)
        else:
            fresh._fit_held(Preferences.from_grades(given, right, outcome, **more), valid, progress)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update({k: v for k, v in vars(fresh).items() if k.endswith("_")})
        return self

    def _fit_held(
        self, given: Preferences, valid: Preferences | None, progress: Progress | None
    ) -> None:
        if not len(given):
            raise DataError(f"{given.source}: there is no pair to learn from.")
        self.given_ = given.with_grades(self._grades(given.grades, given.source))
        self.recipe_ = self._recipe(self.given_.grades)
        self.pairs_ = encode(self.given_, self.K, len(self.given_.grades), self.unjudged)
        held = Held(self.given_, self.pairs_, self.recipe_, self.folds, self.seed)
        self.groups_: Array = held.groups  # what stays together: the pairs of one query
        self._fit(held, valid, progress)
        self.segments_ |= learn_segments(
            self.given_, self.pairs_, self.recipe_, self.C_, self.pooling, self.optimum_,
            list(self._folds()) if self.given_.segment is not None else [],
        )  # fmt: skip

    def _fit_files(
        self,
        files: PreferenceFiles,
        valid: Preferences | None,
        progress: Progress | None,
        engine: Any,
    ) -> None:
        with working(engine, self.threads) as place, closing(job_of(files, place)) as job:
            surveys, seen = surveyed(job)
            grades = self._grades(seen, files.source)
            self.recipe_ = self._recipe(grades)
            how = How(
                grades, self.K, self.unjudged, tuple(self.recipe_.margins.tolist()), self.folds,
                self.seed,
            )  # fmt: skip
            told = tuple(job.map(PreferenceShard.told, how))
            sharded = Sharded(files.source, job, self.recipe_, how, surveys, told)
            self._fit(sharded, valid, progress)
        self.files_, self.alike_ = files, sharded.alike

    def _fit(self, problem: Problem, valid: Preferences | None, progress: Progress | None) -> None:
        """The one way, wherever the pairs are."""
        self.fitted_with_, self.unjudged_ = self.get_params(), self.unjudged
        _check_preferences(problem, self.K)
        for note in problem.notes():
            self._say(note)
        self.grades_ = problem.grades
        self.undetermined_: list[int] = (np.flatnonzero(problem.same) + 1).tolist()
        self.segments_: dict[str, Segment] = {}
        self.path_ = self._path(problem, valid, progress)
        self.C_: float = self._cost()
        self._keep(self.recipe_.fit(problem.sums(), self.C_), problem)

    def __getattr__(self, name: str) -> Any:
        """Only asked for what is not there."""
        if "files_" in vars(self):
            raise AttributeError(
                f"DCGLearn learned over files, and has no {name}: read them first."
            )
        if name.endswith("_") and not name.startswith("_"):
            raise AttributeError(f"DCGLearn has no {name} before it is fitted; call fit first.")
        raise AttributeError(f"DCGLearn has no {name!r}")

    @property
    def places_(self) -> int:
        """K as it was when the measure was learned."""
        return self.recipe_.cone.places

    def _recipe(self, grades: tuple[int, ...]) -> Recipe:
        """The problem without its pairs."""
        check_size(self.K, len(grades))
        shape = cone(self.K, len(grades), self.nonnegative, self.decreasing)
        return Recipe(shape, np.array([1.0, 1.0, self.strong]), self.C_tie, self.threads)

    def _grades(self, found: tuple[int, ...], source: str) -> tuple[int, ...]:
        if self.grades is not None:
            return tuple(self.grades)
        if self.L is None:
            return found
        wanted = tuple(range(found[0], found[0] + self.L))
        if found[-1] > wanted[-1]:
            raise DataError(
                f"{source}: the grades go from {found[0]} to {found[-1]}, which is more than "
                f"L = {self.L}; leave L out, or name the grades."
            )
        return wanted

    def _encoded(self, given: Preferences) -> Pairs:
        """Other preferences, read as those that were learned from."""
        same = given.with_grades(self.grades_)
        return encode(same, self.places_, len(same.grades), self.unjudged_)

    def _path(
        self, problem: Problem, valid: Preferences | None, progress: Progress | None
    ) -> Path | None:
        if self.C != "cv":
            return None
        grid = sorted(self.grid)
        try:
            if valid is not None:
                return validated(self.recipe_, problem.sums(), self._encoded(valid), grid)
            return problem.cross_validated(grid, progress)
        except DataError as error:
            self._say(f"C = {FALLBACK:g}: {error}", 6)
            return None

    def _say(self, note: str, above: int = 5) -> None:
        """What a person should know; `above` finds the line that called `fit`."""
        warnings.warn(note, FirstpageWarning, stacklevel=above)

    def _folds(self) -> Iterator[tuple[Ints, Ints]]:
        if len(np.unique(self.groups_)) > 1:
            yield from folds(self.groups_, self.folds, self.seed)

    def _cost(self) -> float:
        if self.C != "cv":
            return float(self.C)
        return FALLBACK if self.path_ is None else self.path_.best

    def _keep(self, optimum: Optimum, problem: Problem) -> None:
        self.optimum_ = optimum
        self.weights_: Floats = optimum.table.reshape(self.places_, -1)
        found = factors(self.weights_)
        self.gains_, self.discounts_, self.share_ = found.gains, found.discounts, found.share
        self.objective_, self.gap_ = optimum.objective, optimum.gap
        of_weights, of_gains = problem.matches([self.weights_, found.table])
        self.matches_: dict[Form, Match] = {"weights": of_weights, "gains": of_gains}
        self.accuracy_ = of_weights.accuracy
        self.counts_ = {
            "pairs": len(problem), "ties": problem.ties,
            "without_difference": len(problem) - problem.used,
        }  # fmt: skip

    @property
    def relative_(self) -> bool:
        """Whether discounts are known less the last one only: all pairs order the same grades."""
        if "files_" in vars(self):
            return bool(self.alike_)
        return self.pairs_[:1000].alike and self.pairs_.alike  # some tell it, nearly always

    @property
    def utility_(self) -> Utility:
        """The learned measure, to save or to measure with."""
        parts = {name: part.utility for name, part in self.segments_.items()}
        return Utility(
            self.grades_, self.weights_, self.gains_, self.discounts_, "gains", self.about(), parts,
        )  # fmt: skip

    def about(self) -> dict[str, Any]:
        """How it came to be, as the file says it."""
        asked = self.fitted_with_
        found: dict[str, Any] = {
            "method": "DCGLearn", **self.counts_, "C": self.C_,
            "C_tie": float(self.recipe_.costs(self.C_)[0]), "decreasing": asked["decreasing"],
            "nonnegative": asked["nonnegative"], "strong": float(self.recipe_.margins[2]),
            "unjudged": self.unjudged_, "accuracy": self.accuracy_,
            "accuracy_of_gains": self.matches_["gains"].accuracy,
            "rank_one_share": self.share_, "objective": self.objective_, "gap": self.gap_,
            "discounts": "relative to the last place" if self.relative_ else "absolute",
            "undetermined_places": self.undetermined_,
        }  # fmt: skip
        if self.path_ is not None:
            found["validated"] = {
                "C": list(self.path_.costs), "accuracy": self.path_.means.tolist(),
                "accuracy_of_gains": self.path_.of_gains.mean(axis=0).tolist(),
            }  # fmt: skip
        return found

    def agreement(self, given: Preferences | None = None, form: Form = "weights") -> Match:
        """How far the measure agrees with preferences: those learned from, or others."""
        if given is None:
            return self.matches_[form]
        table = self.weights_ if form == "weights" else np.outer(self.discounts_, self.gains_)
        return agreement(self._encoded(given), table)

    def along(self, grid: Sequence[float] | None = None) -> dict[float, Utility]:
        """The regularization path: the measure for each C, learned from the same pairs."""
        costs = sorted(float(c) for c in (self.grid if grid is None else grid))
        return {
            c: utility_of(
                self.grades_, optimum.table.reshape(self.places_, -1),
                {"C": c, "objective": optimum.objective, "gap": optimum.gap},
            )
            for c, optimum in zip(costs, self.recipe_.path(self.pairs_, costs), strict=True)
        }  # fmt: skip

    def score(self, given: Preferences) -> float:
        """The share of preferences that the measure agrees with."""
        return self.agreement(given).accuracy

    def decision_function(self, given: Preferences) -> Floats:
        """Worth of the left ranking less that of the right one, a number a pair."""
        same = given.with_grades(self.grades_)
        left, right = same.encode(self.places_, self.unjudged_)
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


def opened(path: str | os.PathLike[str]) -> Preferences | PreferenceFiles:
    """A file is read; those of a folder stay where they are."""
    return PreferenceFiles.from_paths(path) if os.path.isdir(path) else read_preferences(path)


def _check_preferences(problem: Problem, places: int) -> None:
    if not problem.used:
        raise DataError(
            f"{problem.source}: no pair has both a weight and a difference of grades in the first "
            f"{places} places; nothing can be learned."
        )
    if problem.only_ties:
        raise DataError(f"{problem.source}: all pairs are ties; a measure needs some preferences.")
