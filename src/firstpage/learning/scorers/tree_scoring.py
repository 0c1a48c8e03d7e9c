"""Fitted trees in the text format of LightGBM or XGBoost, read and scored by these libraries."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from firstpage.core import Array, DataError, Floats, Ints, missing_dependency
from firstpage.core.engine import limited_openmp, resolve
from firstpage.learning.scorers.forest import Forest, lightgbm_forest, xgboost_forest
from firstpage.learning.scorers.scoring_base import (
    Contributions,
    Importances,
    JsonObject,
    LibraryModel,
    ScoringBase,
)

if TYPE_CHECKING:
    from firstpage.data import Features

Untyped: TypeAlias = Any
"""A module, booster, dataset or parameter of LightGBM or XGBoost, which are optional."""
NO_SPLIT = (
    "the trees have no split. Each feature is constant, or there are too few documents for two "
    "leaves; lower min_docs, as in scorer='trees(min_docs=5)'."
)
TREE_SIZES = re.compile(r"^tree_sizes=.*\n", re.MULTILINE)
CHUNK_ROWS = 1 << 16  # that XGBoost scores at a time


def import_lightgbm() -> Untyped:
    try:
        import lightgbm
    except ImportError as error:
        raise missing_dependency(
            "lightgbm", "trees", "Growing trees (LambdaMART, scorer='trees')"
        ) from error
    return lightgbm


def import_xgboost() -> Untyped:
    try:
        import xgboost
    except ImportError as error:
        raise missing_dependency("xgboost-cpu", "trees", "library='xgboost'") from error
    return xgboost


class LightGBMText:
    """Trees in the text format of LightGBM."""

    @staticmethod
    def error() -> type[Exception]:
        error: type[Exception] = import_lightgbm().basic.LightGBMError
        return error

    @staticmethod
    def is_complete(text: str) -> bool:
        return text.startswith("tree") and "end of trees" in text and "end of parameters" in text

    @staticmethod
    @lru_cache(8)
    def read(text: str) -> Untyped:
        # With sizes LightGBM reads trees in threads, and a damaged tree ends the process.
        return import_lightgbm().Booster(model_str=TREE_SIZES.sub("", text, 1))

    @classmethod
    def predict(cls, text: str, X: Features, threads: int) -> Floats:
        rows: Untyped = X
        if not isinstance(X, np.ndarray):
            from scipy.sparse import csr_matrix

            rows = csr_matrix(X)  # LightGBM would convert it with a warning
        scores = cls.read(text).predict(rows, raw_score=True, num_threads=threads)
        return np.asarray(scores, np.float64)

    @staticmethod
    def gains(text: str, n_features: int) -> Floats:
        booster = LightGBMText.read(text)
        return np.asarray(booster.feature_importance("gain"), np.float64)

    @staticmethod
    def contributions(text: str, X: Array) -> Floats:
        values = LightGBMText.read(text).predict(X, raw_score=True, pred_contrib=True)
        return np.asarray(values, np.float64)

    @staticmethod
    def forest(text: str, source: str) -> Forest:
        return lightgbm_forest(text, source)


class XGBoostText:
    """Trees in the JSON format of XGBoost."""

    @staticmethod
    def error() -> type[Exception]:
        error: type[Exception] = import_xgboost().core.XGBoostError
        return error

    @staticmethod
    def is_complete(text: str) -> bool:
        try:
            return "learner" in json.loads(text)
        except (ValueError, TypeError, RecursionError):
            return False

    @staticmethod
    @lru_cache(8)
    def read(text: str, threads: int | None = None) -> Untyped:
        booster = import_xgboost().Booster({} if threads is None else {"nthread": threads})
        with limited_openmp(threads):  # loading ignores the parameter
            booster.load_model(bytearray(text.encode()))
        return booster

    @classmethod
    def predict(cls, text: str, X: Features, threads: int) -> Floats:
        booster, matrix = cls.read(text, threads), import_xgboost().DMatrix
        scores = [np.empty(0)]
        for lo in range(0, X.shape[0], CHUNK_ROWS):
            rows = X[lo : lo + CHUNK_ROWS]
            dense = rows if isinstance(rows, np.ndarray) else rows.toarray()  # 0 is not missing
            data = matrix(dense, nthread=threads)
            scores.append(booster.predict(data, output_margin=True))
        return np.concatenate(scores).astype(np.float64)

    @staticmethod
    def gains(text: str, n_features: int) -> Floats:
        out = np.zeros(n_features)
        for name, gain in XGBoostText.read(text).get_score(importance_type="total_gain").items():
            out[int(name.removeprefix("f"))] = gain
        return out

    @staticmethod
    def contributions(text: str, X: Array) -> Floats:
        values = XGBoostText.read(text).predict(import_xgboost().DMatrix(X), pred_contribs=True)
        return np.asarray(values, np.float64)

    @staticmethod
    def forest(text: str, source: str) -> Forest:
        return xgboost_forest(text, source)


FORMATS: dict[str, type[LightGBMText] | type[XGBoostText]] = {
    "lightgbm": LightGBMText,
    "xgboost": XGBoostText,
}


@contextmanager
def library_errors(library: str) -> Iterator[None]:
    """Raise errors of the library as DataError, with their first line as the message."""
    try:
        yield
    except FORMATS[library].error() as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")
        if "num_features()) > (0)" in reason:  # LightGBM drops features that it cannot split
            raise DataError(f"{library} refuses: {NO_SPLIT}") from error
        raise DataError(f"{library} refuses: {reason}.") from error


@dataclass(frozen=True, eq=False)
class TreesScoring(ScoringBase):
    """Fitted trees, in the text format of the library."""

    library: str
    text: str
    n_features: int

    def __repr__(self) -> str:
        size = len(self.text)
        return f"TreesScoring({self.library}, {self.n_features} features, {size:,} characters)"

    @property
    def reads_missing(self) -> bool:
        return True

    @property
    def export_kinds(self) -> tuple[str, ...]:
        return "trees", self.library

    @property
    def library_model(self) -> LibraryModel:
        return LibraryModel(self.library, self.text)

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        """Return one score per document."""
        with library_errors(self.library):
            return FORMATS[self.library].predict(self.text, X, resolve(threads))

    def explain(self) -> Importances:
        """Return the reduction of the loss by the splits on each feature, summed.

        Trees of other tools may lack it; then the splits on each feature are counted.
        """
        with library_errors(self.library):
            gains = FORMATS[self.library].gains(self.text, self.n_features)
        if gains.any():
            return Importances("gain of splits", gains)
        splits = np.concatenate([tree.feature[tree.feature >= 0] for tree in self.forest("").trees])
        counts = np.bincount(splits, minlength=self.n_features).astype(np.float64)
        return Importances("number of splits", counts)

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return Shapley values, computed by the library."""
        with library_errors(self.library):
            values = FORMATS[self.library].contributions(self.text, X)
        return Contributions("Shapley value", values[:, :-1], values[:, -1])

    def forest(self, source: str) -> Forest:
        return FORMATS[self.library].forest(self.text, source)

    def to_dict(self) -> JsonObject:
        return {
            "kind": "trees",
            "library": self.library,
            "n_features": self.n_features,
            "text": self.text,
        }

    @classmethod
    def from_dict(cls, stored: JsonObject) -> TreesScoring:
        if stored["library"] not in FORMATS:
            raise DataError(f"trees of the library {stored['library']!r} cannot be read.")
        if not FORMATS[stored["library"]].is_complete(stored["text"]):
            raise DataError(f"the trees are not a complete model of {stored['library']}.")
        if type(stored["n_features"]) is not int or stored["n_features"] < 1:
            raise DataError("the number of features of the trees is not an integer of at least 1")
        return cls(stored["library"], stored["text"], stored["n_features"])
