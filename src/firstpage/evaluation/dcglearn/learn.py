"""DCGLearn: gains and discounts of DCG from preferences over rankings (Zhou et al. 2013)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, Literal

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints, Progress, warn
from firstpage.data.preferences import (
    Form,
    Preferences,
    Unjudged,
    Utility,
    factorize,
    read_preferences,
)
from firstpage.evaluation.dcglearn.pairs import (
    Pairs,
    check_parameters,
    check_size,
    encode,
    never_differs,
    notes,
    unjudged_fraction,
)
from firstpage.evaluation.dcglearn.segments import Segment, learn_segments
from firstpage.evaluation.dcglearn.solver import Optimum
from firstpage.evaluation.dcglearn.validation import (
    GRID,
    LearningSpec,
    PreferenceAgreement,
    ValidationCurve,
    cross_validation_curve,
    differences,
    folds,
    preference_agreement,
    validation_curve,
)
from firstpage.evaluation.dcglearn.weights import (
    rank_one_factors,
    utility_from_weights,
    weight_cone,
)

DEFAULT_C = 1.0  # used where cross-validation is not possible


@dataclass(eq=False)
class DCGLearn:
    """Learn the gains and discounts of DCG from preferences over rankings.

    Each training pair consists of two rankings of graded documents and a statement which of them
    is better, or that they are equally good.  A utility assigns a weight to every grade at every
    position, and a ranking the sum of the weights of its documents.  DCGLearn solves::

        min |w|^2 + C * sum of xi^2 over preferences + C_tie * sum of xi^2 over ties

    subject to w . (left - right) >= 1 - xi for preferences, ``|w . (left - right)| <= 1 + xi`` for
    ties, and weights that do not decrease with the grade.  The problem is convex and is solved to
    a certified optimum.  Gains and discounts are the factors of the rank-one matrix nearest to the
    weights.

    Parameters
    ----------
    K : int, default 10
        Number of positions that the measure counts.
    L : int or None, default None
        Number of grades.  None takes the grades that occur (see `Preferences.from_grades`).
    C : float or "cv", default "cv"
        Cost of a violated preference.  "cv" chooses it from `grid` by cross-validation over
        queries, or by the validation pairs that `fit` receives.
    C_tie : float or None, default None
        Cost of a violated tie.  None takes C.
    decreasing : bool, default False
        Whether the step from a grade to the next must not grow with the position, which makes
        discounts non-increasing.
    nonnegative : bool, default False
        Whether to penalize the weights relative to the worst grade instead of those relative to
        the mean over grades.
    strong_margin : float, default 1.0
        Margin of a preference "much better"; the margin of "better" is 1.
    unjudged : {"worst", "condense", "refuse"}, default "worst"
        Documents without a grade count as the worst grade, are removed from the list, or are an
        error.  The worst grade is 0 where all grades of the data are above 0.
    grades : sequence of int or None, default None
        All grades in ascending order.  None takes those of the data, and 0 where documents are
        unjudged and all grades are above 0.
    pooling : float, default 1.0
        How strongly the measure of a segment is shrunk toward that of all pairs, from 0 (not at
        all) to 1.
    grid : sequence of float, default (0.001, 0.01, ..., 10000.0)
        Values of C to choose from.
    folds : int, default 5
        Number of cross-validation folds.
    seed : int, default 0
        Seed of the random assignment of queries to folds.
    threads : int or None, default None
        Number of threads.  None takes all cores.

    Attributes
    ----------
    utility_ : Utility
        The learned measure, to save or to evaluate with.
    weights_ : ndarray of shape (K, L)
        Weight of each grade at each position; 0 for the worst grade.
    gains_ : ndarray of shape (L,)
        Gain per grade, from 0 for the worst to 1 for the best.
    discounts_ : ndarray of shape (K,)
        Discount per position; the first is 1 (or the largest, where the first is 0).
    rank_one_fraction_ : float
        Fraction of the squared norm of the weights that gains times discounts explain.
    C_ : float
        The C that was used.
    validation_curve_ : ValidationCurve or None
        Accuracy on held-out pairs for each C; None where C was given or could not be validated.
    accuracy_ : float
        Fraction of the training preferences that the weights agree with.
    agreements_ : dict of str to PreferenceAgreement
        Agreement with the training pairs, for the forms "weights" and "gains".
    objective_ : float
        Value of the objective.
    gap_ : float
        Certified optimality gap: the optimum is at least ``objective_ - gap_``.
    grades_ : tuple of int
        Grades in ascending order.
    positions_ : int
        K of the fit.
    undetermined_positions_ : list of int
        Positions, counted from 1, at which no pair differs; their discounts are 0.
    relative_discounts_ : bool
        Whether discounts are determined only relative to the last one.
    segments_ : dict of str to Segment
        Measure of each segment that the preferences name.
    counts_ : dict of str to int
        Numbers of pairs, of ties and of pairs without a difference.
    preferences_ : Preferences
        The training preferences.
    pairs_ : Pairs
        The encoded training pairs.
    groups_ : ndarray
        Query number of each encoded pair.
    optimum_ : Optimum
        Solution of the learning problem.
    spec_ : LearningSpec
        The learning problem without its pairs.
    fit_params_ : dict
        Parameters of the fit, by name.
    unjudged_ : str
        Treatment of unjudged documents in the fit.

    References
    ----------
    .. [1] K. Zhou, H. Zha, Y. Chang, G.-R. Xue: Learning the Gain Values and Discount Factors of
       Discounted Cumulative Gains. IEEE Transactions on Knowledge and Data Engineering 26(2),
       2014 (online 2013).

    Examples
    --------
    >>> import firstpage as fp
    >>> better = [[2, 0], [1, 0], [2, 1], [2, 0], [0, 2]]  # grades by position
    >>> worse = [[0, 2], [0, 1], [1, 2], [1, 1], [1, 0]]
    >>> learner = fp.dcglearn.DCGLearn(K=2, C=100.0).fit(better, worse)
    >>> learner.accuracy_
    1.0
    >>> [round(float(gain), 1) for gain in learner.gains_]
    [0.0, 0.2, 1.0]
    >>> [round(float(discount), 1) for discount in learner.discounts_]
    [1.0, 0.5]
    """

    K: int = 10
    L: int | None = None
    C: float | Literal["cv"] = "cv"
    C_tie: float | None = None
    _: KW_ONLY
    decreasing: bool = False
    nonnegative: bool = False
    strong_margin: float = 1.0
    unjudged: Unjudged = "worst"
    grades: Sequence[int] | None = None
    pooling: float = 1.0
    grid: Sequence[float] = GRID
    folds: int = 5
    seed: int = 0
    threads: int | None = None

    def fit(
        self,
        left: Any,
        right: Any = None,
        outcome: Any = None,
        *,
        valid: Preferences | None = None,
        progress: Progress | None = None,
        **more: Any,
    ) -> DCGLearn:
        """Learn from preferences.

        Parameters
        ----------
        left : Preferences, path or sequence of sequences of int
            The preferences, a file of preferences, or the grades of the left rankings.
        right : sequence of sequences of int, optional
            Grades of the right rankings, where `left` has grades.
        outcome : sequence of int, optional
            2 or 1 where left is better, 0 for a tie, -1 or -2 where right is better, where `left`
            has grades.  Without it left is better in every pair.
        valid : Preferences, optional
            Preferences by which to choose C ("cv"), instead of cross-validation.
        progress : callable, optional
            Called with (done, total) while C is chosen.
        **more
            Further arguments of `Preferences.from_grades`, where `left` has grades: weight, query,
            segment, grades.

        Returns
        -------
        DCGLearn
            This object.

        Raises
        ------
        DataError
            If a parameter is invalid, or nothing can be learned from the preferences.
        """
        check_parameters(**self.get_params())
        self._check_valid(valid)
        if isinstance(left, (str, os.PathLike)):
            left = read_preferences(left, grades=self.grades)
        if isinstance(left, Preferences):
            _refuse_arguments(right=right, outcome=outcome, **more)
        else:
            left = Preferences.from_grades(left, right, outcome, **{"grades": self.grades, **more})
        fresh = replace(self)  # a fit that fails must not change this object
        fresh._fit(left, valid, progress)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        vars(self).update({k: v for k, v in vars(fresh).items() if k.endswith("_")})
        return self

    def _check_valid(self, valid: object) -> None:
        if valid is None:
            return
        if not isinstance(valid, Preferences):
            raise DataError(
                "valid must be Preferences; read a file with read_preferences; got "
                f"{type(valid).__name__}."
            )
        if self.C != "cv":
            raise DataError(f"valid chooses C, which is {self.C}; omit valid, or use C='cv'.")

    def _fit(
        self, preferences: Preferences, valid: Preferences | None, progress: Progress | None
    ) -> None:
        """Choose C and solve."""
        if not len(preferences):
            raise DataError(f"{preferences.source}: there are no pairs to learn from.")
        self.fit_params_, self.unjudged_ = self.get_params(), self.unjudged
        self.preferences_ = preferences.with_grades(self._resolve_grades(preferences))
        self.grades_ = self.preferences_.grades
        self.spec_ = self._spec(self.grades_)
        self.pairs_ = encode(self.preferences_, self.K, len(self.grades_), self.unjudged)
        _check_pairs(preferences.source, self.pairs_, self.K)
        for note in notes(self.preferences_, self.pairs_):
            self._warn(note)
        query = self.preferences_.query
        self.groups_: Array = factorize(
            None if query is None else query[self.pairs_.rows], len(self.pairs_)
        )
        undetermined = np.flatnonzero(never_differs(self.pairs_)) + 1
        self.undetermined_positions_: list[int] = undetermined.tolist()
        self.validation_curve_ = self._validate(valid, progress)
        self.C_: float = self._cost()
        self._set_solution(self.spec_.fit(self.spec_.sums(self.pairs_), self.C_))
        self.segments_: dict[str, Segment] = learn_segments(
            self.preferences_,
            self.pairs_,
            self.spec_,
            self.C_,
            self.pooling,
            self.optimum_,
            list(self._folds()) if self.preferences_.segment is not None else [],
        )

    def __getattr__(self, name: str) -> Any:
        """Explain why a fitted attribute is missing."""
        if name.endswith("_") and not name.startswith("_"):
            raise AttributeError(f"DCGLearn has no {name} before it is fitted; call fit first.")
        raise AttributeError(f"DCGLearn has no {name!r}")

    @property
    def positions_(self) -> int:
        """K of the fit."""
        return self.spec_.cone.positions

    def _spec(self, grades: tuple[int, ...]) -> LearningSpec:
        """Return the learning problem without its pairs."""
        check_size(self.K, grades)
        cone = weight_cone(self.K, len(grades), self.nonnegative, self.decreasing)
        return LearningSpec(
            cone, np.array([1.0, 1.0, self.strong_margin]), self.C_tie, self.threads
        )

    def _resolve_grades(self, preferences: Preferences) -> tuple[int, ...]:
        """Return all grades; unjudged documents have grade 0 where all others are above it."""
        if self.grades is not None:
            return tuple(self.grades)
        seen = preferences.grades
        unjudged = unjudged_fraction(preferences, self.K) > 0
        below = unjudged and self.unjudged != "refuse" and seen[0] > 0
        if self.L is None:
            return (0, *seen) if below else seen
        first = 0 if below and seen[-1] < self.L else seen[0]
        grades = tuple(range(first, first + self.L))
        if seen[-1] > grades[-1]:
            raise DataError(
                f"{preferences.source}: the grades range from {seen[0]} to {seen[-1]}, which is "
                f"more than L = {self.L}; omit L, or pass grades."
            )
        return grades

    def _encode(self, preferences: Preferences) -> Pairs:
        """Encode other preferences like those that were learned from."""
        regraded = preferences.with_grades(self.grades_)
        return encode(regraded, self.positions_, len(regraded.grades), self.unjudged_)

    def _validate(
        self, valid: Preferences | None, progress: Progress | None
    ) -> ValidationCurve | None:
        if self.C != "cv":
            return None
        grid = sorted(self.grid)
        try:
            if valid is not None:
                return validation_curve(self.spec_, self.pairs_, self._encode(valid), grid)
            return cross_validation_curve(
                self.spec_, self.pairs_, self.groups_, grid, self.folds, self.seed, progress
            )
        except DataError as error:
            self._warn(f"C = {DEFAULT_C:g}: {error}")
            return None

    def _warn(self, note: str) -> None:
        warn(note)

    def _folds(self) -> Iterator[tuple[Ints, Ints]]:
        if len(np.unique(self.groups_)) > 1:
            yield from folds(self.groups_, self.folds, self.seed)

    def _cost(self) -> float:
        if self.C != "cv":
            return float(self.C)
        return DEFAULT_C if self.validation_curve_ is None else self.validation_curve_.best

    def _set_solution(self, optimum: Optimum) -> None:
        self.optimum_ = optimum
        self.weights_: Floats = optimum.table.reshape(self.positions_, -1)
        nearest = rank_one_factors(self.weights_)
        self.gains_, self.discounts_ = nearest.gains, nearest.discounts
        self.rank_one_fraction_ = nearest.rank_one_fraction
        self.objective_, self.gap_ = optimum.objective, optimum.gap
        of_weights, of_gains = (
            preference_agreement(self.pairs_, table) for table in (self.weights_, nearest.table)
        )
        self.agreements_: dict[Form, PreferenceAgreement] = {
            "weights": of_weights,
            "gains": of_gains,
        }
        self.accuracy_ = of_weights.accuracy
        self.counts_ = {
            "pairs": len(self.preferences_),
            "ties": int(self.preferences_.tied.sum()),
            "without_difference": len(self.preferences_) - len(self.pairs_),
        }

    @property
    def relative_discounts_(self) -> bool:
        """Whether discounts are determined only relative to the last one.

        That is so where both rankings of every pair have the same grades.
        """
        # a few pairs nearly always suffice to decide it
        return self.pairs_[:1000].same_grades and self.pairs_.same_grades

    @property
    def utility_(self) -> Utility:
        """The learned measure, to save or to evaluate with."""
        segments = {name: segment.utility for name, segment in self.segments_.items()}
        return Utility(
            self.grades_,
            self.weights_,
            self.gains_,
            self.discounts_,
            "gains",
            self.about(),
            segments,
        )

    def about(self) -> dict[str, Any]:
        """Return the metadata of the fit, as measure files store them.

        Returns
        -------
        dict
            Parameters, counts, accuracies, objective and gap, by name.
        """
        params = self.fit_params_
        about: dict[str, Any] = {
            "method": "DCGLearn", **self.counts_, "C": self.C_,
            "C_tie": float(self.spec_.costs(self.C_)[0]), "decreasing": params["decreasing"],
            "nonnegative": params["nonnegative"], "strong_margin": float(self.spec_.margins[2]),
            "unjudged": self.unjudged_, "accuracy": self.accuracy_,
            "accuracy_of_gains": self.agreements_["gains"].accuracy,
            "rank_one_fraction": self.rank_one_fraction_, "objective": self.objective_,
            "gap": self.gap_,
            "relative_discounts": self.relative_discounts_,
            "undetermined_positions": self.undetermined_positions_,
        }  # fmt: skip
        curve = self.validation_curve_
        if curve is not None:
            about["validation_curve"] = {
                "C": list(curve.costs),
                "accuracy": curve.means.tolist(),
                "accuracy_of_gains": curve.gains_accuracies.mean(axis=0).tolist(),
            }
        return about

    def agreement(
        self, preferences: Preferences | None = None, form: Form = "weights"
    ) -> PreferenceAgreement:
        """Return how well the measure agrees with preferences.

        Parameters
        ----------
        preferences : Preferences, optional
            Without it, the training preferences.
        form : {"weights", "gains"}, default "weights"
            Whether the weights are used, or the gains times discounts nearest to them.

        Returns
        -------
        PreferenceAgreement
            Accuracy, mean difference of ties, and the weights of preferences and ties.
        """
        if preferences is None:
            return self.agreements_[form]
        table = self.weights_ if form == "weights" else np.outer(self.discounts_, self.gains_)
        return preference_agreement(self._encode(preferences), table)

    def regularization_path(self, grid: Sequence[float] | None = None) -> dict[float, Utility]:
        """Return the measure for each C, learned from the same pairs.

        Parameters
        ----------
        grid : sequence of float, optional
            Values of C.  Without it, the parameter `grid`.

        Returns
        -------
        dict of float to Utility
            The measure per C, in ascending order of C.
        """
        costs = sorted(float(c) for c in (self.grid if grid is None else grid))
        return {
            c: utility_from_weights(
                self.grades_,
                optimum.table.reshape(self.positions_, -1),
                {"C": c, "objective": optimum.objective, "gap": optimum.gap},
            )
            for c, optimum in zip(costs, self.spec_.path(self.pairs_, costs), strict=True)
        }

    def score(self, preferences: Preferences) -> float:
        """Return the fraction of preferences that the weights agree with.

        Parameters
        ----------
        preferences : Preferences
            Preferences to compare with.

        Returns
        -------
        float
            Accuracy from 0 to 1, weighted; pairs without a difference count half.
        """
        return self.agreement(preferences).accuracy

    def decision_function(self, preferences: Preferences) -> Floats:
        """Return the value of the left ranking minus that of the right one, per pair.

        Parameters
        ----------
        preferences : Preferences
            Pairs of rankings; outcomes are not used.

        Returns
        -------
        ndarray
            A difference per pair.
        """
        regraded = preferences.with_grades(self.grades_)
        left, right = regraded.encode(self.positions_, self.unjudged_)
        kind = np.zeros(len(left), np.int8)
        pairs = Pairs(
            left, right, kind, regraded.weight, len(regraded.grades), np.arange(len(left))
        )
        return differences(pairs, self.weights_)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, as scikit-learn does.

        Parameters
        ----------
        deep : bool, default True
            Ignored; for compatibility.

        Returns
        -------
        dict
            Parameter values by name.
        """
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **params: Any) -> DCGLearn:
        """Set parameters by name, as scikit-learn does.

        Parameters
        ----------
        **params
            Parameter values by name.

        Returns
        -------
        DCGLearn
            This object.

        Raises
        ------
        DataError
            If there is no parameter of that name.
        """
        for name, value in params.items():
            if name not in self._names():
                raise DataError(f"DCGLearn has no parameter {name!r}; it has {self._names()}.")
            setattr(self, name, value)
        return self

    def with_params(self, **params: Any) -> DCGLearn:
        """Return an unfitted copy with other parameters.

        Parameters
        ----------
        **params
            Parameter values by name.

        Returns
        -------
        DCGLearn
            The copy.
        """
        return replace(self, **params)

    @classmethod
    def _names(cls) -> list[str]:
        fields: Mapping[str, Any] = cls.__dataclass_fields__
        return [name for name, f in fields.items() if f.init and name != "_"]


def _refuse_arguments(**arguments: Any) -> None:
    """Raise DataError for an argument that applies to lists of grades only."""
    for name, value in arguments.items():
        if value is not None:
            raise DataError(
                f"{name} applies to lists of grades only; preferences and files have their own."
            )


def _check_pairs(source: str, pairs: Pairs, positions: int) -> None:
    if not len(pairs):
        raise DataError(
            f"{source}: no pair has both a weight and a difference of grades in the first "
            f"{positions} positions; nothing can be learned."
        )
    if pairs.ties == len(pairs):
        raise DataError(f"{source}: all pairs are ties; learning a measure needs preferences.")
