"""Is a learned measure better than DCG, and would more judgments improve it?

Both questions are answered on held-out pairs: by a comparison with DCG, and by the learning curve,
its extrapolation, and a confidence interval of that.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from firstpage.core import DataError, Floats, Ints
from firstpage.data.preferences import NAMED_GAINS, Form, Utility
from firstpage.evaluation.dcglearn.learn import DCGLearn
from firstpage.evaluation.dcglearn.validation import cross_validation_curve, folds, pair_accuracies
from firstpage.evaluation.measures.significance import CONFIDENCE_LEVEL, bootstrap, with_zero

COMPARISON_ROUNDS = 1000  # of the bootstrap over queries
MAX_NESTED = 2000  # pairs up to which C is chosen again inside each fold
GAIN_NAMES = {"exp": "DCG with gains 2^grade - 1", "linear": "DCG with the grade as gain"}
DCGVerdict = Literal["better", "not better", "unknown"]


@dataclass(frozen=True)
class DCGComparison:
    """Comparison of a learned measure with DCG on the same held-out pairs.

    Numbers are NaN where nothing could be held out.  ``str()`` gives a sentence for the user.

    Attributes
    ----------
    learned : float
        Fraction of the held-out preferences that the learned measure agrees with.
    dcg : float
        The same for DCG, with the gains that agree more often.
    gains : {"exp", "linear"}
        The gains of that DCG: 2^grade - 1, or the grade.
    interval : tuple of float
        Lower and upper bound of the 95 % bootstrap interval over queries of `learned - dcg`.
    pairs : int
        Number of held-out preferences.
    verdict : {"better", "not better", "unknown"}
        "better" where the complete interval is above 0; "unknown" where nothing could be held out.
    """

    learned: float
    dcg: float
    gains: str
    interval: tuple[float, float]
    pairs: int

    @property
    def verdict(self) -> DCGVerdict:
        """Return "better" only where the complete interval is above 0."""
        if not np.isfinite(self.learned):
            return "unknown"
        return "better" if self.interval[0] > 0 else "not better"

    def __str__(self) -> str:
        if self.verdict == "unknown":
            return (
                "it is not known whether this measure is better than DCG: holding out pairs needs "
                "preferences of several queries."
            )
        low, high = self.interval
        not_better = "worse than" if high < 0 else "not shown to be better than"
        relation = "better than" if self.verdict == "better" else not_better
        return (
            f"on {self.pairs} held-out preferences this measure is {relation} "
            f"{GAIN_NAMES[self.gains]}: it agrees with {self.learned:.1%} of them, DCG with "
            f"{self.dcg:.1%} (difference {100 * (self.learned - self.dcg):+.1f} points, "
            f"{CONFIDENCE_LEVEL:.0%} interval {100 * low:+.1f} to {100 * high:+.1f})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison for JSON."""
        known = self.verdict != "unknown"
        numbers = {
            "learned": self.learned, "dcg": self.dcg, "gains": self.gains,
            "interval": list(self.interval), "level": CONFIDENCE_LEVEL,
        }  # fmt: skip
        return {
            "verdict": self.verdict,
            "pairs": self.pairs,
            "text": str(self),
            **{name: value if known else None for name, value in numbers.items()},
        }


def compare_with_dcg(learner: DCGLearn, form: Form = "gains") -> DCGComparison:
    """Compare a learned measure with DCG on held-out pairs.

    The measure of each fold is learned from the other folds.  Up to 2,000 pairs, C is chosen by
    the other folds alone; above that, the C of the full fit is used.
    """
    pairs = learner.pairs_
    _, group = np.unique(learner.groups_, return_inverse=True)
    learned_scores = np.full(len(pairs), np.nan)
    with suppress(DataError):  # all pairs are of one query
        for train, test in folds(learner.groups_, learner.folds, learner.seed):
            if (pairs.kind[train] > 0).any():
                table = _fold_table(learner, train, form)
                learned_scores[test] = pair_accuracies(pairs[test], table)
    counted = (pairs.kind > 0) & np.isfinite(learned_scores)
    if not counted.any():
        return DCGComparison(math.nan, math.nan, NAMED_GAINS[0], (math.nan, math.nan), 0)
    dcg_scores = {
        gains: pair_accuracies(
            pairs, Utility.from_dcg(gains, learner.grades_, learner.positions_).table()
        )
        for gains in NAMED_GAINS
    }
    weight = pairs.weight * counted
    means = {gains: float(weight @ scores / weight.sum()) for gains, scores in dcg_scores.items()}
    best = max(means, key=lambda gains: means[gains])
    difference = np.where(counted, learned_scores - dcg_scores[best], 0.0)
    learned = float(weight @ np.where(counted, learned_scores, 0.0) / weight.sum())
    queries = int(group.max()) + 1
    numerator, denominator = (
        np.bincount(group, values, queries) for values in (weight * difference, weight)
    )

    def mean(counts: Floats) -> Floats:
        total = counts @ denominator
        undefined = np.full(len(counts), np.nan)
        return np.asarray(np.divide(counts @ numerator, total, out=undefined, where=total > 0))

    interval = with_zero(
        bootstrap(mean, queries, COMPARISON_ROUNDS, learner.seed), numerator
    )  # with few queries, equal signs are not evidence
    return DCGComparison(learned, means[best], best, interval, int(counted.sum()))


def _fold_table(learner: DCGLearn, train: Ints, form: Form) -> Floats:
    """Return the weights learned from the training pairs of a fold."""
    pairs, cost = learner.pairs_[train], learner.C_
    curve = learner.validation_curve_
    if curve is not None and len(learner.pairs_) <= MAX_NESTED:
        with suppress(DataError):  # the training pairs are of one query
            cost = cross_validation_curve(
                learner.spec_,
                pairs,
                learner.groups_[train],
                curve.costs,
                learner.folds,
                learner.seed,
            ).best
    return learner.spec_.table(pairs, cost, form=form)


FRACTIONS = (0.2, 0.35, 0.5, 0.7, 1.0)  # of the training pairs: the points of the curve
EXPONENTS = np.arange(0.3, 1.51, 0.1)  # candidates; errors decrease like pairs^-exponent
MIN_ADAPTIVE_PAIRS = 20  # pairs from which C and the next pair are chosen by the pairs so far
MIN_PAIRS, MIN_QUERIES = 100, 20  # below which no advice is given
ADDITIONAL_PAIRS = 100  # for which the gain in accuracy is estimated
MIN_GAIN = 0.01  # accuracy that the additional pairs must add to be advised
ROUNDS = 200  # of the bootstrap over queries
AdviceVerdict = Literal["stop", "continue", "unclear", "too few"]
VERDICT_TEXTS: dict[AdviceVerdict, str] = {
    "stop": "more judgments would hardly help",
    "continue": "continue judging",
    "unclear": "too uncertain to say whether more judgments would help",
}


@dataclass(frozen=True)
class LearningCurve:
    """The learning curve of a measure, and whether more judgments would improve it.

    The accuracy after n pairs is modeled as ``ceiling - amplitude * n**-exponent``.  Numbers are
    NaN below 100 pairs or 20 queries.  ``str()`` gives a sentence for the user.

    Attributes
    ----------
    pairs : int
        Pairs so far.
    ceiling : float
        Limit of the accuracy with more pairs of the same kind; errors of people keep it below 1.
    amplitude : float
        Amplitude of the learning curve.
    exponent : float
        Exponent of the learning curve.
    curve : tuple of (int, float)
        Points of the learning curve: pairs, and accuracy on held-out pairs.
    interval : tuple of float
        Lower and upper bound of the 95 % bootstrap interval over queries of the gain.
    queries : int
        Queries so far.
    gain : float
        Accuracy that the next 100 judgments are expected to add.
    known : bool
        Whether there are enough data for advice.
    verdict : {"stop", "continue", "unclear", "too few"}
        "stop" where the complete interval is below .01, "continue" where it is above.
    stop : bool
        Whether the verdict is "stop".

    Examples
    --------
    >>> import firstpage as fp
    >>> advice = fp.dcglearn.LearningCurve(300, 0.9, 1.0, 1.0, (), (0.0002, 0.0015), 60)
    >>> advice.verdict
    'stop'
    >>> round(advice.accuracy(additional_pairs=100), 4)
    0.8975
    """

    pairs: int
    ceiling: float
    amplitude: float
    exponent: float
    curve: tuple[tuple[int, float], ...]
    interval: tuple[float, float] = (math.nan, math.nan)
    queries: int = 0

    def accuracy(self, additional_pairs: int = 0) -> float:
        """Return the expected accuracy after additional pairs.

        Parameters
        ----------
        additional_pairs : int, default 0
            Pairs beyond those so far.

        Returns
        -------
        float
            Accuracy by the fitted learning curve.
        """
        pairs = self.pairs + additional_pairs
        return self.ceiling - self.amplitude * math.pow(pairs, -self.exponent)

    @property
    def gain(self) -> float:
        """Accuracy that the next 100 judgments are expected to add."""
        return self.accuracy(ADDITIONAL_PAIRS) - self.accuracy()

    @property
    def known(self) -> bool:
        """Whether there are enough data for advice."""
        return bool(np.isfinite(self.ceiling))

    @property
    def verdict(self) -> AdviceVerdict:
        """Return "stop" or "continue" where the complete interval supports it."""
        low, high = self.interval
        if not self.known:
            return "too few"
        return "stop" if high < MIN_GAIN else "continue" if low >= MIN_GAIN else "unclear"

    @property
    def stop(self) -> bool:
        """Whether more judgments would hardly help, by the complete interval."""
        return self.verdict == "stop"

    def pairs_needed(self, accuracy: float) -> int | None:
        """Return the number of pairs in all that this accuracy needs.

        Parameters
        ----------
        accuracy : float
            Accuracy to reach.

        Returns
        -------
        int or None
            Number of pairs; None where the accuracy is out of reach or no advice is possible.
        """
        if not self.known or accuracy >= self.ceiling:
            return None
        return int(np.ceil((self.amplitude / (self.ceiling - accuracy)) ** (1 / self.exponent)))

    def __str__(self) -> str:
        if not self.known and self.pairs >= MIN_PAIRS and self.queries >= MIN_QUERIES:
            return (
                f"too few of the {self.pairs} pairs are preferences to estimate the gain from more "
                "judgments; continue judging."
            )
        if not self.known:
            return (
                f"{self.pairs} pairs of {self.queries} queries are too few to estimate the gain "
                f"from more judgments, which needs {MIN_PAIRS} pairs of {MIN_QUERIES} queries; "
                "continue judging."
            )
        low, high = self.interval
        return (
            f"expected accuracy {self.accuracy():.3f} with {self.pairs} pairs; the next "
            f"{ADDITIONAL_PAIRS} are expected to add {self.gain:+.3f} "
            f"({CONFIDENCE_LEVEL:.0%} interval "
            f"{low:+.3f} to {high:+.3f}): {VERDICT_TEXTS[self.verdict]}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the advice for JSON.

        Returns
        -------
        dict
            Numbers, verdict, text and the thresholds of the verdict; unknown numbers are None.
        """
        numbers = {
            "accuracy": self.accuracy(), "ceiling": self.ceiling, "gain": self.gain,
            "gain_interval": list(self.interval),
        }  # fmt: skip
        return {
            "pairs": self.pairs,
            "queries": self.queries,
            "verdict": self.verdict,
            "stop": self.stop,
            "text": str(self),
            "level": CONFIDENCE_LEVEL,
            "additional_pairs": ADDITIONAL_PAIRS,
            "thresholds": {"pairs": MIN_PAIRS, "queries": MIN_QUERIES, "gain": MIN_GAIN},
            "curve": [list(point) for point in self.curve],
            **{name: value if self.known else None for name, value in numbers.items()},
        }


def advice(learner: DCGLearn, repeats: int = 3, form: Form = "gains") -> LearningCurve:
    """Estimate whether more judgments would improve a learned measure.

    Measures are learned from 20 % to 100 % of the training pairs of each fold and tested on the
    held-out pairs.  The interval is a bootstrap over queries.

    Parameters
    ----------
    learner : DCGLearn
        A fitted learner with its pairs in memory.
    repeats : int, default 3
        Repetitions of the cross-validation, each with other folds.
    form : {"gains", "weights"}, default "gains"
        Whether to test the gains times discounts, or the weights.

    Returns
    -------
    LearningCurve
        The fitted learning curve, the expected gain of 100 more pairs, and a verdict.

    Examples
    --------
    >>> import firstpage as fp
    >>> left, right = [[2, 0], [1, 0], [2, 1]], [[0, 2], [0, 1], [1, 2]]
    >>> learner = fp.dcglearn.DCGLearn(K=2, C=1.0).fit(left, right)
    >>> fp.dcglearn.advice(learner).verdict
    'too few'
    """
    count = len(learner.pairs_)
    _, group = np.unique(learner.groups_, return_inverse=True)
    queries = int(group.max(initial=-1)) + 1
    unknown = LearningCurve(count, math.nan, math.nan, math.nan, (), queries=queries)
    if count < MIN_PAIRS or queries < MIN_QUERIES:
        return unknown
    correct, total = np.zeros((2, len(FRACTIONS), queries))
    sizes: list[list[int]] = [[] for _ in FRACTIONS]
    for repeat in range(repeats):
        rng = np.random.default_rng([learner.seed, repeat])
        for train, test in folds(learner.groups_, learner.folds, learner.seed + repeat):
            rows = rng.permutation(train)
            for point, size, scores in _learning_curve(learner, rows, test, form):
                sizes[point].append(size)
                weight = learner.pairs_.weight[test] * (learner.pairs_.kind[test] > 0)
                np.add.at(correct[point], group[test], weight * scores)
                np.add.at(total[point], group[test], weight)
    if any(not point_sizes for point_sizes in sizes):
        return unknown  # some fraction had no preference to learn from or to hold out
    mean_sizes = np.array([np.mean(point_sizes) for point_sizes in sizes])

    def accuracies(counts: Floats) -> Floats:
        return np.asarray(counts @ correct.T / np.maximum(counts @ total.T, 1e-300))

    def gains(counts: Floats) -> Floats:
        _, amplitude, exponent = _fit_power_law(mean_sizes, accuracies(counts))
        return np.asarray(amplitude * (count**-exponent - (count + ADDITIONAL_PAIRS) ** -exponent))

    observed = accuracies(np.ones((1, queries)))
    ceiling, amplitude, exponent = (
        float(values[0]) for values in _fit_power_law(mean_sizes, observed)
    )
    interval = bootstrap(gains, queries, ROUNDS, learner.seed)
    curve = tuple((round(float(m)), float(a)) for m, a in zip(mean_sizes, observed[0], strict=True))
    return LearningCurve(count, ceiling, amplitude, exponent, curve, interval, queries)


def _learning_curve(
    learner: DCGLearn, train: Ints, test: Ints, form: Form
) -> list[tuple[int, int, Floats]]:
    """Return (point of the curve, training pairs, accuracy per held-out pair) for each fraction."""
    points = []
    test_pairs = learner.pairs_[test]
    for point, fraction in enumerate(FRACTIONS):
        rows = train[: max(1, round(fraction * len(train)))]
        pairs = learner.pairs_[rows]
        if pairs.ties == len(pairs) or test_pairs.ties == len(test_pairs):
            continue
        table = learner.spec_.table(pairs, learner.C_, form=form)
        points.append((point, len(rows), pair_accuracies(test_pairs, table)))
    return points


def _fit_power_law(sizes: Floats, accuracies: Floats) -> tuple[Floats, Floats, Floats]:
    """Return ceiling, amplitude and exponent of each row of accuracies.

    Errors are modeled as floor + amplitude * pairs^-exponent with nonnegative floor and amplitude,
    by least squares for each candidate exponent.
    """
    errors = 1.0 - accuracies
    residual = np.full(len(errors), np.inf)
    best = np.zeros((3, len(errors)))
    for exponent in EXPONENTS:
        powers = sizes**-exponent
        for floor, amplitude in _nonnegative_fits(powers, errors):
            squares = ((errors - floor[:, None] - amplitude[:, None] * powers) ** 2).sum(axis=1)
            better = squares < residual - 1e-15
            residual[better] = squares[better]
            best[:, better] = np.stack([1.0 - floor, amplitude, np.full_like(floor, exponent)])[
                :, better
            ]
    return best[0], best[1], best[2]


def _nonnegative_fits(powers: Floats, errors: Floats) -> list[tuple[Floats, Floats]]:
    """Return candidates for (floor, amplitude), one of which is the nonnegative optimum."""
    centered = powers - powers.mean()
    mean = errors.mean(axis=1)
    amplitude = (errors - mean[:, None]) @ centered / (centered @ centered)
    floor = mean - amplitude * powers.mean()
    feasible = (amplitude >= 0) & (floor >= 0)
    zero = np.zeros_like(mean)
    without_floor = np.maximum(errors @ powers / (powers @ powers), 0.0)
    return [
        (np.where(feasible, floor, mean), np.where(feasible, amplitude, 0.0)),
        (mean, zero),
        (zero, without_floor),
    ]
