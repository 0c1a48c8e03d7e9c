"""Learned rankings, their aggregation, and the comparison with the best baseline.

Four rankers are trained by cross-validation, Supervised Kemeny aggregates their rankings, and the
comparison says whether the best one is significantly better than the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, isfinite
from statistics import NormalDist

import numpy as np

from firstpage.aggregation.aggregation import aggregate
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
    """Yield (training questions, test questions) per fold; each question is tested once."""
    for test in np.array_split(np.random.default_rng(0).permutation(queries), FOLDS):
        yield np.setdiff1d(np.arange(queries), test), np.sort(test)


def fit_ranker(name: str, judged: Dataset) -> Ranker:
    """Return the ranker with this name, fitted."""
    return ranker(name, normalize=NORMALIZE).fit(judged)


def cross_validated_scores(judged: Dataset, progress: Progress | None = None) -> dict[str, Floats]:
    """Return the scores of all documents per ranker, from models trained without their question."""
    systems: dict[str, Floats] = {}
    for number, name in enumerate(RANKERS):
        scores = np.empty(judged.n_docs)
        for fold, (train, test) in enumerate(folds(len(judged))):
            model = fit_ranker(name, judged[train])
            scores[query_rows(judged.offsets, test)] = model.predict(judged[test])
            if progress is not None:
                progress(number * FOLDS + fold + 1, FOLDS * len(RANKERS))
        systems[name] = scores
    return systems


COMBINED = "all four together"
WEIGHT_MEASURE = "NDCG@5"


@dataclass(frozen=True, eq=False)
class CombinedRanking:
    """The aggregated ranking, and the mean weight of each ranker's vote."""

    scores: Floats
    weights: Mapping[str, float]


def combine_rankings(systems: Mapping[str, Floats], judged: Dataset) -> CombinedRanking:
    """Aggregate rankings by Supervised Kemeny, with weights learned on other questions."""
    scores = np.empty(judged.n_docs)
    weights = []
    for train, test in folds(len(judged)):
        train_rows, test_rows = (query_rows(judged.offsets, fold) for fold in (train, test))
        learned = supervised_weights(
            [s[train_rows] for s in systems.values()], judged[train], WEIGHT_MEASURE
        )
        votes = [s[test_rows] for s in systems.values()]
        base = votes[int(np.argmax(learned.weights))]
        ballots = Ballots.from_scores(votes, judged[test].offsets, base, names=list(systems))
        scores[test_rows] = aggregate(ballots, "skr", weights=learned).scores
        weights.append(learned.weights)
    means = np.mean(weights, axis=0).tolist()
    return CombinedRanking(scores, dict(zip(systems, means, strict=True)))


MAIN_MEASURE = "NDCG@5"
MEASURES = (MAIN_MEASURE, "ERR", "RR", "Recall@5")
ALPHA = 0.05
POWER = 0.8  # probability to detect a true difference of the observed size


@dataclass(frozen=True, eq=False)
class BaselineComparison:
    """The learned rankings compared with the best ranking that needs no training.

    Attributes
    ----------
    comparison : Comparison
        All systems under all measures.
    baseline : str
        The best ranking that needs no training.
    best : str
        The best learned ranking.
    first_correct : mapping of str to int
        Number of questions whose first result is a correct answer, per system.
    """

    comparison: Comparison
    baseline: str
    best: str
    first_correct: Mapping[str, int]

    @property
    def verdict(self) -> Difference:
        """The best learned ranking against the baseline, by the main measure."""
        return difference(self.comparison, MAIN_MEASURE, self.best, self.baseline)

    @property
    def significant(self) -> bool:
        """Whether the verdict is statistically significant, corrected for all rankers tried."""
        return self.verdict.p_corrected < ALPHA

    @property
    def questions_needed(self) -> int | None:
        """The number of questions to detect the difference with probability `POWER`, or None.

        The significance level is corrected for all learned rankings tried, as in the verdict.
        """
        effect = abs(self.verdict.effect)
        if not (effect > 0 and isfinite(effect)):
            return None
        normal = NormalDist()
        tried = len(self.comparison.systems) - 1
        z = normal.inv_cdf(1 - ALPHA / (2 * tried)) + normal.inv_cdf(POWER)
        return ceil(z**2 / effect**2)


def best_of(systems: Mapping[str, Floats], data: Dataset) -> str:
    """Return the best system by the main measure."""
    means = {
        name: evaluate(s, data, measures=MAIN_MEASURE)[MAIN_MEASURE] for name, s in systems.items()
    }
    return max(means, key=lambda name: means[name])


def compare_with_baseline(
    baselines: Mapping[str, Floats], learned: Mapping[str, Floats], data: Dataset
) -> BaselineComparison:
    """Compare learned rankings with the best baseline by the correct grades."""
    baseline = best_of(baselines, data)
    systems = {baseline: baselines[baseline], **learned}
    comparison = compare(systems, data, measures=MEASURES, baseline=baseline)
    best = best_of(learned, data)
    counts = {name: first_correct(scores, data) for name, scores in systems.items()}
    return BaselineComparison(comparison, baseline, best, counts)


def difference(comparison: Comparison, measure: str, system: str, against: str) -> Difference:
    """Return the difference of two systems under a measure."""
    return next(
        d for d in comparison.differences
        if (d.measure, d.system, d.against) == (measure, system, against)
    )  # fmt: skip


def first_correct(scores: Floats, data: Dataset) -> int:
    """Return the number of questions whose first result is a correct answer."""
    return sum(int(first_page(scores, data, q, 1)[0][1] > 0) for q in range(len(data)))


def first_page(scores: Floats, data: Dataset, question: int, k: int) -> list[tuple[str, int]]:
    """Return the first k results of a question: document and grade."""
    assert data.docids is not None
    lo, hi = (int(o) for o in data.offsets[question : question + 2])
    order = lo + np.argsort(-scores[lo:hi], kind="stable")[:k]
    return [(str(data.docids[int(row)]), int(data.y[row])) for row in order]


def extremes(compared: BaselineComparison) -> tuple[int, int]:
    """Return the questions with the largest gain and the largest loss against the baseline."""
    values = compared.comparison.values(MAIN_MEASURE)
    names = compared.comparison.systems
    gain = values[names.index(compared.best)] - values[names.index(compared.baseline)]
    return int(gain.argmax()), int(gain.argmin())
