"""Is a learned measure better than DCG, and would more judgments pay?

Both are told by pairs that the measure has not learned from: the comparison with DCG, and the
learning curve so far, where it leads, and how sure that is.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from firstpage.data.preferences.utility import NAMED_GAINS, Form, Utility
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.validation import cross_validated, folds, hits
from firstpage.errors import DataError
from firstpage.measures.significance import LEVEL, bootstrap
from firstpage.types import Floats, Ints

COMPARISON_ROUNDS = 1000  # of the bootstrap over queries
MAX_NESTED = 2000  # pairs up to which C is chosen again inside each fold
NAMES = {"exp": "DCG with gains 2^grade - 1", "linear": "DCG with the grade as gain"}
DCGVerdict = Literal["better", "not better", "unknown"]


@dataclass(frozen=True)
class DCGComparison:
    """A learned measure and DCG, on the same held-out pairs.

    learned   fraction of the held-out preferences that the learned measure agrees with
    dcg       the same of DCG with the gains that do better here, `kind`
    interval  lower and upper end (95 %) of learned less dcg, over queries drawn again
    pairs     held-out preferences

    NaN where nothing could be held out.
    """

    learned: float
    dcg: float
    kind: str
    interval: tuple[float, float]
    pairs: int

    @property
    def verdict(self) -> DCGVerdict:
        """Return "better" only where the whole interval is above 0."""
        if not np.isfinite(self.learned):
            return "unknown"
        return "better" if self.interval[0] > 0 else "not better"

    def __str__(self) -> str:
        if self.verdict == "unknown":
            return (
                "it is not known whether this measure is better than DCG: no preferences of "
                "several queries are there to hold out."
            )
        low, high = self.interval
        worse = "worse than" if high < 0 else "not shown to be better than"
        word = "better than" if self.verdict == "better" else worse
        return (
            f"on {self.pairs} preferences held out this measure is {word} {NAMES[self.kind]}: it "
            f"agrees with {self.learned:.1%} of them, DCG with {self.dcg:.1%} (difference "
            f"{100 * (self.learned - self.dcg):+.1f} points, {LEVEL:.0%} interval "
            f"{100 * low:+.1f} to {100 * high:+.1f})."
        )

    def to_dict(self) -> dict[str, Any]:
        """What a program reads; null for what is not known."""
        known = self.verdict != "unknown"
        numbers = {
            "learned": self.learned, "dcg": self.dcg, "gains": self.kind,
            "interval": list(self.interval), "level": LEVEL,
        }  # fmt: skip
        return {
            "verdict": self.verdict, "pairs": self.pairs, "text": str(self),
            **{name: value if known else None for name, value in numbers.items()},
        }  # fmt: skip


def against_dcg(learner: DCGLearn, form: Form = "gains") -> DCGComparison:
    """Return how a learned measure and DCG agree with pairs that neither was learned from.

    Each fold's measure is learned from the others; up to 2,000 pairs its C is chosen by them
    alone, above that it is the one that was chosen for all.
    """
    pairs = learner.pairs_
    _, group = np.unique(learner.groups_, return_inverse=True)
    scores = np.full(len(pairs), np.nan)
    with suppress(DataError):  # one query
        for train, held in folds(learner.groups_, learner.folds, learner.seed):
            if (pairs.kind[train] > 0).any():
                scores[held] = hits(pairs[held], _table(learner, train, form))
    counted = (pairs.kind > 0) & np.isfinite(scores)
    if not counted.any():
        return DCGComparison(math.nan, math.nan, NAMED_GAINS[0], (math.nan, math.nan), 0)
    usual = {
        kind: hits(pairs, Utility.from_dcg(kind, learner.grades_, learner.places_).table())
        for kind in NAMED_GAINS
    }
    weight = pairs.weight * counted
    means = {kind: float(weight @ found / weight.sum()) for kind, found in usual.items()}
    kind = max(means, key=lambda name: means[name])
    apart = np.where(counted, scores - usual[kind], 0.0)
    learned = float(weight @ np.where(counted, scores, 0.0) / weight.sum())
    queries = int(group.max()) + 1
    over, under = (np.bincount(group, values, queries) for values in (weight * apart, weight))

    def mean(drawn: Floats) -> Floats:
        total = drawn @ under
        nothing = np.full(len(drawn), np.nan)
        return np.asarray(np.divide(drawn @ over, total, out=nothing, where=total > 0))

    interval = bootstrap(mean, queries, COMPARISON_ROUNDS, learner.seed)
    return DCGComparison(learned, means[kind], kind, interval, int(counted.sum()))


def _table(learner: DCGLearn, train: Ints, form: Form) -> Floats:
    """Return the weights learned from some of the pairs."""
    pairs, cost = learner.pairs_[train], learner.C_
    if learner.path_ is not None and len(learner.pairs_) <= MAX_NESTED:
        with suppress(DataError):  # the rest of one query: nothing to choose by
            cost = cross_validated(
                learner.recipe_, pairs, learner.groups_[train], learner.path_.costs, learner.folds,
                learner.seed,
            ).best  # fmt: skip
    return learner.recipe_.table(pairs, cost, form=form)


PARTS = (0.2, 0.35, 0.5, 0.7, 1.0)  # of the pairs to learn from
POWERS = np.arange(0.3, 1.51, 0.1)  # errors fall like pairs to the power of minus one of these
FEWEST = 20  # pairs from which on C and the next pair are chosen by the pairs so far
MIN_PAIRS, MIN_QUERIES = 100, 20  # below which no advice is given
MORE = 100  # pairs, of which the gain is estimated
LEAST_GAIN = 0.01  # accuracy that MORE pairs must bring to pay
ROUNDS = 200  # of the bootstrap over queries
Verdict = Literal["stop", "go on", "unclear", "too few"]
WORDS: dict[Verdict, str] = {
    "stop": "more hardly pay",
    "go on": "go on",
    "unclear": "too uncertain to say whether more pay",
}


@dataclass(frozen=True)
class Advice:
    """pairs, queries   so far
    ceiling   where more of such pairs lead in the end (people err, and grades do)
    miss, power   after n pairs the accuracy is about ceiling - miss * n^-power
    curve     (pairs, accuracy) on pairs held out, which all of this is read from
    interval  lower and upper end (95 %) of the accuracy that the next 100 pairs bring

    NaN where there are too few pairs to tell: below 100 pairs or 20 queries.
    """

    pairs: int
    ceiling: float
    miss: float
    power: float
    curve: tuple[tuple[int, float], ...]
    interval: tuple[float, float] = (math.nan, math.nan)
    queries: int = 0

    def accuracy(self, more: int = 0) -> float:
        """Return the accuracy to expect after so many more pairs."""
        return self.ceiling - self.miss * math.pow(self.pairs + more, -self.power)

    @property
    def gain(self) -> float:
        """Accuracy that the next 100 judgments are expected to bring."""
        return self.accuracy(MORE) - self.accuracy()

    @property
    def known(self) -> bool:
        """Whether the data can carry an advice."""
        return bool(np.isfinite(self.ceiling))

    @property
    def verdict(self) -> Verdict:
        """Return "stop" or "go on" where the whole interval says so."""
        low, high = self.interval
        if not self.known:
            return "too few"
        return "stop" if high < LEAST_GAIN else "go on" if low >= LEAST_GAIN else "unclear"

    @property
    def stop(self) -> bool:
        """Whether more judgments hardly pay, by the whole interval."""
        return self.verdict == "stop"

    def needed(self, accuracy: float) -> int | None:
        """Pairs in all for this accuracy; None where it is out of reach or cannot be told."""
        if not self.known or accuracy >= self.ceiling:
            return None
        return int(np.ceil((self.miss / (self.ceiling - accuracy)) ** (1 / self.power)))

    def __str__(self) -> str:
        if not self.known and self.pairs >= MIN_PAIRS and self.queries >= MIN_QUERIES:
            return (
                f"too few of the {self.pairs} pairs are preferences to tell whether more would "
                "pay; go on."
            )
        if not self.known:
            return (
                f"{self.pairs} pairs of {self.queries} queries are too few to tell whether more "
                f"would pay, which takes {MIN_PAIRS} pairs of {MIN_QUERIES} queries; go on."
            )
        low, high = self.interval
        return (
            f"expected accuracy {self.accuracy():.3f} with {self.pairs} pairs; the next {MORE} "
            f"bring about {self.gain:+.3f} ({LEVEL:.0%} interval {low:+.3f} to {high:+.3f}): "
            f"{WORDS[self.verdict]}."
        )

    def to_dict(self) -> dict[str, Any]:
        """What a program reads; null for what cannot be told."""
        numbers = {
            "accuracy": self.accuracy(), "ceiling": self.ceiling, "gain_of_100": self.gain,
            "gain_interval": list(self.interval),
        }  # fmt: skip
        return {
            "pairs": self.pairs, "queries": self.queries, "verdict": self.verdict,
            "stop": self.stop, "text": str(self), "level": LEVEL,
            "rule": {"pairs": MIN_PAIRS, "queries": MIN_QUERIES, "least_gain_of_100": LEAST_GAIN},
            "curve": [list(point) for point in self.curve],
            **{name: value if self.known else None for name, value in numbers.items()},
        }  # fmt: skip


def advice(learner: DCGLearn, repeats: int = 3, form: Form = "gains") -> Advice:
    """Return advice from measures learned on parts of the pairs and judged on others.

    Whole queries are drawn again for the interval.  "Stop" and "go on" are said only where all
    of it is below or above a gain of .01 by the next 100 pairs.
    """
    count = len(learner.pairs_)
    _, group = np.unique(learner.groups_, return_inverse=True)
    queries = int(group.max(initial=-1)) + 1
    unknown = Advice(count, math.nan, math.nan, math.nan, (), queries=queries)
    if count < MIN_PAIRS or queries < MIN_QUERIES:
        return unknown
    correct, total = np.zeros((2, len(PARTS), queries))
    sizes: list[list[int]] = [[] for _ in PARTS]
    for repeat in range(repeats):
        rng = np.random.default_rng([learner.seed, repeat])
        for train, held in folds(learner.groups_, learner.folds, learner.seed + repeat):
            rows = rng.permutation(train)
            for part, size, scores in _learned(learner, rows, held, form):
                sizes[part].append(size)
                weight = learner.pairs_.weight[held] * (learner.pairs_.kind[held] > 0)
                np.add.at(correct[part], group[held], weight * scores)
                np.add.at(total[part], group[held], weight)
    if any(not found for found in sizes):
        return unknown  # parts without a preference to learn from, or to hold out
    means = np.array([np.mean(found) for found in sizes])

    def accuracies(drawn: Floats) -> Floats:
        return np.asarray(drawn @ correct.T / np.maximum(drawn @ total.T, 1e-300))

    def gains(drawn: Floats) -> Floats:
        _, miss, power = _fitted(means, accuracies(drawn))
        return np.asarray(miss * (count**-power - (count + MORE) ** -power))

    whole = accuracies(np.ones((1, queries)))
    ceiling, miss, power = (float(values[0]) for values in _fitted(means, whole))
    interval = bootstrap(gains, queries, ROUNDS, learner.seed)
    curve = tuple((round(float(m)), float(a)) for m, a in zip(means, whole[0], strict=True))
    return Advice(count, ceiling, miss, power, curve, interval, queries)


def _learned(
    learner: DCGLearn, train: Ints, held: Ints, form: Form
) -> list[tuple[int, int, Floats]]:
    """Return (number of the part, pairs learned from, agreement with each held-out pair)."""
    found = []
    test = learner.pairs_[held]
    for part, fraction in enumerate(PARTS):
        rows = train[: max(1, round(fraction * len(train)))]
        pairs = learner.pairs_[rows]
        if pairs.ties == len(pairs) or test.ties == len(test):
            continue
        table = learner.recipe_.table(pairs, learner.C_, form=form)
        found.append((part, len(rows), hits(test, table)))
    return found


def _fitted(sizes: Floats, accuracies: Floats) -> tuple[Floats, Floats, Floats]:
    """Return ceiling, miss and power of each row of accuracies.

    Errors are floor + miss * pairs^-power, both not negative, by least squares over the powers.
    """
    errors = 1.0 - accuracies
    misfit = np.full(len(errors), np.inf)
    best = np.zeros((3, len(errors)))
    for power in POWERS:
        falling = sizes**-power
        for floor, miss in _nonnegative(falling, errors):
            left = ((errors - floor[:, None] - miss[:, None] * falling) ** 2).sum(axis=1)
            nearer = left < misfit - 1e-15
            misfit[nearer] = left[nearer]
            best[:, nearer] = np.stack([1.0 - floor, miss, np.full_like(floor, power)])[:, nearer]
    return best[0], best[1], best[2]


def _nonnegative(falling: Floats, errors: Floats) -> list[tuple[Floats, Floats]]:
    """Return candidates for (floor, miss), one of which is the least nonnegative solution."""
    apart = falling - falling.mean()
    mean = errors.mean(axis=1)
    miss = (errors - mean[:, None]) @ apart / (apart @ apart)
    floor = mean - miss * falling.mean()
    inside = (miss >= 0) & (floor >= 0)
    none = np.zeros_like(mean)
    through = np.maximum(errors @ falling / (falling @ falling), 0.0)
    return [
        (np.where(inside, floor, mean), np.where(inside, miss, 0.0)),
        (mean, none),
        (none, through),
    ]
