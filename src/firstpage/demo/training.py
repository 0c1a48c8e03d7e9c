"""The training step: four rankers, each question ranked by models that never saw it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.groups import rows_of
from firstpage.demo.tell import Tick
from firstpage.rankers.base import Ranker
from firstpage.rankers.names import ranker
from firstpage.types import Floats, Ints

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


def learned(judged: Dataset, tick: Tick | None = None) -> dict[str, Floats]:
    """Scores of all documents by each ranker, always of models that were trained without them."""
    found: dict[str, Floats] = {}
    for number, name in enumerate(RANKERS):
        scores = np.empty(judged.n_docs)
        for fold, (train, test) in enumerate(folds(len(judged))):
            model = trained(name, judged[train])
            scores[rows_of(judged.offsets, test)] = model.predict(judged[test])
            if tick is not None:
                tick(number * FOLDS + fold + 1, FOLDS * len(RANKERS))
        found[name] = scores
    return found
