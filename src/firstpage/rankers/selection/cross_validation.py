"""Train and test over the folds of a LETOR folder, with tuning and several seeds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from firstpage.data.dataset import Dataset
from firstpage.data.folds import Fold
from firstpage.errors import DataError
from firstpage.measures.evaluate import evaluate
from firstpage.measures.registry import Named, by_text
from firstpage.measures.significance import corrected, randomization
from firstpage.rankers.fit.record import Record
from firstpage.rankers.ranker import Ranker
from firstpage.rankers.selection.tuning import tune
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
        return float((self.values[name][measure] * self._fold_weights()).mean())

    def _fold_weights(self) -> Floats:
        """Return a weight per query, 1 on average, by which every fold weighs the same."""
        _, fold, sizes = np.unique(self.fold_of, return_inverse=True, return_counts=True)
        weights: Floats = len(fold) / (len(sizes) * sizes[fold])
        return weights

    def over_queries(self, name: str, measure: str) -> float:
        """Standard error of the mean over queries (values averaged over seeds)."""
        values = self.values[name][measure].mean(axis=0)
        return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0

    def over_seeds(self, name: str, measure: str) -> float | None:
        """Standard deviation of the mean between seeds; None with one seed."""
        means = (self.values[name][measure] * self._fold_weights()).mean(axis=1)
        return float(means.std(ddof=1)) if len(means) > 1 else None

    def against(self, baseline: str, measure: str) -> dict[str, tuple[float, float]]:
        """Return the difference of every other ranker's mean to the baseline's, and its p-value.

        The means are those of `mean`.  The p-value is of a randomization test of that difference
        over queries, each with the weight of its fold, corrected by Holm's rule.
        """
        if baseline not in self.values:
            known = ", ".join(self.values)
            raise DataError(
                f"there is no ranker {baseline!r} to compare with (there are: {known})."
            )
        own = self.values[baseline][measure].mean(axis=0)
        others = [name for name in self.values if name != baseline]
        weights = self._fold_weights()
        apart = [(self.values[name][measure].mean(axis=0) - own) * weights for name in others]
        chances = corrected(np.array([randomization(each) for each in apart]), "holm")
        return {
            name: (float(each.mean()), float(p))
            for name, each, p in zip(others, apart, chances, strict=True)
        }

    def __str__(self) -> str:
        """Means by ranker and measure, with their standard errors over queries."""
        seeds = len(next(iter(self.values.values()))[self.measures[0]])
        wide = max(len(name) for name in self.values)
        lines = [
            f"{len(self.queries)} test queries in {len(np.unique(self.fold_of))} folds, {seeds} "
            f"seed{'s' * (seeds > 1)}, convention {self.convention}; mean ± standard error"
        ]
        for name in self.values:
            cells = [
                f"{m} {self.mean(name, m):.4f} ± {self.over_queries(name, m):.4f}"
                for m in self.measures
            ]
            lines.append(f"{name:<{wide}}  {'  '.join(cells)}")
        return "\n".join(lines)

    __repr__ = __str__

    def to_dict(self, baseline: str | None = None) -> dict[str, Any]:
        found = self._to_dict()
        if baseline is not None:
            found["baseline"] = baseline
            found["differences"] = [
                {"ranker": name, "measure": m, "difference": apart, "p": p}
                for m in self.measures
                for name, (apart, p) in self.against(baseline, m).items()
            ]
        return found

    def _to_dict(self) -> Record:
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
    measures: Named | Sequence[Named] = DEFAULT_MEASURES,
    convention: str = "default",
    tuned: bool = False,
    seeds: Sequence[int] = (0,),
    callback: Callable[[str, int, int], object] | None = None,
    top_k: int | None = None,
    **search: Any,
) -> CrossValidation:
    """Fit on each fold's training data, choose on its validation data, measure on its test data.

    tuned     choose parameters by `tune` (options of it may follow); else fit as given
    seeds     fit again for each; they break ties and start networks
    callback  called with (ranker, fold, seed) before each fit
    top_k     train, choose and test on the top-k truth of the labels: k, k-1, .. 1, 0, .. 0, equal
              labels in the random order of the seed 0
    """
    if not folds:
        raise DataError("there is no fold to train on.")
    seeds = list(seeds)
    if not seeds:
        raise DataError("name at least one seed.")
    asked = by_text(measures)  # a learned one is read here, once for all folds
    texts = list(asked)
    named = _named(rankers)
    parts_of = [_Parts.of(fold, top_k) for fold in folds]
    values: dict[str, dict[str, list[Floats]]] = {name: {m: [] for m in texts} for name in named}
    chosen: dict[str, list[dict[str, Any]]] = {name: [] for name in named}
    for name, ranker in named.items():
        for seed in seeds:
            parts: dict[str, list[Floats]] = {m: [] for m in texts}
            for fold in parts_of:
                if callback is not None:
                    callback(name, fold.number, seed)
                candidate = clone(ranker).set_params(seed=seed)
                candidate, picked = _fit(candidate, fold, tuned, search)
                if tuned:
                    chosen[name].append({"fold": fold.number, "seed": seed, **picked})
                scores = candidate.predict(fold.test)
                got = evaluate(scores, fold.test, measures=asked.values(), convention=convention)
                for m, one in asked.items():
                    parts[m].append(got.per_query(str(one)))
            for m in texts:
                values[name][m].append(np.concatenate(parts[m]))
    fold_of = np.concatenate([np.full(len(f.test), f.number) for f in parts_of])
    return CrossValidation(
        tuple(texts),
        convention,
        tuple(q for fold in parts_of for q in fold.test.queries),
        fold_of.astype(np.float64),
        {name: {m: np.array(rows) for m, rows in by.items()} for name, by in values.items()},
        chosen,
    )


@dataclass(frozen=True, eq=False)
class _Parts:
    """What one fold brings."""

    number: int
    train: Dataset
    valid: Dataset | None
    test: Dataset

    @classmethod
    def of(cls, fold: Fold, k: int | None) -> _Parts:
        valid = fold.valid if "valid" in fold.paths else None
        parts = [fold.train, valid, fold.test]
        if k is not None:
            parts = [None if p is None else p.with_labels(p.truth.top_k(k)) for p in parts]
        train, valid, test = parts
        assert train is not None
        assert test is not None
        return cls(fold.number, train, valid, test)


def _fit(
    ranker: Ranker, fold: _Parts, tuned: bool, search: dict[str, Any]
) -> tuple[Ranker, dict[str, str]]:
    """Fitted on one fold, and what tuning chose.  A half-trained model is no result."""
    picked: dict[str, str] = {}
    if tuned:
        if fold.valid is None:
            raise DataError(f"fold {fold.number} has no validation data to choose parameters on.")
        found = tune(ranker, fold.train, fold.valid, **search)
        ranker, interrupted = found.best, found.interrupted
        picked = {key: str(value) for key, value in found.parameters.items()}
    else:
        ranker.fit(fold.train, valid=fold.valid)
        interrupted = ranker.interrupted_
    if interrupted:
        raise KeyboardInterrupt
    return ranker, picked


def _named(rankers: Ranker | Iterable[Ranker] | dict[str, Ranker]) -> dict[str, Ranker]:
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
