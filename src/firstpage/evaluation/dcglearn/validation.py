"""Agreement of weights with preferences, and the choice of C by held-out pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints, Progress
from firstpage.core.kernels.losses import preferences as kernel
from firstpage.data.preferences import Form
from firstpage.evaluation.dcglearn.pairs import Pairs
from firstpage.evaluation.dcglearn.solver import Optimum, solve
from firstpage.evaluation.dcglearn.sums import PairSums
from firstpage.evaluation.dcglearn.weights import Cone, rank_one_factors

GRID = tuple(10.0**e for e in range(-3, 5))
TIE_TOLERANCE = 1e-12  # of the largest difference: below it two rankings are equally good


@dataclass(frozen=True)
class PreferenceAgreement:
    """Agreement of weights with preferences.

    Attributes
    ----------
    accuracy : float
        Fraction of the preferences agreed with; no difference counts half.  NaN without any.
    tie_difference : float
        Mean absolute difference of tied pairs; NaN without any.
    preferences : float
        Total weight of the preferences.
    ties : float
        Total weight of the ties.
    """

    accuracy: float
    tie_difference: float
    preferences: float
    ties: float

    @classmethod
    def from_sums(cls, sums: Floats) -> PreferenceAgreement:
        """Return the agreement from the four sums of `kernel.agreement`."""
        total, correct, ties, tie_difference = (float(v) for v in sums)
        return cls(
            correct / total if total else np.nan,
            tie_difference / ties if ties else np.nan,
            total,
            ties,
        )


def differences(pairs: Pairs, table: Floats) -> Floats:
    """Return the value of the left rankings minus that of the right ones."""
    z, flat = np.empty(len(pairs)), np.ascontiguousarray(table, np.float64).ravel()
    kernel.differences(pairs.left, pairs.right, flat, pairs.levels, z)
    return z


def preference_agreement(pairs: Pairs, table: Floats) -> PreferenceAgreement:
    """Return how well weights agree with pairs."""
    z = differences(pairs, table)
    sums = np.zeros(4)
    tolerance = TIE_TOLERANCE * float(np.abs(z).max(initial=0.0))
    kernel.agreement(z, pairs.kind, pairs.weight, tolerance, sums)
    return PreferenceAgreement.from_sums(sums)


def pair_accuracies(pairs: Pairs, table: Floats) -> Floats:
    """Return 1 per preference that these weights agree with, 0 per other, .5 for no difference.

    Values of tied pairs have no meaning; callers must leave them out.
    """
    z = differences(pairs, table)
    tolerance = TIE_TOLERANCE * float(np.abs(z).max(initial=0.0))
    return np.where(z > tolerance, 1.0, np.where(z >= -tolerance, 0.5, 0.0))


@dataclass(frozen=True, eq=False)
class ValidationCurve:
    """Accuracy on held-out pairs for each C.

    Attributes
    ----------
    costs : tuple of float
        Values of C.
    accuracies : ndarray
        Accuracy of the weights, a row per fold and a column per C.
    gains_accuracies : ndarray
        The same for the gains times discounts nearest to the weights.
    """

    costs: tuple[float, ...]
    accuracies: Floats
    gains_accuracies: Floats

    @property
    def means(self) -> Floats:
        """Mean accuracy of the weights over folds, per C."""
        means: Floats = self.accuracies.mean(axis=0)
        return means

    @property
    def errors(self) -> Floats:
        """Standard error of the mean over folds, per C."""
        n = len(self.accuracies)
        if n < 2:
            return np.full(len(self.costs), np.nan)
        errors: Floats = self.accuracies.std(axis=0, ddof=1) / np.sqrt(n)
        return errors

    @property
    def best(self) -> float:
        """The C with the highest mean accuracy of the weights; the smallest of equal ones."""
        return self.costs[self.best_index]

    @property
    def best_index(self) -> int:
        return int(np.argmax(np.round(self.means, 12)))

    def accuracy(self, form: Form) -> float:
        """Return the mean accuracy at the best C.

        C was chosen by the same pairs, so the estimate is slightly optimistic.
        """
        rows = self.accuracies if form == "weights" else self.gains_accuracies
        return float(rows.mean(axis=0)[self.best_index])


@dataclass(frozen=True, eq=False)
class LearningSpec:
    """Everything of a learning problem except its pairs.

    Attributes
    ----------
    cone : Cone
        Admissible weights.
    margins : ndarray
        Margin of a tie, of a preference and of a strong one.
    tie_cost : float or None
        Cost of ties; None takes C.
    threads : int or None
        Threads; None takes all cores.
    center : ndarray or None
        Weights toward which the penalty shrinks; None takes 0.
    """

    cone: Cone
    margins: Floats
    tie_cost: float | None = None
    threads: int | None = None
    center: Floats | None = None

    def costs(self, c: float) -> Floats:
        """Return the cost of a tie, of a preference and of a strong one."""
        return np.array([c if self.tie_cost is None else self.tie_cost, c, c])

    def sums(self, pairs: Pairs) -> PairSums:
        return PairSums(pairs, self.margins, self.threads)

    def fit(self, sums: PairSums, c: float, start: Optimum | None = None) -> Optimum:
        """Return the optimum for C, starting from that of a similar problem if given."""
        steps = None if start is None else start.steps
        return solve(sums, self.cone, self.costs(c), steps, self.center)

    def table(
        self, pairs: Pairs, c: float, start: Optimum | None = None, form: Form = "weights"
    ) -> Floats:
        """Return the weights learned from pairs, or the gains times discounts nearest to them."""
        weights = self.fit(self.sums(pairs), c, start).table.reshape(self.cone.positions, -1)
        return rank_one_factors(weights).table if form == "gains" else weights

    def path(self, pairs: Pairs, grid: Sequence[float]) -> list[Optimum]:
        """Return the optimum for each C, each started from the one before."""
        sums, path = self.sums(pairs), list[Optimum]()
        for c in grid:
            path.append(self.fit(sums, c, path[-1] if path else None))
        return path


def folds(groups: Array, count: int, seed: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield training rows and held-out rows; the rows of a group stay together."""
    names, group = np.unique(groups, return_inverse=True)
    count = min(count, len(names))
    if count < 2:
        raise DataError("cross-validation needs pairs of at least two queries.")
    fold_of_group = np.random.default_rng(seed).permutation(len(names)) % count
    fold_of_row = fold_of_group[group]
    for fold in range(count):
        yield np.flatnonzero(fold_of_row != fold), np.flatnonzero(fold_of_row == fold)


def cross_validation_curve(
    spec: LearningSpec,
    pairs: Pairs,
    groups: Array,
    grid: Sequence[float] = GRID,
    count: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> ValidationCurve:
    """Return the accuracy on held-out pairs for each C."""
    rows = []
    splits = list(folds(groups, count, seed))
    for done, (train, test) in enumerate(splits, 1):
        if progress is not None:
            progress(done, len(splits) + 1)
        if not (pairs.kind[train] > 0).any() or not (pairs.kind[test] > 0).any():
            continue  # a fold of ties has no accuracy
        rows.append(_path_accuracies(spec, pairs[train], pairs[test], grid))
    if len(rows) < 2:
        raise DataError("cross-validation needs preferences, not only ties, in several queries.")
    return ValidationCurve(tuple(grid), *np.moveaxis(np.array(rows), 1, 0))


def validation_curve(
    spec: LearningSpec, pairs: Pairs, valid: Pairs, grid: Sequence[float] = GRID
) -> ValidationCurve:
    """Return the accuracy on separate validation pairs for each C."""
    if valid.ties == len(valid):
        raise DataError("the validation pairs contain no preference, only ties.")
    weights, gains = np.array(_path_accuracies(spec, pairs, valid, grid))
    return ValidationCurve(tuple(grid), weights[None], gains[None])


def _path_accuracies(
    spec: LearningSpec, train: Pairs, test: Pairs, grid: Sequence[float]
) -> list[list[float]]:
    """Return the accuracies for each C: of the weights, and of gains times discounts."""
    tables = [o.table.reshape(spec.cone.positions, -1) for o in spec.path(train, grid)]
    nearest = [rank_one_factors(table).table for table in tables]
    return [[preference_agreement(test, t).accuracy for t in form] for form in (tables, nearest)]
