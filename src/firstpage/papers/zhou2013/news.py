"""Sections 5.4 and 5.5: side-by-side judgments of simulated editors, and pairs chosen to be asked.

A run draws a new set of 766 judged queries.  Pairs that are not ties are dealt into five folds;
every pair is judged by what was learned from the other four, with C by cross-validation there.
Set1 are the pairs with labels 1 and 5 (much better), Set2 those with 2 and 4.

Pairs that are chosen stand against pairs that come by chance: each strategy starts with the same 20
pairs and chooses from the same pool, a few at a time; after each answer all is learned anew.  C is
fixed: 100 without noise, 0.1 for editors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from firstpage.data.preferences.preferences import Preferences
from firstpage.data.preferences.utility import Utility
from firstpage.dcglearn.active import Strategy, choose
from firstpage.dcglearn.learn import DCGLearn
from firstpage.dcglearn.simulation import zhou_simulator
from firstpage.papers.study.study import Row
from firstpage.papers.zhou2013 import worlds
from firstpage.types import Array, Bools, Floats, Ints

GRADES = (1, 2, 3, 4)
QUERIES, PLACES = 766, 5
COUNTS = {1: 13, 2: 108, 3: 473, 4: 148, 5: 24}  # Table 1
OUTCOMES = {1: 2, 2: 1, 3: 0, 4: -1, 5: -2}  # labels as outcomes: set one is left


@dataclass(frozen=True)
class Editors:
    """The numbers of the simulation; see the head of this file."""

    documents: int = 20
    mix: tuple[float, ...] = (0.4, 0.3, 0.2, 0.1)  # of the grades, upward
    alike: float = 4.0  # the greater, the more alike are queries in their mix
    common: float = 1.0  # noise that both rankers share
    noise: tuple[float, float] = (1.65, 1.2)  # their own
    gains: tuple[float, ...] = (0.0, 0.05, 0.9, 1.0)
    discounts: tuple[float, ...] = (1.0, 0.9, 0.8, 0.2, 0.1)
    doubt: float = 0.8
    same: float = 0.887
    much: float = 2.033

    @property
    def truth(self) -> Utility:
        return Utility.from_gains(self.gains, self.discounts, GRADES)

    def judged(self, rng: np.random.Generator, queries: int = QUERIES) -> Preferences:
        """Two lists a query, and what an editor says: 2, 1, 0, -1, -2 for the labels 1 to 5."""
        grades = self._grades(rng, queries)
        both = self.common * rng.normal(size=grades.shape)
        one, two = (
            _shown(grades, grades + both + s * rng.normal(size=grades.shape)) for s in self.noise
        )
        felt = self._worth(one) - self._worth(two) + self.doubt * rng.normal(size=queries)
        outcome = np.sign(felt) * (
            (np.abs(felt) > self.same).astype(int) + (np.abs(felt) > self.much)
        )
        return Preferences.from_grades(one, two, outcome, grades=GRADES, source="simulated editors")

    def _grades(self, rng: np.random.Generator, queries: int) -> Array:
        shares = rng.dirichlet(np.array(self.mix) * self.alike, queries).cumsum(axis=1)
        drawn = rng.random((queries, self.documents, 1))
        found: Array = 1 + (drawn > shares[:, None, :-1]).sum(axis=2)
        return found

    def _worth(self, lists: Array) -> Floats:
        found: Floats = self.truth.weights[np.arange(PLACES), lists - 1].sum(axis=1)
        return found


def _shown(grades: Array, scores: Floats) -> Array:
    """Grades of the documents with the highest scores, in this order."""
    best = np.argsort(-scores, axis=1)[:, :PLACES]
    return np.take_along_axis(grades, best, axis=1)


FOLDS = 5
AS_MANY = "labels 2, 4, as many as 1, 5"
Learn = Callable[[Preferences], DCGLearn]


def learned(train: Preferences) -> DCGLearn:
    """DCGLearn with C by cross-validation; "much better" counts as "better", as in the paper."""
    return DCGLearn(PLACES, grades=GRADES, threads=1).fit(train)


def split(n: int, rng: np.random.Generator) -> Iterator[tuple[Ints, Ints]]:
    part = rng.permutation(n) % FOLDS
    for fold in range(FOLDS):
        yield rng.permutation(np.flatnonzero(part != fold)), np.flatnonzero(part == fold)


def sets(pairs: Preferences) -> dict[str, Bools]:
    strong: Bools = np.abs(pairs.outcome) == 2
    return {"all": np.ones(len(pairs), bool), "Set1": strong, "Set2": ~strong}


def hits(apart: Floats, pairs: Preferences) -> Floats:
    """1 for a preference that is seen, 0 for one that is not, and half for no difference."""
    found: Floats = (np.sign(np.round(apart, 9)) * np.sign(pairs.outcome) + 1) / 2
    return found


def _rows(label: str, name: str | float, right: Floats, pairs: Preferences) -> list[Row]:
    return [
        {label: name, "test": test, "value": float(right[which].mean())}
        for test, which in sets(pairs).items()
        if which.any()
    ]


def counts(rng: np.random.Generator) -> list[Row]:
    """Table 1: how many of each label."""
    outcome = Editors().judged(rng).outcome
    return [
        {"label": label, "value": float((outcome == OUTCOMES[label]).sum())} for label in COUNTS
    ]


def methods(rng: np.random.Generator) -> list[Row]:
    """Figures 16 and 18: accuracies, and the size of differences by label."""
    judged = Editors().judged(rng)
    pairs, ties = judged[~judged.tied], judged[judged.tied]
    apart, same = np.zeros(len(pairs)), np.zeros(len(ties))
    for train, test in split(len(pairs), rng):
        learner = learned(pairs[train])
        apart[test] = learner.decision_function(pairs[test])
        same += np.abs(learner.decision_function(ties)) / FOLDS
    right = {
        "Random": rng.integers(0, 2, len(pairs)).astype(float),
        "Baseline1": hits(usual("exp", pairs), pairs),
        "Baseline2": hits(usual("linear", pairs), pairs),
        "DCGLearn": hits(apart, pairs),
        "true measure": hits(_by(Editors().truth, pairs), pairs),
    }
    rows = [row for name, found in right.items() for row in _rows("method", name, found, pairs)]
    for label, outcome in OUTCOMES.items():
        size = same if outcome == 0 else np.abs(apart[pairs.outcome == outcome])
        rows.append({"label": label, "value": float(size.mean()) if len(size) else 0.0})
    return rows


def usual(gain: str, pairs: Preferences) -> Floats:
    """Differences by a measure that everybody knows."""
    return _by(Utility.from_dcg(gain, GRADES, PLACES), pairs)


def _by(measure: Utility, pairs: Preferences) -> Floats:
    at = np.arange(PLACES)
    found: Floats = (measure.weights[at, pairs.left] - measure.weights[at, pairs.right]).sum(axis=1)
    return found


def amounts(rng: np.random.Generator, sizes: list[int]) -> list[Row]:
    """Figure 17: accuracy by the number of training pairs."""
    judged = Editors().judged(rng)
    pairs = judged[~judged.tied]
    right = {m: np.zeros(len(pairs)) for m in sizes}
    for train, test in split(len(pairs), rng):
        for m in sizes:
            apart = learned(pairs[train[:m]]).decision_function(pairs[test])
            right[m][test] = hits(apart, pairs[test])
    return [row for m in sizes for row in _rows("pairs", m, right[m], pairs)]


def subsets(rng: np.random.Generator) -> list[Row]:
    """Figure 19: learned from all pairs, or from those with labels 1 and 5, or 2 and 4, alone.

    Labels 1 and 5 are few: as many pairs with labels 2 and 4 say what the kind of pairs does.
    """
    judged = Editors().judged(rng)
    pairs = judged[~judged.tied]
    names = {"all": "all", "Set1": "labels 1, 5", "Set2": "labels 2, 4"}
    right = {name: np.zeros(len(pairs)) for name in (*names.values(), AS_MANY)}
    for train, test in split(len(pairs), rng):
        parts = {name: train[sets(pairs)[which][train]] for which, name in names.items()}
        parts[AS_MANY] = parts["labels 2, 4"][: len(parts["labels 1, 5"])]
        for name, part in parts.items():
            apart = learned(pairs[part]).decision_function(pairs[test])
            right[name][test] = hits(apart, pairs[test])
    return [row for name, found in right.items() for row in _rows("trained on", name, found, pairs)]


def tied(rng: np.random.Generator, costs: list[float]) -> list[Row]:
    """Figure 20: accuracy, and how far held-out ties are apart, by the cost of ties.

    C for preferences is chosen once a fold, without ties.
    """
    judged = Editors().judged(rng)
    pairs, ties = judged[~judged.tied], judged[judged.tied]
    right = {c: np.zeros(len(pairs)) for c in costs}
    apart = {c: np.zeros(len(ties)) for c in costs}
    length = {c: np.zeros(len(ties)) for c in costs}
    folds = zip(split(len(pairs), rng), split(len(ties), rng), strict=True)
    for (train, test), (train_ties, test_ties) in folds:
        cost = learned(pairs[train]).C_
        for c in costs:
            learner = DCGLearn(PLACES, C=cost, C_tie=c, grades=GRADES, threads=1)
            learner.fit(pairs[train] + ties[train_ties])
            right[c][test] = hits(learner.decision_function(pairs[test]), pairs[test])
            apart[c][test_ties] = np.abs(learner.decision_function(ties[test_ties]))
            length[c][test_ties] = np.linalg.norm(learner.weights_)
    rows: list[Row] = []
    for c in costs:
        values = {
            "accuracy": right[c].mean(), "diff": apart[c].mean(),
            "diff / |w|": (apart[c] / length[c]).mean(),
        }  # fmt: skip
        rows += [{"C_tie": c, "measure": m, "value": float(v)} for m, v in values.items()]
    return rows


START, POOL, TEST = 20, 2000, 4000
CLEAN, NOISY = 100.0, 0.1  # C


def simulated(
    rng: np.random.Generator, data: int, strategy: Strategy, sizes: list[int], batch: int
) -> list[Row]:
    """Figures 21, 22."""
    right = zhou_simulator(data)
    pool, test = right.pairs(POOL, rng), right.pairs(TEST, rng)
    found = curve(right.truth, pool, test, strategy, sizes, batch, CLEAN)
    return [{"strategy": strategy, "pairs": m, "value": value} for m, value in found.items()]


def real_lists(
    rng: np.random.Generator, name: str, strategy: Strategy, sizes: list[int], batch: int,
    folder: str,
) -> list[Row]:  # fmt: skip
    """Figure 23 (a), (b): queries of four folds to choose from, those of the fifth to test on."""
    train, test = next(worlds.folds(worlds.read_lists(folder, name), rng))
    pool, held = train.pairs(POOL, rng), test.pairs(TEST, rng)
    found = curve(zhou_simulator(2).truth, pool, held, strategy, sizes, batch, CLEAN)
    return [
        {"data": name, "strategy": strategy, "pairs": m, "value": value}
        for m, value in found.items()
    ]


def editors(
    rng: np.random.Generator, strategy: Strategy, sizes: list[int], batch: int
) -> list[Row]:
    """Figure 23 (c): four folds of the simulated editors' pairs to choose from."""
    judged = Editors().judged(rng)
    pairs = judged[~judged.tied]
    right = dict.fromkeys(sizes, 0.0)
    for train, test in split(len(pairs), rng):
        found = curve(Editors().truth, pairs[train], pairs[test], strategy, sizes, batch, NOISY)
        for m, value in found.items():
            right[m] += value * len(test) / len(pairs)
    return [
        {"data": "simulated news", "strategy": strategy, "pairs": m, "value": value}
        for m, value in right.items()
    ]


def curve(
    truth: Utility, pool: Preferences, test: Preferences, strategy: Strategy, sizes: list[int],
    batch: int, cost: float,
) -> dict[int, float]:  # fmt: skip
    """Accuracy after so many answers."""
    have, left = np.arange(START), np.arange(START, len(pool))
    blank = DCGLearn(truth.n_positions, C=cost, grades=truth.grades, threads=1)
    found: dict[int, float] = {}
    for m in sizes:
        while len(have) < m:
            step = m - len(have) if strategy == "random" else min(batch, m - len(have))
            chosen = _asked(blank, pool, have, left, step, strategy)
            if not chosen:  # what is left has no difference
                break
            have, left = np.append(have, left[chosen]), np.delete(left, chosen)
        found[m] = blank.fit(pool[have]).score(test)
    return found


def _asked(
    blank: DCGLearn, pool: Preferences, have: np.ndarray, left: np.ndarray, count: int,
    strategy: Strategy,
) -> list[int]:  # fmt: skip
    """Which of those left; by chance: the next ones, for the pool has no order."""
    if strategy == "random":
        return list(range(count))
    return choose(blank.fit(pool[have]), pool[left], count, strategy, seed=len(have))
