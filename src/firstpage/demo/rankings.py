"""Rankings that are learned, one that all of them vote for, and which is best.

Four rankers are trained by folds, Supervised Kemeny makes one ranking of them, and the comparison
says how sure the best is and what people would notice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, isfinite
from statistics import NormalDist

import numpy as np

from firstpage.aggregation.aggregate import aggregate
from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.weights import supervised_weights
from firstpage.data.dataset import Dataset
from firstpage.data.groups import query_rows
from firstpage.measures.compare import Comparison, Difference, compare
from firstpage.measures.evaluate import evaluate
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.registry import ranker
from firstpage.types import Floats, Ints, Progress

FOLDS = 6
RANKERS = ("ListMLE(k=5)", "FocusedNet(k=5)", "RankSVM", "RankBoost")
NORMALIZE = "minmax"


def folds(queries: int) -> Iterator[tuple[Ints, Ints]]:
    """(to train on, to rank): each question is ranked once."""
    for part in np.array_split(np.random.default_rng(0).permutation(queries), FOLDS):
        yield np.setdiff1d(np.arange(queries), part), np.sort(part)


def trained(name: str, judged: Dataset) -> Ranker:
    """A ranker by its name, fitted."""
    return ranker(name, normalize=NORMALIZE).fit(judged)


def learned(judged: Dataset, progress: Progress | None = None) -> dict[str, Floats]:
    """Scores of all documents by each ranker, always of models that were trained without them."""
    found: dict[str, Floats] = {}
    for number, name in enumerate(RANKERS):
        scores = np.empty(judged.n_docs)
        for fold, (train, test) in enumerate(folds(len(judged))):
            model = trained(name, judged[train])
            scores[query_rows(judged.offsets, test)] = model.predict(judged[test])
            if progress is not None:
                progress(number * FOLDS + fold + 1, FOLDS * len(RANKERS))
        found[name] = scores
    return found


NAME = "all four together"
MEASURE = "NDCG@5"


@dataclass(frozen=True, eq=False)
class Together:
    """One ranking of several, and the mean weight of each vote."""

    scores: Floats
    weights: Mapping[str, float]


def together(systems: Mapping[str, Floats], judged: Dataset) -> Together:
    """Votes weigh what the assessors' labels say of each ranker, on other questions than these."""
    scores = np.empty(judged.n_docs)
    weights = []
    for others, part in folds(len(judged)):
        rows = query_rows(judged.offsets, others)
        measured = supervised_weights([s[rows] for s in systems.values()], judged[others], MEASURE)
        mine = query_rows(judged.offsets, part)
        votes = [s[mine] for s in systems.values()]
        base = votes[int(np.argmax(measured.weights))]
        ballots = Ballots.from_scores(votes, judged[part].offsets, base, names=list(systems))
        scores[mine] = aggregate(ballots, "skr", weights=measured).scores
        weights.append(measured.weights)
    return Together(scores, dict(zip(systems, np.mean(weights, axis=0).tolist(), strict=True)))


MAIN = "NDCG@5"
MEASURES = (MAIN, "ERR", "RR", "Recall@5")
SURE = 0.05
FOUND = 0.8  # of true differences of this size, that a test is to find


@dataclass(frozen=True, eq=False)
class Compared:
    """Learned rankings against the best that needs no learning."""

    found: Comparison
    baseline: str
    best: str
    first_right: Mapping[str, int]  # questions whose first result is a right answer

    @property
    def verdict(self) -> Difference:
        """The best learned ranking against the baseline, by the main measure."""
        return difference(self.found, MAIN, self.best, self.baseline)

    @property
    def sure(self) -> bool:
        return self.verdict.p_corrected < SURE

    @property
    def needed(self) -> int | None:
        """Questions that would show such a difference four times of five; None if there is none.

        By the same rule as the verdict: with allowance for every learned ranking that was tried.
        """
        effect = abs(self.verdict.effect)
        if not (effect > 0 and isfinite(effect)):
            return None
        normal = NormalDist()
        tried = len(self.found.systems) - 1
        reach = normal.inv_cdf(1 - SURE / (2 * tried)) + normal.inv_cdf(FOUND)
        return ceil(reach**2 / effect**2)


def best_of(systems: Mapping[str, Floats], data: Dataset) -> str:
    """By the main measure."""
    means = {name: evaluate(s, data, measures=MAIN)[MAIN] for name, s in systems.items()}
    return max(means, key=lambda name: means[name])


def compared(plain: Mapping[str, Floats], learned: Mapping[str, Floats], data: Dataset) -> Compared:
    """All measured by the right answers, which no training has seen."""
    baseline = best_of(plain, data)
    systems = {baseline: plain[baseline], **learned}
    found = compare(systems, data, measures=MEASURES, baseline=baseline)
    best = best_of(learned, data)
    return Compared(found, baseline, best, {n: first_right(s, data) for n, s in systems.items()})


def difference(found: Comparison, measure: str, system: str, against: str) -> Difference:
    return next(
        d for d in found.differences
        if (d.measure, d.system, d.against) == (measure, system, against)
    )  # fmt: skip


def first_right(scores: Floats, data: Dataset) -> int:
    """Questions whose first result is a right answer."""
    return sum(int(page_of(scores, data, q, 1)[0][1] > 0) for q in range(len(data)))


def page_of(scores: Floats, data: Dataset, question: int, places: int) -> list[tuple[str, int]]:
    """The first places of a question: document and grade."""
    assert data.docids is not None
    lo, hi = (int(o) for o in data.offsets[question : question + 2])
    order = lo + np.argsort(-scores[lo:hi], kind="stable")[:places]
    return [(str(data.docids[int(row)]), int(data.y[row])) for row in order]


def extremes(compared: Compared) -> tuple[int, int]:
    """The question that learning helped most, and the one that it hurt most."""
    values = compared.found.values(MAIN)
    names = compared.found.systems
    gap = values[names.index(compared.best)] - values[names.index(compared.baseline)]
    return int(gap.argmax()), int(gap.argmin())
