"""Missing values and categories in requests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from tests.serving.conftest import ARROW, NAMES, NPY, arrow, body, clients, dataset, loaded, npy

pytest.importorskip("lightgbm")
COLORS = ("blue", "green", "red")
TREES = 'trees(count=10, leaves=7, min_docs=5, options={"min_data_per_group": 5})'


def colored() -> fp.Dataset:
    """The collection with a category as its last feature, and missing values."""
    rng = np.random.default_rng(0)
    X = np.array(dataset().X)
    X[:, 3] = (dataset().y + rng.integers(0, 2, len(X))) % 3
    X[rng.random(X.shape) < 0.2] = np.nan
    return fp.Dataset(
        X,
        dataset().y,
        dataset().offsets,
        dataset().queries,
        None,
        (*NAMES[:3], "color"),
        categories={3: COLORS},
    )


@pytest.fixture
def color_client(tmp_path: Path) -> Iterator:
    fp.ListNet(scorer=TREES).fit(colored()).save(tmp_path / "model.json")
    yield from clients(tmp_path / "model.json")


def candidate(row: np.ndarray) -> dict[str, dict[str, Any]]:
    values = [None if np.isnan(v) else float(v) for v in row[:3]]
    color = None if np.isnan(row[3]) else COLORS[int(row[3])]
    return {"features": dict(zip((*NAMES[:3], "color"), [*values, color], strict=True))}


def test_null_is_missing_and_a_string_is_a_category(color_client, tmp_path: Path) -> None:
    X = np.asarray(colored()[0].X)
    expected = fp.load(tmp_path / "model.json").predict(colored()[0])
    sent: dict[str, Any] = {"candidates": [candidate(row) for row in X], "explain": 4}
    answer = color_client.post("/rank", json=sent).json()
    scores = np.empty(len(X))
    scores[answer["order"]] = answer["scores"]
    assert scores.tolist() == expected.tolist()
    assert "notes" not in answer
    terms = {t["feature"]: t["value"] for e in answer["explanations"] for t in e["parts"]}
    assert terms["color"] in (*COLORS, None)
    in_order = [{"features": list(c["features"].values())} for c in sent["candidates"]]
    assert (
        color_client.post("/rank", json={"candidates": in_order}).json()["scores"]
        == (answer["scores"])
    )
    columns = {n: [c["features"][n] for c in sent["candidates"]] for n in (*NAMES[:3], "color")}
    content = color_client.post("/rank?answer=json", content=arrow(**columns), headers=ARROW)
    assert content.json()["scores"] == answer["scores"]
    described = color_client.get("/model").json()["features"]
    assert described["missing"] is True
    assert described["categories"] == {"color": list(COLORS)}
    schema = color_client.get("/openapi.json").json()["components"]["schemas"]["Features"]
    assert schema["anyOf"][0]["properties"]["color"]["type"] == ["string", "integer", "null"]


def test_unknown_categories_are_missing_and_the_answer_says_so(color_client) -> None:
    X = np.asarray(colored()[0].X)
    candidates = [candidate(row) for row in X[:3]]
    for sent in candidates:
        sent["features"]["color"] = "pink"
    answer = color_client.post("/rank", json={"candidates": candidates}).json()
    assert answer["notes"] == ["'color': 3 values are unknown to the model, and treated as missing"]
    for sent in candidates:
        sent["features"]["color"] = None
    assert (
        color_client.post("/rank", json={"candidates": candidates}).json()["scores"]
        == (answer["scores"])
    )
    batch = {"queries": [{"candidates": [{"features": [1, 2, None, "pink"]}]}]}
    assert len(color_client.post("/batch", json=batch).json()["notes"]) == 1


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([1, 2, "x", "red"], "candidate 0: feature 'clicks' is 'x', not a number"),
        ([1, 2, 3, 1.5], "feature 'color' is 1.5; give a category"),
        ([1, 2, 3, True], "feature 'color' is True; give a category"),
        ([1, 2, 3], "has 3 features, but the model has 4"),
    ],
)
def test_bad_features(color_client, features: list[object], message: str) -> None:
    answer = color_client.post("/rank", json={"candidates": [{"features": features}]})
    assert answer.status_code == 422
    assert message in answer.json()["detail"]


def test_matrices_have_no_categories(color_client) -> None:
    answer = color_client.post("/rank", content=npy(np.zeros((2, 4))), headers=NPY)
    assert "the model reads categories ('color'); send JSON or Arrow" in answer.json()["detail"]


def test_models_that_need_numbers_refuse_null(client) -> None:
    sent = body(np.zeros((2, 4)))
    sent["candidates"][0]["features"]["age"] = None
    answer = client.post("/rank", json=sent)
    assert "feature 'age' is null, and this model needs a number" in answer.json()["detail"]
    X = np.zeros((2, 4))
    X[1, 1] = np.nan
    assert client.post("/rank", content=npy(X), headers=NPY).status_code == 422


@pytest.mark.parametrize("scorer", ["linear", TREES])
def test_matrices_with_nan(tmp_path: Path, scorer: str) -> None:
    X = np.array(dataset().X)
    X[np.random.default_rng(1).random(X.shape) < 0.2] = np.nan
    train = dataset().with_features(X, NAMES)
    impute = "mean" if scorer == "linear" else None
    ranker = fp.ListNet(scorer=scorer, impute=impute).fit(train)
    ranker.save(tmp_path / "model.json")
    (client,) = clients(tmp_path / "model.json")
    with client:
        scores = loaded(client.post("/rank", content=npy(X[:12]), headers=NPY).content)
        assert scores.tolist() == ranker.predict(train[0]).tolist()
        X[0, 0] = np.inf
        assert client.post("/rank", content=npy(X[:12]), headers=NPY).status_code == 422
