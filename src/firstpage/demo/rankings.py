"""Rankings of all questions: tuned BM25, learned rankings and their aggregation; comparisons.

Every question is ranked by a model that was trained, and a BM25 that was tuned, without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, isfinite
from statistics import NormalDist

import numpy as np

from firstpage.core import Progress
from firstpage.data import Dataset, Fold, Qrels, Run
from firstpage.evaluation.aggregation import aggregate
from firstpage.evaluation.comparison import Comparison, Difference, compare
from firstpage.learning.rankers import Ranker, cross_validate, ranker
from firstpage.search import Index, Queries

FOLDS = 5
SEED = 0  # of the folds
RANKERS = ("ListNet", "ListMLE(k=5)", "FocusedNet(k=5)", "RankSVM")
NORMALIZE = "standard"
BASELINE = "BM25"
HYBRID = "hybrid"  # words and vectors, fused with equal weights
ENCODER = "minilm"
COMBINED = "aggregate"
MAIN_MEASURE = "NDCG@5"
MEASURES = (MAIN_MEASURE, "NDCG@10", "RR", "Recall@5")
ALPHA = 0.05
POWER = 0.8  # probability to detect a true difference of the observed size

Runs = Mapping[str, Run]


def tuned_bm25(
    index: Index,
    queries: Queries,
    labels: Qrels,
    folds: Sequence[Fold],
    depth: int,
    progress: Progress | None = None,
) -> Run:
    """Return the ranking by BM25, tuned for the questions of each fold on those of the others."""
    table: dict[str, dict[str, float]] = {}
    for number, fold in enumerate(folds, 1):
        tested = set(fold.test.queries)
        known = set(fold.train.queries) | set(fold.valid.queries)
        scoring, _ = index.tune([q for q in queries if q[0] in known], labels)
        test = [q for q in queries if q[0] in tested]
        stage = replace(index.stage("bm25"), scoring=scoring)
        table |= index.candidates(test, depth, stage).to_dict()
        if progress is not None:
            progress(number, len(folds))
    return Run.from_dict({name: table[name] for name, _ in queries if name in table}, "bm25")


def rankers() -> dict[str, Ranker]:
    """Return the rankers by name."""
    return {name: ranker(name, normalize=NORMALIZE) for name in RANKERS}


def learned_runs(folds: Sequence[Fold], progress: Progress | None = None) -> dict[str, Run]:
    """Return the cross-validated ranking of all questions per ranker."""
    count = 0

    def report(*_: object) -> None:
        nonlocal count
        if progress is not None:
            progress(count, FOLDS * len(RANKERS))
        count += 1

    return cross_validate(rankers(), folds, MAIN_MEASURE, progress=report).runs


def fit_ranker(name: str, data: Dataset) -> Ranker:
    """Return the ranker with this name, fitted to all questions."""
    return rankers()[name].fit(data)


@dataclass(frozen=True, eq=False)
class CombinedRanking:
    """The aggregated ranking, and the weight of each ranker's vote."""

    run: Run
    weights: Mapping[str, float]


def combine_rankings(runs: Runs, labels: Qrels) -> CombinedRanking:
    """Aggregate rankings by Supervised Kemeny, with weights learned from the labels."""
    aggregation = aggregate(list(runs.values()), qrels=labels, measure=MAIN_MEASURE, name=COMBINED)
    weights = dict(zip(runs, aggregation.weights.tolist(), strict=True))
    return CombinedRanking(aggregation.run, weights)


@dataclass(frozen=True, eq=False)
class BaselineComparison:
    """The rankings compared with tuned BM25, and with the hybrid if there is one.

    The correct answers judge.

    Attributes
    ----------
    comparison : Comparison
        All systems under all measures.
    over_hybrid : Comparison or None
        The learned rankings compared with the hybrid whose candidates they rank.
    baseline : str
        The name of the baseline.
    best : str
        The best learned ranking.
    first_correct : mapping of str to int
        Number of questions whose first result is a correct answer, per system.
    """

    comparison: Comparison
    over_hybrid: Comparison | None
    baseline: str
    best: str
    first_correct: Mapping[str, int]

    @property
    def steps(self) -> list[Difference]:
        """What each step gains: hybrid over BM25, learned over hybrid, and both together."""
        if self.over_hybrid is None:
            return []
        return [
            difference(self.comparison, MAIN_MEASURE, HYBRID, self.baseline),
            difference(self.over_hybrid, MAIN_MEASURE, self.best, HYBRID),
            self.verdict,
        ]

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


def compare_with_baseline(baseline: str, systems: Runs, answers: Qrels) -> BaselineComparison:
    """Compare all systems with one of them, the baseline, by the correct answers."""
    comparison = compare(systems, answers, measures=MEASURES, baseline=baseline)
    means = {e.name: e[MAIN_MEASURE] for e in comparison.evaluations}
    learned = [name for name in means if name not in (baseline, HYBRID)]
    best = max(learned, key=lambda name: means[name])
    over_hybrid = None
    if HYBRID in systems:
        others = {name: run for name, run in systems.items() if name != baseline}
        over_hybrid = compare(others, answers, measures=MEASURES, baseline=HYBRID)
    grades = answers.to_dict()
    counts = {name: first_correct(run, grades) for name, run in systems.items()}
    return BaselineComparison(comparison, over_hybrid, baseline, best, counts)


def difference(comparison: Comparison, measure: str, system: str, against: str) -> Difference:
    """Return the difference of two systems under a measure."""
    return next(
        d
        for d in comparison.differences
        if (d.measure, d.system, d.against) == (measure, system, against)
    )


def first_pages(run: Run, k: int) -> dict[str, list[str]]:
    """Return the first k documents of each question."""
    return {
        query: sorted(scores, key=lambda document: -scores[document])[:k]
        for query, scores in run.to_dict().items()
    }


def first_correct(run: Run, answers: Mapping[str, Mapping[str, float]]) -> int:
    """Return the number of questions whose first result is a correct answer."""
    pages = first_pages(run, 1)
    return sum(answers.get(q, {}).get(page[0], 0) > 0 for q, page in pages.items() if page)


def extremes(compared: BaselineComparison) -> tuple[str, str]:
    """Return the questions with the largest gain and the largest loss against the baseline."""
    values = compared.comparison.values(MAIN_MEASURE)
    names = compared.comparison.systems
    gain = values[names.index(compared.best)] - values[names.index(compared.baseline)]
    queries = compared.comparison.queries
    return str(queries[int(np.argmax(gain))]), str(queries[int(np.argmin(gain))])
