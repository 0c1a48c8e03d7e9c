"""Trees scored by our kernel have exactly the scores of the library that trained them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.core.kernels.scoring import forest_scores
from firstpage.learning.scorers.tree_scoring import TreesScoring
from firstpage.serving import forests
from firstpage.serving.served_model import load
from tests.serving.conftest import dataset, write_model


@pytest.mark.parametrize("kind", ["lightgbm", "xgboost"])
def test_scores_equal_those_of_the_library(kind: str, tmp_path: Path) -> None:
    served = load(write_model(tmp_path / "model.json", kind))
    assert served.trees is not None
    assert served.quick
    rng = np.random.default_rng(1)
    for rows in (1, 3, 4, 9):
        for kind_of_number in (np.float32, np.float64):
            X = rng.normal(0, 50, (rows, 4)).astype(kind_of_number)
            X[0, 0] = 0
            expected = served.model.scoring.predict(X)
            assert served.scores(X, np.array([0, rows])).tolist() == expected.tolist()


def test_compiled_and_interpreted_kernels_agree(tmp_path: Path) -> None:
    model = load(write_model(tmp_path / "model.json", "lightgbm"))
    flat = model.trees
    assert flat is not None
    X = np.asarray(dataset()[:3].X, np.float64)
    out = np.zeros(len(X))
    forest_scores.python(
        X, flat.feature, flat.threshold, flat.child, flat.value, flat.roots, flat.depths, out
    )
    assert out.tolist() == flat.predict(X).tolist()
    assert out.tolist() == model.model.scoring.forest("model").scores(X).tolist()


def test_unreadable_trees_are_scored_by_the_library(tmp_path: Path, monkeypatch) -> None:
    path = write_model(tmp_path / "model.json", "lightgbm")

    def refuses(*_: object) -> None:
        raise DataError("categories")

    monkeypatch.setattr(TreesScoring, "forest", refuses)
    served = load(path)
    assert served.trees is None
    assert not served.quick
    data = dataset()[4]
    expected = fp.load(path).predict(data)
    X = np.asarray(data.X)
    assert served.scores(X, np.array([0, len(X)])).tolist() == expected.tolist()


def test_trees_with_other_scores_are_scored_by_the_library(tmp_path: Path, monkeypatch) -> None:
    scoring = load(write_model(tmp_path / "model.json", "lightgbm")).model.scoring
    monkeypatch.setattr(forests.FlatForest, "predict", lambda self, X: np.zeros(len(X)))
    assert forests.flat_forest(scoring) is None
