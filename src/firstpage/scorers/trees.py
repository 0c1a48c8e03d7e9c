"""Gradient-boosted trees, grown by LightGBM or XGBoost from gradients and curvatures of a loss."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
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
ScoreDerivatives = Callable[[Floats], tuple[Floats, Floats]]
"""Scores of all training documents -> gradient and curvature of the loss by each score."""
NO_SPLIT = (
    "the trees have no split. Each feature is constant, or there are too few documents for two "
    "leaves; lower min_docs, as in scorer='trees(min_docs=5)'."
)
SPARSE = (
    "xgboost reads the values that a sparse matrix omits as missing, not as 0; use LightGBM "
    "(library=lightgbm), or convert the data with data.dense() if they fit into memory."
)
FEATURE_FRACTION_NAMES = {"feature_fraction", "sub_feature", "colsample_bytree"}  # of LightGBM
FEATURE_FRACTION = 0.5  # of the features of a tree, where there are several forests
CHUNK_ROWS = 1 << 16  # that XGBoost scores at a time
TreeCallback = Callable[[int, Untyped, Floats | None], bool]
"""(number of trees, booster, scores of the validation documents) -> whether to stop."""


@dataclass(frozen=True)
class Trees:
    """Gradient-boosted decision trees, grown by LightGBM or XGBoost.

    Parameters
    ----------
    count : int, default 300
        The number of trees at most, at least 1.
    leaves : int, default 31
        The number of leaves of a tree at most, at least 2.
    rate : float, default 0.1
        The learning rate, by which the leaves of each tree are multiplied; above 0.
    min_docs : int, default 20
        The least number of documents of a leaf.  LightGBM only: XGBoost bounds the summed curvature
        of a leaf instead.
    library : {"lightgbm", "xgboost"}, default "lightgbm"
        The library that grows the trees.
    options : dict, optional
        More parameters of the library, by its own names.
    forests : int, default 1
        The number of forests that are grown side by side and whose scores are averaged.  Each has
        `count` trees at most.  With more than one, every tree is restricted to a random half of the
        features, unless `options` has another "feature_fraction".  LightGBM only.
    noise : float, default 0.0
        The standard deviation of normal noise that is added to the scores before the gradient of
        each tree is computed: trees then minimize the expected loss at scores with such noise.
    query_fraction : float, default 1.0
        The probability that a tree learns from a query; above 0, at most 1.  The queries are drawn
        anew for every tree.

    Raises
    ------
    DataError
        If `library` is unknown or `options` is not a dictionary.
    ParameterError
        If a number is out of its range.
    MissingDependency
        On fitting, if the library is not installed.

    References
    ----------
    Friedman (2001), Greedy function approximation: a gradient boosting machine.

    Examples
    --------
    >>> import firstpage as fp
    >>> ranker = fp.ListMLE(scorer="trees(count=100, leaves=7)")
    """

    count: int = 300
    leaves: int = 31
    rate: float = 0.1
    min_docs: int = 20
    library: str = "lightgbm"
    options: dict[str, Untyped] = field(default_factory=dict)
    forests: int = 1
    noise: float = 0.0
    query_fraction: float = 1.0
    additive: ClassVar[Literal[True]] = True

    def __post_init__(self) -> None:
        if self.library not in LIBRARIES:
            raise DataError(f"library must be one of {', '.join(LIBRARIES)}; got {self.library!r}.")
        check_number(self, "count", 1, integer=True)
        check_number(self, "leaves", 2, integer=True)
        check_number(self, "rate", above=0)
        check_number(self, "min_docs", 1, integer=True)
        check_number(self, "forests", 1, integer=True)
        check_number(self, "noise", 0)
        check_number(self, "query_fraction", above=0)
        if self.query_fraction > 1:
            raise DataError(f"query_fraction must be at most 1; got {self.query_fraction!r}.")
        if self.forests > 1 and self.library != "lightgbm":
            raise DataError(f"forests > 1 need library='lightgbm'; got {self.library!r}.")
        if not isinstance(self.options, dict):
            raise DataError(f"options of trees must be a dictionary; got {self.options!r}.")

    def __hash__(self) -> int:
        numbers = self.count, self.leaves, self.rate, self.forests, self.noise, self.query_fraction
        return hash((*numbers, self.library, repr(self.options)))

    @property
    def randomized(self) -> bool:
        """Whether gradients are random or there are several forests."""
        return self.forests > 1 or self.noise > 0 or self.query_fraction < 1

    def grow(
        self,
        X: Features,
        derivatives: ScoreDerivatives,
        valid: Features | None,
        progress: TreeCallback,
        seed: int,
        threads: int,
        categorical: Sequence[int] = (),
    ) -> tuple[Untyped, int]:
        """Grow the trees.

        Parameters
        ----------
        X : array or sparse array
            The features of the training documents.
        derivatives : callable
            Maps the scores of the training documents to the gradient and the curvature of the loss.
        valid : array or sparse array, optional
            The features of the validation documents.
        progress : callable
            Called with the number of trees, the booster and the scores of the validation documents
            after every tree; it returns whether to stop.
        seed : int
            The seed of the library.
        threads : int
            The number of threads.
        categorical : sequence of int
            The columns that hold categories.

        Returns
        -------
        booster : object
            The booster of the library.
        count : int
            The number of trees.

        Raises
        ------
        DataError
            If the library refuses the data or a parameter.
        MissingDependency
            If the library is not installed.
        """
        library = LIBRARIES[self.library]
        with library_errors(self.library):
            return library.grow(self, X, derivatives, valid, progress, seed, threads, categorical)

    def parameters(self, seed: int, threads: int) -> dict[str, Untyped]:
        """Return the parameters by the names of the library.

        Parameters
        ----------
        seed : int
            The seed of the library.
        threads : int
            The number of threads.

        Returns
        -------
        dict
            The parameters; those of `options` take precedence.
        """
        return LIBRARIES[self.library].params(self, seed, threads)

    def splits(self, booster: Untyped) -> bool:
        """Return whether any tree has more than one leaf.

        Parameters
        ----------
        booster : object
            A booster of the library.

        Returns
        -------
        bool
            Whether there is a split.
        """
        return LIBRARIES[self.library].splits(booster)

    def scoring(self, booster: Untyped, count: int, n_features: int) -> TreesScoring:
        """Return trees as a fitted model.

        Parameters
        ----------
        booster : object
            A booster of the library.
        count : int
            The number of trees to take, from the first on.
        n_features : int
            The number of features of the training documents.

        Returns
        -------
        TreesScoring
            The model.
        """
        text = LIBRARIES[self.library].text(booster, count)
        return TreesScoring(self.library, text, n_features)


class LightGBM:
    """Adapter of LightGBM."""

    @staticmethod
    def error() -> type[Exception]:
        error: type[Exception] = import_lightgbm().basic.LightGBMError
        return error

    @staticmethod
    def params(trees: Trees, seed: int, threads: int) -> dict[str, Untyped]:
        several: dict[str, Untyped] = {}
        if trees.forests > 1:
            several["num_class"] = trees.forests
            if not FEATURE_FRACTION_NAMES & trees.options.keys():
                several["feature_fraction"] = FEATURE_FRACTION
        return {
            "objective": "none", "verbosity": -1, "seed": seed, "num_threads": threads,
            "deterministic": True, "force_row_wise": True, "num_leaves": trees.leaves,
            "learning_rate": trees.rate, "min_data_in_leaf": trees.min_docs,
            **several, **trees.options,
        }  # fmt: skip

    @classmethod
    def grow(
        cls,
        trees: Trees,
        X: Features,
        derivatives: ScoreDerivatives,
        valid: Features | None,
        progress: TreeCallback,
        seed: int,
        threads: int,
        categorical: Sequence[int] = (),
    ) -> tuple[Untyped, int]:
        lightgbm = import_lightgbm()
        params = cls.params(trees, seed, threads)
        step = {"fobj": lambda scores, _: derivatives(np.asarray(scores, np.float64))}
        if trees.forests > 1:
            # LightGBM grows the forests as classes.  Its scores are those of a forest divided by
            # the number of forests, so that their sum is the average.
            params["learning_rate"] /= trees.forests
            step = {"fobj": lambda scores, _: cls.forest_derivatives(derivatives, scores)}
        data = lightgbm.Dataset(
            X, np.zeros(X.shape[0]), params=params, free_raw_data=False,
            categorical_feature=list(categorical) or "auto",
        )  # fmt: skip
        return cls.boost(lightgbm.Booster(params, data), data, valid, trees.count, progress, step)

    @staticmethod
    def forest_derivatives(derivatives: ScoreDerivatives, scores: Array) -> tuple[Floats, Floats]:
        """Return the gradients and the curvatures of all forests, a column per forest."""
        gradients, curvatures = np.empty(scores.shape), np.empty(scores.shape)
        for forest in range(scores.shape[1]):
            member = np.asarray(scores[:, forest], np.float64) * scores.shape[1]
            gradients[:, forest], curvatures[:, forest] = derivatives(member)
        return gradients, curvatures

    @staticmethod
    def boost(
        booster: Untyped,
        data: Untyped,
        valid: Untyped,
        count: int,
        progress: TreeCallback,
        step: dict[str, Untyped],
    ) -> tuple[Untyped, int]:
        """Grow tree by tree, with a call of `progress` after each."""
        if valid is not None:
            # With the parameters of training: LightGBM has one global number of threads, and data
            # created without that number reset it to all cores.
            valid_data = data.create_valid(valid, np.zeros(valid.shape[0]), params=data.params)
            booster.add_valid(valid_data, "valid")
        for tree in range(1, count + 1):
            finished = booster.update(**step)
            scores = None if valid is None else _valid_scores(booster)
            if progress(tree, booster, scores) or finished:
                return booster, tree
        return booster, count

    @staticmethod
    def splits(booster: Untyped) -> bool:
        return bool(booster.feature_importance("split").any())

    @staticmethod
    def text(booster: Untyped, count: int) -> str:
        text = str(booster.model_to_string(num_iteration=count))
        for name in ("num_class", "num_tree_per_iteration"):  # the trees of all forests are summed
            text = re.sub(rf"^{name}=\d+$", f"{name}=1", text, count=1, flags=re.MULTILINE)
        return text

    @staticmethod
    def is_complete(text: str) -> bool:
        return text.startswith("tree") and "end of trees" in text and "end of parameters" in text

    @staticmethod
    @lru_cache(8)
    def read(text: str) -> Untyped:
        return import_lightgbm().Booster(model_str=text)

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
        values = LightGBM.read(text).predict(X, raw_score=True, pred_contrib=True)
        return np.asarray(values, np.float64)

    @staticmethod
    def forest(text: str, source: str) -> Forest:
        return lightgbm_forest(text, source)


class XGBoost:
    """Adapter of XGBoost."""

    @staticmethod
    def error() -> type[Exception]:
        error: type[Exception] = import_xgboost().core.XGBoostError
        return error

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
        derivatives: ScoreDerivatives,
        valid: Features | None,
        progress: TreeCallback,
        seed: int,
        threads: int,
        categorical: Sequence[int] = (),
    ) -> tuple[Untyped, int]:
        xgboost = import_xgboost()
        if not isinstance(X, np.ndarray) or not isinstance(valid, np.ndarray | None):
            raise DataError(SPARSE)
        kinds = cls.matrix_options(X.shape[1], categorical, threads)
        data = xgboost.DMatrix(X, np.zeros(X.shape[0]), **kinds)
        valid_data = None if valid is None else xgboost.DMatrix(valid, **kinds)
        params = cls.params(trees, seed, threads)
        step = {"fobj": lambda scores, _: derivatives(scores.astype(np.float64))}
        return cls.boost(params, data, valid_data, trees.count, progress, step)

    @staticmethod
    def boost(
        params: dict[str, Untyped],
        data: Untyped,
        valid_data: Untyped,
        count: int,
        progress: TreeCallback,
        step: Mapping[str, Untyped] = MappingProxyType({}),
    ) -> tuple[Untyped, int]:
        """Grow tree by tree, with a call of `progress` after each."""
        matrices = [data] if valid_data is None else [data, valid_data]
        booster = import_xgboost().Booster(params, matrices)
        for tree in range(count):
            booster.update(data, tree, **step)
            scores = None
            if valid_data is not None:
                margins = booster.predict(valid_data, output_margin=True)
                scores = np.asarray(margins, np.float64)
            if progress(tree + 1, booster, scores):
                return booster, tree + 1
        return booster, count

    @staticmethod
    def matrix_options(
        n_features: int, categorical: Sequence[int], threads: int
    ) -> dict[str, Untyped]:
        """Return the options of data, with the columns that hold categories."""
        if not categorical:
            return {"nthread": threads}
        kinds = ["c" if column in categorical else "q" for column in range(n_features)]
        return {"nthread": threads, "feature_types": kinds, "enable_categorical": True}

    @staticmethod
    def splits(booster: Untyped) -> bool:
        return bool(booster.get_score(importance_type="weight"))

    @staticmethod
    def text(booster: Untyped, count: int) -> str:
        return bytes(booster[:count].save_raw("json")).decode()

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
        for name, gain in XGBoost.read(text).get_score(importance_type="total_gain").items():
            out[int(name.removeprefix("f"))] = gain
        return out

    @staticmethod
    def contributions(text: str, X: Array) -> Floats:
        values = XGBoost.read(text).predict(import_xgboost().DMatrix(X), pred_contribs=True)
        return np.asarray(values, np.float64)

    @staticmethod
    def forest(text: str, source: str) -> Forest:
        return xgboost_forest(text, source)


LIBRARIES: dict[str, type[LightGBM] | type[XGBoost]] = {"lightgbm": LightGBM, "xgboost": XGBoost}


def _valid_scores(booster: Untyped) -> Floats:
    """Return the current scores of the validation data, which LightGBM passes only to evaluation
    functions."""
    captured: list[Floats] = []

    def capture(scores: Floats, _: Untyped) -> tuple[str, float, bool]:
        forests = scores.sum(axis=1) if scores.ndim == 2 else scores
        captured.append(np.array(forests, np.float64))
        return "", 0.0, True

    booster.eval_valid(capture)
    return captured[0]


@contextmanager
def library_errors(library: str) -> Iterator[None]:
    """Raise errors of the library as DataError, with their first line as the message."""
    try:
        yield
    except LIBRARIES[library].error() as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")
        if "num_features()) > (0)" in reason:  # LightGBM drops features that it cannot split
            raise DataError(f"{library} refuses: {NO_SPLIT}") from error
        raise DataError(f"{library} refuses: {reason}.") from error


def import_lightgbm() -> Untyped:
    try:
        import lightgbm
    except ImportError as error:
        raise missing_dependency("lightgbm", "trees", "scorer='trees'") from error
    return lightgbm


def import_xgboost() -> Untyped:
    try:
        import xgboost
    except ImportError as error:
        raise missing_dependency("xgboost-cpu", "trees", "library='xgboost'") from error
    return xgboost


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
            return LIBRARIES[self.library].predict(self.text, X, resolve(threads))

    def explain(self) -> Importances:
        """Return the reduction of the loss by the splits on each feature, summed."""
        with library_errors(self.library):
            gains = LIBRARIES[self.library].gains(self.text, self.n_features)
        return Importances("gain of splits", gains)

    def contributions(self, X: Array, offsets: Ints | None = None) -> Contributions:
        """Return Shapley values, computed by the library."""
        with library_errors(self.library):
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
        if not LIBRARIES[stored["library"]].is_complete(stored["text"]):
            raise DataError(f"the trees are not a complete model of {stored['library']}.")
        if type(stored["n_features"]) is not int or stored["n_features"] < 1:
            raise DataError("the number of features of the trees is not an integer of at least 1")
        return cls(stored["library"], stored["text"], stored["n_features"])
