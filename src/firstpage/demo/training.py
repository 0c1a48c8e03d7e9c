"""The aggregating step: the four rankers vote, and Supervised Kemeny makes one ranking of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from firstpage.aggregation.aggregate import aggregate
from firstpage.aggregation.ballots import Ballots
from firstpage.aggregation.weights import supervised_weights
from firstpage.data.dataset import Dataset
from firstpage.data.groups import rows_of
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
            scores[rows_of(judged.offsets, test)] = model.predict(judged[test])
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
        rows = rows_of(judged.offsets, others)
        measured = supervised_weights([s[rows] for s in systems.values()], judged[others], MEASURE)
        mine = rows_of(judged.offsets, part)
        votes = [s[mine] for s in systems.values()]
        base = votes[int(np.argmax(measured.weights))]
        ballots = Ballots.of_scores(votes, judged[part].offsets, base, names=list(systems))
        scores[mine] = aggregate(ballots, "skr", weights=measured).scores
        weights.append(measured.weights)
    return Together(scores, dict(zip(systems, np.mean(weights, axis=0).tolist(), strict=True)))
