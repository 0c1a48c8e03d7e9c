"""Trees of LightGBM and XGBoost: scores, growth and text formats, against the libraries' dumps."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

from firstpage.core.errors import DataError
from firstpage.core.registry import ParameterError
from firstpage.learning.scorers import tree_scoring
from firstpage.learning.scorers.forest import Forest, Tree, lightgbm_text
from firstpage.learning.scorers.tree_scoring import TreesScoring
from firstpage.learning.scorers.trees import LIBRARIES, Trees

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)).astype(np.float32)
Y = np.sin(2 * X[:, 0]) + X[:, 1] * (X[:, 2] > 0)
EACH = pytest.mark.parametrize("library", LIBRARIES)


def squared(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradient and the curvature of half the squared error."""
    return scores - Y, np.ones(len(Y))


@cache
def grow(library: str) -> tuple[Any, int]:
    trees = Trees(count=12, leaves=6, min_docs=5, library=library)
    return trees.grow(X, squared, None, lambda *_: False, 0, 1)


def scoring(library: str) -> TreesScoring:
    booster, count = grow(library)
    return Trees(library=library).scoring(booster, [(count, count)], 4)


def score_by_dump(library: str, x: np.ndarray) -> float:
    """Return the score of one document by the library's dump of its trees."""
    booster, _ = grow(library)
    if library == "lightgbm":
        trees = booster.dump_model()["tree_info"]
        return float(np.sum([_lightgbm(tree["tree_structure"], x) for tree in trees]))
    dumped = [json.loads(tree) for tree in booster.get_dump(dump_format="json")]
    return float(np.sum([np.float32(_xgboost(tree, x)) for tree in dumped], dtype=np.float32))


def _lightgbm(node: dict[str, Any], x: np.ndarray) -> float:
    while "split_feature" in node:
        left = float(x[node["split_feature"]]) <= node["threshold"]
        node = node["left_child" if left else "right_child"]
    return float(node["leaf_value"])


def _xgboost(node: dict[str, Any], x: np.ndarray) -> float:
    while "leaf" not in node:
        below = x[int(node["split"][1:])] < np.float32(node["split_condition"])
        to = node["yes" if below else "no"]
        node = next(child for child in node["children"] if child["nodeid"] == to)
    return float(node["leaf"])


@EACH
def test_scores_are_sums_of_leaves(library: str) -> None:
    expected = [score_by_dump(library, x) for x in X]
    model = scoring(library)
    assert model.predict(X) == pytest.approx(expected, rel=1e-5, abs=1e-6)
    assert model.predict(X, threads=1).tolist() == model.predict(X, threads=2).tolist()
    assert np.corrcoef(model.predict(X), Y)[0, 1] > 0.8  # it learned


@EACH
def test_sparse_features_have_the_same_scores(library: str, monkeypatch) -> None:
    model, rows = scoring(library), X * (np.abs(X) > 0.5)
    scores = model.predict(rows)
    assert model.predict(csr_array(rows)).tolist() == scores.tolist()
    monkeypatch.setattr(tree_scoring, "CHUNK_ROWS", 64)
    assert model.predict(csr_array(rows)).tolist() == scores.tolist()
    assert model.predict(rows).tolist() == scores.tolist()


def test_xgboost_refuses_sparse_features() -> None:
    trees, rows = Trees(count=2, library="xgboost"), csr_array(X)
    for train, valid in ((rows, None), (X, rows)):
        with pytest.raises(DataError, match=r"omits as missing, not as 0; .*library=lightgbm"):
            trees.grow(train, squared, valid, lambda *_: False, 0, 1)
    booster, count = Trees(count=2).grow(rows, squared, rows, lambda *_: False, 0, 1)
    dense, _ = Trees(count=2).grow(X, squared, X, lambda *_: False, 0, 1)
    scored = [Trees().scoring(grown, [(count, count)], 4).predict(X) for grown in (booster, dense)]
    assert scored[0].tolist() == scored[1].tolist()


@EACH
def test_leaves_are_newton_steps(library: str) -> None:
    """The value of a leaf is - rate * sum(gradient) / sum(curvature) over its documents."""
    weights = RNG.random(len(Y)) + 0.5

    def derivatives(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return weights * (scores - Y), weights

    trees = Trees(count=1, leaves=2, rate=0.5, min_docs=5, library=library)
    booster, count = trees.grow(X, derivatives, None, lambda *_: False, 0, 1)
    scores = trees.scoring(booster, [(count, count)], 4).predict(X)
    assert len(np.unique(scores)) == 2
    for value in np.unique(scores):
        leaf = scores == value
        assert value == pytest.approx(0.5 * np.average(Y[leaf], weights=weights[leaf]), rel=1e-4)


def test_forests_are_averaged() -> None:
    """Without randomness all forests are equal, and so is their average to one of them."""
    options = {"feature_fraction": 1.0}
    fits = []
    for forests in (1, 3):
        trees = Trees(count=5, leaves=4, min_docs=5, forests=forests, options=options)
        booster, count = trees.grow(X, squared, None, lambda *_: False, 0, 1)
        fits.append(trees.scoring(booster, [(count, count)] * forests, 4))
    assert fits[1].predict(X) == pytest.approx(fits[0].predict(X), rel=1e-6, abs=1e-9)
    assert len(fits[1].forest("model").trees) == 15
    assert fits[1].forest("model").scores(X) == pytest.approx(fits[1].predict(X))


def test_scores_are_averaged_over_numbers_of_trees() -> None:
    trees = Trees(count=9, leaves=4, min_docs=5, forests=2)
    booster, _ = trees.grow(X, squared, None, lambda *_: False, 0, 1)

    def scores(*windows: tuple[int, int]) -> np.ndarray:
        return trees.scoring(booster, windows, 4).predict(X)

    mean = np.mean([scores((n, n), (4, 4)) for n in (6, 7, 8)], axis=0)
    averaged = trees.scoring(booster, [(6, 8), (4, 4)], 4)
    assert averaged.predict(X) == pytest.approx(mean, rel=1e-12, abs=1e-14)
    assert np.abs(mean - scores((7, 7), (4, 4))).max() > 1e-3
    assert averaged.forest("model").scores(X) == pytest.approx(mean)
    assert len(averaged.forest("model").trees) == 12


def test_a_loss_on_many_documents_has_defaults_of_its_own() -> None:
    def defaults(trees: Trees, documents: int, features: int = 46) -> tuple[int, int | None]:
        resolved = trees.for_loss(documents, features)
        return resolved.members, resolved.min_docs

    assert defaults(Trees(), 2499) == (2, 20)
    assert defaults(Trees(), 2500) == (2, 50)
    assert defaults(Trees(), 2500, 12) == (1, 50)
    assert defaults(Trees(forests=1, min_docs=7), 2500) == (1, 7)
    assert defaults(Trees(library="xgboost"), 2500) == (1, None)
    assert Trees().members == 1
    assert Trees().parameters(0, 1)["min_data_in_leaf"] == 20


def test_a_loss_on_fewer_documents_has_fewer_bins() -> None:
    def bins(documents: int, categories: bool = False, **options: int) -> object:
        resolved = Trees(options=options).for_loss(documents, 46, categories)
        return resolved.parameters(0, 1).get("max_bin")

    assert bins(99_999) == 63
    assert bins(100_000) is None
    assert bins(1000, categories=True) is None
    assert bins(1000, max_bin=127) == 127
    assert bins(1000, max_bins=127) is None  # which LightGBM reads


@pytest.mark.parametrize("layout", ["force_row_wise", "force_col_wise"])
def test_the_layout_of_histograms_changes_no_tree(layout: str) -> None:
    trees = Trees(count=9, leaves=4, min_docs=5, forests=2, options={layout: True})
    booster, _ = trees.grow(X, squared, None, lambda *_: False, 0, 1)
    default, _ = replace(trees, options={}).grow(X, squared, None, lambda *_: False, 0, 1)
    assert (booster.predict(X) == default.predict(X)).all()


def test_forests_differ_in_their_features() -> None:
    def options(trees: Trees, features: int) -> dict[str, Any]:
        return trees.for_loss(1000, features).parameters(0, 1)

    assert "feature_fraction" not in options(Trees(forests=1), 46)
    assert options(Trees(forests=2), 46)["feature_fraction"] == 0.5
    assert options(Trees(forests=2), 16)["feature_fraction"] == 12 / 16
    assert options(Trees(forests=2), 8)["feature_fraction"] == 1
    named = options(Trees(forests=2, options={"colsample_bytree": 0.8}), 46)
    assert named["colsample_bytree"] == 0.8
    assert "feature_fraction" not in named


@EACH
def test_progress_is_called_per_tree_and_can_stop(library: str) -> None:
    calls: list[tuple[int, np.ndarray]] = []

    def progress(tree: int, booster: Any, scores: np.ndarray | None) -> bool:
        assert scores is not None
        calls.append((tree, scores))
        return tree == 3

    trees = Trees(count=50, leaves=4, min_docs=5, library=library)
    booster, count = trees.grow(X, squared, X[:20], progress, 0, 1)
    assert (count, [tree for tree, _ in calls]) == (3, [1, 2, 3])
    model = trees.scoring(booster, [(count, count)], 4)
    assert model.predict(X[:20]) == pytest.approx(calls[-1][1], rel=1e-5, abs=1e-6)
    assert trees.splits(booster)


@EACH
def test_forests_have_the_scores_of_the_library(library: str) -> None:
    model = scoring(library)
    forest = model.forest("model")
    assert forest.scores(X).tolist() == model.predict(X).tolist()
    assert set(forest.used_features()) <= {0, 1, 2, 3}
    assert all(tree.depth() <= 5 for tree in forest.trees)


@EACH
def test_explanations_have_the_gain_of_each_feature(library: str) -> None:
    gains = scoring(library).explain().values
    assert len(gains) == 4
    assert gains[3] == min(gains) < max(gains)  # which the labels do not depend on


def test_lightgbm_reads_our_text_format() -> None:
    trees = [
        Tree.from_nodes([(1, 0.5, 1, 2, 0.0), (-1, 0.0, -1, -1, -2.0), (-1, 0.0, -1, -1, 3.5)]),
        Tree.leaf(0.25),
    ]
    model = TreesScoring("lightgbm", lightgbm_text(trees, 4), 4)
    expected = np.where(X[:, 1] <= 0.5, -1.75, 3.75)
    assert model.predict(X).tolist() == expected.tolist()
    assert Forest.from_trees(trees).scores(X).tolist() == expected.tolist()
    assert model.forest("model").scores(X).tolist() == expected.tolist()


def test_splits_that_send_all_documents_to_one_side_are_pruned() -> None:
    leaves = [(-1, 0.0, -1, -1, float(v)) for v in (1, 2, 3)]
    tree = Tree.from_nodes([(0, np.inf, 1, 4, 0.0), (1, 0.0, 2, 3, 0.0), *leaves])
    forest = Forest.from_trees([tree]).with_thresholds(lambda _, threshold: threshold)
    assert forest.trees[0].depth() == 1
    assert forest.scores(X).tolist() == Forest.from_trees([tree]).scores(X).tolist()
    assert Forest.from_trees([]).scores(X).tolist() == [0.0] * len(X)


def test_trees_with_linear_leaves_have_no_forest() -> None:
    text = scoring("lightgbm").text
    damaged = TreesScoring("lightgbm", text.replace("is_linear=0", "is_linear=1", 1), 4)
    with pytest.raises(DataError, match=r"m.json has .*linear leaves"):
        damaged.forest("m.json")


def test_another_number_of_features_is_refused_in_one_line() -> None:
    with pytest.raises(DataError, match="lightgbm refuses: ") as error:
        scoring("lightgbm").predict(X[:, :2])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"library": "catboost"}, "library must be one of lightgbm, xgboost"),
        ({"count": 0}, "count of Trees must be an integer of at least 1"),
        ({"leaves": 1}, "leaves of Trees must be an integer of at least 2"),
        ({"rate": 0}, "rate of Trees must be a number above 0"),
        ({"min_docs": 0.5}, "min_docs of Trees must be an integer"),
        ({"options": [1]}, "options of trees must be a dictionary"),
        ({"noise": -0.1}, "noise of Trees must be a number of at least 0"),
        ({"query_fraction": 0}, "query_fraction of Trees must be a number above 0"),
        ({"query_fraction": 1.5}, "query_fraction must be at most 1; got 1.5"),
        ({"forests": 0}, "forests of Trees must be an integer of at least 1"),
        ({"forests": 2, "library": "xgboost"}, "forests > 1 need library='lightgbm'"),
    ],
)
def test_wrong_parameters_are_refused(options: dict, message: str) -> None:
    with pytest.raises((DataError, ParameterError), match=message):
        Trees(**options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"library": "catboost"}, "cannot be read"),
        ({"text": "tree\n"}, "not a complete model of lightgbm"),
        ({"n_features": "4"}, "not an integer of at least 1"),
        ({"n_features": 0}, "not an integer of at least 1"),
    ],
)
def test_invalid_trees_are_refused(change: dict, message: str) -> None:
    good = scoring("lightgbm").to_dict()
    assert TreesScoring.from_dict(good).to_dict() == good
    with pytest.raises(DataError, match=message):
        TreesScoring.from_dict({**good, **change})
