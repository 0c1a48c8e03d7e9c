"""Train and test over the folds of a LETOR folder, with tuning and several seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from firstpage.data.folds import Fold
from firstpage.errors import DataError
from firstpage.measures.base import Measure
from firstpage.measures.evaluate import evaluate
from firstpage.rankers.base import Ranker
from firstpage.rankers.tuning import tune
from firstpage.types import Floats

DEFAULT_MEASURES = ("NDCG@1", "NDCG@3", "NDCG@10", "AP")


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Test values of every query, by ranker; the mean over folds is the mean over queries' folds.

    values[name][measure] has one row a seed and one column a test query.
    """

    measures: tuple[str, ...]
    convention: str
    queries: tuple[str, ...]
    fold_of: Floats
    values: dict[str, dict[str, Floats]]
    chosen: dict[str, list[dict[str, Any]]]

    def mean(self, name: str, measure: str) -> float:
        """As published tables have it: the mean over folds of the fold's mean, over seeds."""
        values = self.values[name][measure].mean(axis=0)
        folds = [values[self.fold_of == f].mean() for f in np.unique(self.fold_of)]
        return float(np.mean(folds))

    def over_queries(self, name: str, measure: str) -> float:
        """Standard error of the mean over queries (values averaged over seeds)."""
        values = self.values[name][measure].mean(axis=0)
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0

    def over_seeds(self, name: str, measure: str) -> float | None:
        """Standard deviation of the mean between seeds; None with one seed."""
        means = self.values[name][measure].mean(axis=1)
        return float(means.std(ddof=1)) if len(means) > 1 else None

    def to_dict(self) -> dict[str, Any]:
        return {
            "convention": self.convention,
            "queries": len(self.queries),
            "results": [
                {
                    "ranker": name,
                    "measure": m,
                    "mean": self.mean(name, m),
                    "se_queries": self.over_queries(name, m),
                    "sd_seeds": self.over_seeds(name, m),
                }
                for name in self.values
                for m in self.measures
            ],
            "chosen": self.chosen,
        }


def cross_validate(
    rankers: Ranker | dict[str, Ranker] | Iterable[Ranker],
    folds: Sequence[Fold],
    measures: str | Measure | Sequence[str | Measure] = DEFAULT_MEASURES,
    convention: str = "default",
    tuned: bool = False,
    seeds: Sequence[int] = (0,),
    callback: Callable[[str, int, int], object] | None = None,
    **search: Any,
) -> CrossValidation:
    """Fit on each fold's training data, choose on its validation data, measure on its test data.

    tuned     choose parameters by `tune` (options of it may follow); else fit as given
    seeds     fit again for each; they break ties and start networks
    callback  called with (ranker, fold, seed) before each fit
    """
    if not folds:
        raise DataError("there is no fold to train on.")
    seeds = list(seeds)
    if not seeds:
        raise DataError("name at least one seed.")
    asked = [measures] if isinstance(measures, (str, Measure)) else list(measures)
    texts = [str(m) for m in asked]
    named = _named(rankers)
    values: dict[str, dict[str, list[Floats]]] = {name: {m: [] for m in texts} for name in named}
    chosen: dict[str, list[dict[str, Any]]] = {name: [] for name in named}
    for name, ranker in named.items():
        for seed in seeds:
            parts: dict[str, list[Floats]] = {m: [] for m in texts}
            for fold in folds:
                if callback is not None:
                    callback(name, fold.number, seed)
                candidate = clone(ranker).set_params(seed=seed)
                candidate, picked = _fit(candidate, fold, tuned, search)
                if tuned:
                    chosen[name].append({"fold": fold.number, "seed": seed, **picked})
                scores = candidate.predict(fold.test)
                got = evaluate(scores, fold.test, measures=texts, convention=convention)
                for m in texts:
                    parts[m].append(got.per_query(m))
            for m in texts:
                values[name][m].append(np.concatenate(parts[m]))
    fold_of = np.concatenate([np.full(len(f.test), f.number) for f in folds])
    return CrossValidation(
        tuple(texts),
        convention,
        tuple(q for fold in folds for q in fold.test.queries),
        fold_of.astype(np.float64),
        {name: {m: np.array(rows) for m, rows in by.items()} for name, by in values.items()},
        chosen,
    )


def _fit(
    ranker: Ranker, fold: Fold, tuned: bool, search: dict[str, Any]
) -> tuple[Ranker, dict[str, str]]:
    """Fitted on one fold, and what tuning chose.  A half-trained model is no result."""
    picked: dict[str, str] = {}
    if tuned:
        found = tune(ranker, fold.train, fold.vali, **search)
        ranker, interrupted = found.best, found.interrupted
        picked = {key: str(value) for key, value in found.parameters.items()}
    else:
        ranker.fit(fold.train, valid=fold.vali if "vali" in fold.paths else None)
        interrupted = ranker.interrupted_
    if interrupted:
        raise KeyboardInterrupt
    return ranker, picked


def _named(rankers: Any) -> dict[str, Ranker]:
    """Rankers by name; two of one name are numbered."""
    if isinstance(rankers, dict):
        return rankers
    found: dict[str, Ranker] = {}
    for ranker in [rankers] if isinstance(rankers, Ranker) else list(rankers):
        name, copies = str(ranker), 1
        while name in found:
            copies += 1
            name = f"{ranker} ({copies})"
        found[name] = ranker
    return found
