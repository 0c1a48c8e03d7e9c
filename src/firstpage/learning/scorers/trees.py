"""Gradient-boosted trees, grown by LightGBM or XGBoost from gradients and curvatures of a loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from firstpage.core import Array, Bools, DataError, Floats, check_number
from firstpage.learning.scorers.tree_scoring import (
    TreesScoring,
    Untyped,
    import_lightgbm,
    import_xgboost,
    library_errors,
)

if TYPE_CHECKING:
    from firstpage.data import Features

ScoreDerivatives = Callable[[Floats], tuple[Floats, Floats]]
"""Scores of all training documents -> gradient and curvature of the loss by each score."""
SPARSE = (
    "xgboost reads the values that a sparse matrix omits as missing, not as 0; use LightGBM "
    "(library=lightgbm), or convert the data with data.dense() if they fit into memory."
)
VALUES = re.compile(r"^((?:leaf_value|internal_value|shrinkage)=)(.*)$", re.MULTILINE)
FEATURE_FRACTION_NAMES = {"feature_fraction", "sub_feature", "colsample_bytree"}  # of LightGBM
FEATURE_FRACTION = 0.5  # of the features of a tree, where there are several forests
LEAST_FEATURES = 12  # of such a tree: fewer would not contain the pairs that matter together
BIN_NAMES = {"max_bin", "max_bins", "max_bin_by_feature"}
LOSS_FORESTS, LOSS_MIN_DOCS = 2, 50  # where trees are grown by a loss (docs/choose.md)
LOSS_BINS, MANY_DOCUMENTS = 63, 100_000  # of a feature; from how many documents on 255, as usual
MIN_DOCS, ENOUGH_DOCUMENTS = 20, 2500  # of other leaves, and of those of few documents
Window = tuple[int, int]
"""First and last number of trees of a forest: its scores are the mean over both and all between."""
TreeCallback = Callable[[int, Untyped, Floats | None], bool | Bools]
"""(number of trees, booster, scores of the validation documents) -> whether to stop.

Where there are several forests, the scores have a column for each, and the answer may be an array:
which of the forests stop.
"""


@dataclass(frozen=True)
class Trees:
    """Gradient-boosted decision trees, grown by LightGBM or XGBoost.

    Parameters
    ----------
    count : int, default 600
        The number of trees at most, at least 1.
    leaves : int, default 15
        The number of leaves of a tree at most, at least 2.
    rate : float, default 0.05
        The learning rate, by which the leaves of each tree are multiplied; above 0.
    min_docs : int, optional
        The least number of documents of a leaf.  LightGBM only: XGBoost bounds the summed curvature
        of a leaf instead.  None stands for 50 where LightGBM grows trees from at least 2,500
        documents in memory, and for 20 otherwise.
    library : {"lightgbm", "xgboost"}, default "lightgbm"
        The library that grows the trees.
    options : dict, optional
        More parameters of the library, by its own names.  Where LightGBM grows trees by a loss from
        fewer than 100,000 documents in memory, without categories, "max_bin" is 63 by default.
    forests : int, optional
        The number of forests that are grown side by side and whose scores are averaged.  Each has
        `count` trees at most, and validation data choose the number of trees of each by its own
        scores.  With more than one, every tree is restricted to a random half of the features, and
        to at least 12, unless `options` has another "feature_fraction".  LightGBM only.  None
        stands for 2 where LightGBM grows trees from data in memory with more than 12 features, and
        for 1 otherwise.
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

    count: int = 600
    leaves: int = 15
    rate: float = 0.05
    min_docs: int | None = None
    library: str = "lightgbm"
    options: dict[str, Untyped] = field(default_factory=dict)
    forests: int | None = None
    noise: float = 0.0
    query_fraction: float = 1.0
    additive: ClassVar[Literal[True]] = True

    def __post_init__(self) -> None:
        if self.library not in LIBRARIES:
            raise DataError(f"library must be one of {', '.join(LIBRARIES)}; got {self.library!r}.")
        check_number(self, "count", 1, integer=True)
        check_number(self, "leaves", 2, integer=True)
        check_number(self, "rate", above=0)
        for name in ("min_docs", "forests"):
            if getattr(self, name) is not None:
                check_number(self, name, 1, integer=True)
        check_number(self, "noise", 0)
        check_number(self, "query_fraction", above=0)
        if self.query_fraction > 1:
            raise DataError(f"query_fraction must be at most 1; got {self.query_fraction!r}.")
        if self.members > 1 and self.library != "lightgbm":
            raise DataError(f"forests > 1 need library='lightgbm'; got {self.library!r}.")
        if not isinstance(self.options, dict):
            raise DataError(f"options of trees must be a dictionary; got {self.options!r}.")

    def __hash__(self) -> int:
        numbers = self.count, self.leaves, self.rate, self.forests, self.noise, self.query_fraction
        return hash((*numbers, self.library, repr(self.options)))

    @property
    def randomized(self) -> bool:
        """Whether gradients are random or there are several forests."""
        return self.members > 1 or self.noise > 0 or self.query_fraction < 1

    @property
    def members(self) -> int:
        """The number of forests."""
        return 1 if self.forests is None else self.forests

    def for_loss(self, documents: int, features: int, categories: bool = False) -> Trees:
        """Return the trees with the defaults of a loss on so many documents in memory.

        Forests on few features hardly differ, so that one is grown.  LightGBM would merge rare
        categories of features with more categories than bins.
        """
        if self.library != "lightgbm":
            return self
        least = MIN_DOCS if documents < ENOUGH_DOCUMENTS else LOSS_MIN_DOCS
        forests = self.forests or (LOSS_FORESTS if features > LEAST_FEATURES else 1)
        options = self.options
        if forests > 1 and not FEATURE_FRACTION_NAMES & options.keys():
            fraction = max(FEATURE_FRACTION, min(1.0, LEAST_FEATURES / features))
            options = {**options, "feature_fraction": fraction}
        if documents < MANY_DOCUMENTS and not categories and not BIN_NAMES & options.keys():
            options = {**options, "max_bin": LOSS_BINS}
        return replace(self, forests=forests, min_docs=self.min_docs or least, options=options)

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
        """Grow the trees."""
        library = LIBRARIES[self.library]
        with library_errors(self.library):
            return library.grow(self, X, derivatives, valid, progress, seed, threads, categorical)

    def parameters(self, seed: int, threads: int) -> dict[str, Untyped]:
        """Return the parameters by the names of the library."""
        return LIBRARIES[self.library].params(self, seed, threads)

    def splits(self, booster: Untyped) -> bool:
        """Return whether any tree has more than one leaf."""
        return LIBRARIES[self.library].splits(booster)

    def scoring(self, booster: Untyped, windows: Sequence[Window], n_features: int) -> TreesScoring:
        """Return trees as a fitted model, with the window of each forest."""
        text = LIBRARIES[self.library].text(booster, windows)
        return TreesScoring(self.library, text, n_features)


class LightGBM:
    """Adapter of LightGBM."""

    @staticmethod
    def params(trees: Trees, seed: int, threads: int) -> dict[str, Untyped]:
        several = {"num_class": trees.members} if trees.members > 1 else {}
        layout = {} if trees.options.get("force_row_wise") else {"force_col_wise": True}
        return {
            "objective": "none", "verbosity": -1, "seed": seed, "num_threads": threads,
            "deterministic": True, **layout, "num_leaves": trees.leaves,
            "learning_rate": trees.rate, "min_data_in_leaf": trees.min_docs or MIN_DOCS,
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
        stopped = np.zeros(trees.members, bool)

        def watched(tree: int, booster: Untyped, scores: Floats | None) -> Bools:
            stopped[:] = progress(tree, booster, scores)
            return stopped

        if trees.members > 1:
            # LightGBM grows the forests as classes.  Its scores are those of a forest divided by
            # the number of forests, so that their sum is the average.
            params["learning_rate"] /= trees.members
            step = {"fobj": lambda scores, _: cls.forest_derivatives(derivatives, scores, stopped)}

        data = lightgbm.Dataset(
            X,
            np.zeros(X.shape[0]),
            params=params,
            free_raw_data=False,
            categorical_feature=list(categorical) or "auto",
        )
        return cls.boost(lightgbm.Booster(params, data), data, valid, trees.count, watched, step)

    @staticmethod
    def forest_derivatives(
        derivatives: ScoreDerivatives, scores: Array, stopped: Bools
    ) -> tuple[Floats, Floats]:
        """Return the gradients and the curvatures of all forests, a column per forest.

        Those of stopped forests are 0, which makes their next trees empty.
        """
        gradients, curvatures = np.zeros((2, *scores.shape[::-1])).transpose(0, 2, 1)
        for forest in np.flatnonzero(~stopped).tolist():
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
            if np.all(progress(tree, booster, scores)) or finished:
                return booster, tree
        return booster, count

    @staticmethod
    def splits(booster: Untyped) -> bool:
        return bool(booster.feature_importance("split").any())

    @staticmethod
    def text(booster: Untyped, windows: Sequence[Window]) -> str:
        text = str(booster.model_to_string(num_iteration=max(last for _, last in windows)))
        if len(windows) == 1 and windows[0][0] == windows[0][1]:
            return text
        head, *trees = re.split(r"^Tree=\d+\n", text, flags=re.MULTILINE)
        trees[-1], end, tail = trees[-1].partition("end of trees")
        kept = []
        for at, tree in enumerate(trees):
            (first, last), number = windows[at % len(windows)], 1 + at // len(windows)
            if number <= last:
                weight = 1.0 if number <= first else (last - number + 1) / (last - first + 1)
                kept.append(tree if weight == 1 else VALUES.sub(partial(_scaled, weight), tree))
        blocks = [f"Tree={number}\n{tree}" for number, tree in enumerate(kept)]
        sizes = " ".join(str(len(block.encode())) for block in blocks)
        # The trees of all forests are summed.
        for name, value in (("num_class", 1), ("num_tree_per_iteration", 1), ("tree_sizes", sizes)):
            head = re.sub(rf"^{name}=.*$", f"{name}={value}", head, count=1, flags=re.MULTILINE)
        return "".join([head, *blocks, end, tail])


class XGBoost:
    """Adapter of XGBoost."""

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
            if np.all(progress(tree + 1, booster, scores)):
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
    def text(booster: Untyped, windows: Sequence[Window]) -> str:
        return bytes(booster[: windows[0][1]].save_raw("json")).decode()


LIBRARIES: dict[str, type[LightGBM] | type[XGBoost]] = {"lightgbm": LightGBM, "xgboost": XGBoost}


def _scaled(weight: float, line: re.Match[str]) -> str:
    """Return a line of LightGBM's text with its values multiplied by a weight."""
    return line[1] + " ".join(repr(weight * float(value)) for value in line[2].split())


def _valid_scores(booster: Untyped) -> Floats:
    """Return the current scores of the validation data, which LightGBM passes only to evaluation
    functions."""
    captured: list[Floats] = []

    def capture(scores: Floats, _: Untyped) -> tuple[str, float, bool]:
        captured.append(np.array(scores, np.float64))
        return "", 0.0, True

    booster.eval_valid(capture)
    return captured[0]
