"""Gradient-boosted trees, grown by LightGBM or XGBoost from our slopes and curvatures."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np

from firstpage.engine.threads import limited_openmp, resolve
from firstpage.errors import DataError, missing_dependency
from firstpage.registry import check_number
from firstpage.scorers.forest import Forest, lightgbm_forest, xgboost_forest
from firstpage.scorers.scorer import (
    Contributions,
    Importances,
    JsonObject,
    LibraryModel,
    ScoringBase,
)
from firstpage.types import Array, Floats, Ints

if TYPE_CHECKING:
    from firstpage.data.dataset import Features

Untyped: TypeAlias = Any
"""A module, booster, dataset or parameter of LightGBM or XGBoost, which are optional."""
Slopes = Callable[[Floats], tuple[Floats, Floats]]
"""Scores of all training documents -> slope and curvature of the loss by each."""
NO_SPLIT = (
    "the trees have no split. Each feature is constant, or there are too few documents for two "
    "leaves; lower min_docs, as in scorer='trees(min_docs=5)'."
)
SPARSE = (
    "xgboost reads what a sparse matrix leaves out as missing, not as 0; grow trees of LightGBM "
    "(library=lightgbm), or use data.dense() first, if it fits into memory."
)
ROWS = 1 << 16  # that XGBoost scores at a time
Grown = Callable[[int, Untyped, Floats | None], bool]
"""(number of trees, the booster, scores of the validation documents) -> whether to stop."""


@dataclass(frozen=True)
class Trees:
    """A sum of decision trees.

    count     trees at most
    leaves    leaves of a tree
    rate      share of each tree's step that is taken
    min_docs  documents of a leaf at least (LightGBM's; XGBoost weighs curvature instead)
    library   "lightgbm" or "xgboost"
    options   more parameters, as the library calls them
    """

    count: int = 300
    leaves: int = 31
    rate: float = 0.1
    min_docs: int = 20
    library: str = "lightgbm"
    options: dict[str, Untyped] = field(default_factory=dict)
    additive: ClassVar[Literal[True]] = True

    def __post_init__(self) -> None:
        if self.library not in LIBRARIES:
            raise DataError(f"library must be one of {', '.join(LIBRARIES)}; got {self.library!r}.")
        check_number(self, "count", 1, integer=True)
        check_number(self, "leaves", 2, integer=True)
        check_number(self, "rate", above=0)
        check_number(self, "min_docs", 1, integer=True)
        if not isinstance(self.options, dict):
            raise DataError(f"options of trees must be a dictionary; got {self.options!r}.")

    def __hash__(self) -> int:
        return hash((self.count, self.leaves, self.rate, self.library, repr(self.options)))

    def grow(
        self,
        X: Features,
        slopes: Slopes,
        valid: Features | None,
        grown: Grown,
        seed: int,
        threads: int,
    ) -> tuple[Untyped, int]:
        """The booster, and how many trees it has; `grown` is told of every one."""
        library = LIBRARIES[self.library]
        with refusals(self.library):
            return library.grow(self, X, slopes, valid, grown, seed, threads)

    def parameters(self, seed: int, threads: int) -> dict[str, Untyped]:
        """As the library calls them."""
        return LIBRARIES[self.library].params(self, seed, threads)

    def splits(self, booster: Untyped) -> bool:
        """Return whether any tree has more than one leaf."""
        return LIBRARIES[self.library].splits(booster)

    def scoring(self, booster: Untyped, count: int, n_features: int) -> TreesScoring:
        text = LIBRARIES[self.library].text(booster, count)
        return TreesScoring(self.library, text, n_features)


class LightGBM:
    """LightGBM's part."""

    @staticmethod
    def error() -> type[Exception]:
        found: type[Exception] = lightgbm_or_error().basic.LightGBMError
        return found

    @staticmethod
    def params(trees: Trees, seed: int, threads: int) -> dict[str, Untyped]:
        return {
            "objective": "none", "verbosity": -1, "seed": seed, "num_threads": threads,
            "deterministic": True, "force_row_wise": True, "num_leaves": trees.leaves,
            "learning_rate": trees.rate, "min_data_in_leaf": trees.min_docs, **trees.options,
        }  # fmt: skip

    @classmethod
    def grow(
        cls,
        trees: Trees,
        X: Features,
        slopes: Slopes,
        valid: Features | None,
        grown: Grown,
        seed: int,
        threads: int,
    ) -> tuple[Untyped, int]:
        lightgbm = lightgbm_or_error()
        params = cls.params(trees, seed, threads)
        data = lightgbm.Dataset(X, np.zeros(X.shape[0]), params=params, free_raw_data=False)
        step = {"fobj": lambda scores, _: slopes(np.asarray(scores, np.float64))}
        return cls.boost(lightgbm.Booster(params, data), data, valid, trees.count, grown, step)

    @staticmethod
    def boost(
        booster: Untyped,
        data: Untyped,
        valid: Untyped,
        count: int,
        grown: Grown,
        step: dict[str, Untyped],
    ) -> tuple[Untyped, int]:
        """Tree by tree, so that each can be watched."""
        if valid is not None:
            # With the parameters of training: LightGBM has one number of threads for all that it
            # does, and data made without that number set it back to all cores.
            other = data.create_valid(valid, np.zeros(valid.shape[0]), params=data.params)
            booster.add_valid(other, "valid")
        for tree in range(1, count + 1):
            done = booster.update(**step)
            if grown(tree, booster, None if valid is None else _valid_scores(booster)) or done:
                return booster, tree
        return booster, count

    @staticmethod
    def splits(booster: Untyped) -> bool:
        return bool(booster.feature_importance("split").any())

    @staticmethod
    def text(booster: Untyped, count: int) -> str:
        return str(booster.model_to_string(num_iteration=count))

    @staticmethod
    def whole(text: str) -> bool:
        return text.startswith("tree") and "end of trees" in text and "end of parameters" in text

    @staticmethod
    @lru_cache(8)
    def read(text: str) -> Untyped:
        return lightgbm_or_error().Booster(model_str=text)

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
        booster = LightGBM.read(text)
        return np.asarray(booster.feature_importance("gain"), np.float64)

    @staticmethod
    def contributions(text: str, X: Array) -> Floats:
        found = LightGBM.read(text).predict(X, raw_score=True, pred_contrib=True)
        return np.asarray(found, np.float64)

    @staticmethod
    def forest(text: str, source: str) -> Forest:
        return lightgbm_forest(text, source)


class XGBoost:
    """XGBoost's part."""

    @staticmethod
    def error() -> type[Exception]:
        found: type[Exception] = xgboost_or_error().core.XGBoostError
        return found

    @staticmethod
    def params(trees: Trees, seed: int, threads: int) -> dict[str, Untyped]:
        return {
            "objective": "reg:squarederror", "base_score": 0.0, "tree_method": "hist",
            "grow_policy": "lossguide", "max_leaves": trees.leaves, "max_depth": 0, "seed": seed,
            "eta": trees.rate, "lambda": 0.0, "min_child_weight": 1e-3, "nthread": threads,
            **trees.options,
        }  # fmt: skip

    @classmethod
    def grow(
        cls,
        trees: Trees,
        X: Features,
        slopes: Slopes,
        valid: Features | None,
        grown: Grown,
        seed: int,
        threads: int,
    ) -> tuple[Untyped, int]:
        xgboost = xgboost_or_error()
        if not isinstance(X, np.ndarray) or not isinstance(valid, np.ndarray | None):
            raise DataError(SPARSE)
        data = xgboost.DMatrix(X, np.zeros(X.shape[0]), nthread=threads)
        other = None if valid is None else xgboost.DMatrix(valid, nthread=threads)
        params = cls.params(trees, seed, threads)
        booster = xgboost.Booster(params, [data] if other is None else [data, other])
        for tree in range(trees.count):
            booster.update(data, tree, fobj=lambda scores, _: slopes(scores.astype(np.float64)))
            scores = None
            if other is not None:
                found = booster.predict(other, output_margin=True)
                scores = np.asarray(found, np.float64)
            if grown(tree + 1, booster, scores):
                return booster, tree + 1
        return booster, trees.count

    @staticmethod
    def splits(booster: Untyped) -> bool:
        return bool(booster.get_score(importance_type="weight"))

    @staticmethod
    def text(booster: Untyped, count: int) -> str:
        return bytes(booster[:count].save_raw("json")).decode()

    @staticmethod
    def whole(text: str) -> bool:
        try:
            return "learner" in json.loads(text)
        except (ValueError, TypeError, RecursionError):
            return False

    @staticmethod
    @lru_cache(8)
    def read(text: str, threads: int | None = None) -> Untyped:
        booster = xgboost_or_error().Booster({} if threads is None else {"nthread": threads})
        with limited_openmp(threads):  # reading heeds no parameter
            booster.load_model(bytearray(text.encode()))
        return booster

    @classmethod
    def predict(cls, text: str, X: Features, threads: int) -> Floats:
        booster, matrix = cls.read(text, threads), xgboost_or_error().DMatrix
        scores = [np.empty(0)]
        for lo in range(0, X.shape[0], ROWS):
            rows = X[lo : lo + ROWS]
            dense = rows if isinstance(rows, np.ndarray) else rows.toarray()  # 0 is not missing
            data = matrix(dense, nthread=threads)
            scores.append(booster.predict(data, output_margin=True))
        return np.concatenate(scores).astype(np.float64)

    @staticmethod
    def gains(text: str, n_features: int) -> Floats:
        out = np.zeros(n_features)
        for name, gain in XGBoost.read(text).get_score(importance_type="total_gain").items():
            out[int(name.removeprefix("f"))] = gain
        return out

    @staticmethod
    def contributions(text: str, X: Array) -> Floats:
        found = XGBoost.read(text).predict(xgboost_or_error().DMatrix(X), pred_contribs=True)
        return np.asarray(found, np.float64)

    @staticmethod
    def forest(text: str, source: str) -> Forest:
        return xgboost_forest(text, source)


LIBRARIES: dict[str, type[LightGBM] | type[XGBoost]] = {"lightgbm": LightGBM, "xgboost": XGBoost}


def _valid_scores(booster: Untyped) -> Floats:
    """LightGBM keeps them up to date, and shows them to evaluation functions alone."""
    seen: list[Floats] = []

    def look(scores: Floats, _: Untyped) -> tuple[str, float, bool]:
        seen.append(np.array(scores, np.float64))
        return "", 0.0, True

    booster.eval_valid(look)
    return seen[0]


@contextmanager
def refusals(library: str) -> Iterator[None]:
    """What a library refuses, said in its first line as an error of ours."""
    try:
        yield
    except LIBRARIES[library].error() as error:
        said = (str(error).strip().splitlines() or ["it does not say why"])[0].rstrip(".")
        if "num_features()) > (0)" in said:  # LightGBM drops features that it cannot split
            raise DataError(f"{library} refuses: {NO_SPLIT}") from error
        raise DataError(f"{library} refuses: {said}.") from error


def lightgbm_or_error() -> Untyped:
    try:
        import lightgbm
    except ImportError as error:
        raise missing_dependency("lightgbm", "trees", "scorer='trees'") from error
    return lightgbm


def xgboost_or_error() -> Untyped:
    try:
        import xgboost
    except ImportError as error:
        raise missing_dependency("xgboost-cpu", "trees", "library='xgboost'") from error
    return xgboost


@dataclass(frozen=True, eq=False)
class TreesScoring(ScoringBase):
    """Grown trees, as the library's own text."""

    library: str
    text: str
    n_features: int

    def __repr__(self) -> str:
        size = len(self.text)
        return f"TreesScoring({self.library}, {self.n_features} features, {size:,} characters)"

    @property
    def export_kinds(self) -> tuple[str, ...]:
        return "trees", self.library

    @property
    def library_model(self) -> LibraryModel:
        return LibraryModel(self.library, self.text)

    def predict(
        self, X: Features, threads: int | None = None, offsets: Ints | None = None
    ) -> Floats:
        with refusals(self.library):
            return LIBRARIES[self.library].predict(self.text, X, resolve(threads))

    def explain(self) -> Importances:
        """Return what the splits on each feature took off the loss, summed."""
        with refusals(self.library):
            gains = LIBRARIES[self.library].gains(self.text, self.n_features)
        return Importances("gain of splits", gains)

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return Shapley values, as the library computes them."""
        with refusals(self.library):
            values = LIBRARIES[self.library].contributions(self.text, X)
        return Contributions("Shapley value", values[:, :-1], values[:, -1])

    def forest(self, source: str) -> Forest:
        return LIBRARIES[self.library].forest(self.text, source)

    def to_dict(self) -> JsonObject:
        return {
            "kind": "trees", "library": self.library, "n_features": self.n_features,
            "text": self.text,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, stored: JsonObject) -> TreesScoring:
        if stored["library"] not in LIBRARIES:
            raise DataError(f"trees of the library {stored['library']!r} cannot be read.")
        if not LIBRARIES[stored["library"]].whole(stored["text"]):
            raise DataError(f"the trees are no whole model of {stored['library']}.")
        if type(stored["n_features"]) is not int or stored["n_features"] < 1:
            raise DataError("the number of features of the trees is no number from 1 on")
        return cls(stored["library"], stored["text"], stored["n_features"])
