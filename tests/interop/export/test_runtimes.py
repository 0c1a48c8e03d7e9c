"""ONNX in ONNX Runtime, the NumPy scorer, and the model files of LightGBM and XGBoost."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.data.transforms import transform_from_dict
from firstpage.learning.models.model_files import Model, model_of
from firstpage.learning.scorers.forward import Architecture
from firstpage.learning.scorers.network_scoring import InputTransform, NetworkScoring
from firstpage.learning.scorers.stumps import StumpsScoring
from tests.interop.export.conftest import NAMES, RANKERS, TOLERANCE, dataset, predict, probe, ranker
from tests.narrow import dense

NORMALIZERS = [None, "minmax", "standard", "global minmax", "global standard"]


def run_onnx(exported: fp.results.Export, queries: list[np.ndarray]) -> np.ndarray:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(exported.files["model.onnx"])
    return np.concatenate([session.run(["scores"], {"features": X})[0] for X in queries])


def module(exported: fp.results.Export) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "model"}
    exec(compile(exported.files["model.py"], "model.py", "exec"), names)
    return names


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("normalize", NORMALIZERS)
@pytest.mark.parametrize("kind", RANKERS)
def test_onnx_and_numpy_score_queries_as_predict_does(
    kind: str, normalize: str | None, dtype: str
) -> None:
    fitted, data = ranker(kind, normalize), dataset()[:12]
    data = data.with_features(data.X.astype(dtype), data.feature_names)
    expected = fitted.predict(data)
    queries = [dense(query.X) for query in data]
    actual = run_onnx(fp.export(fitted, "onnx", dtype=dtype), queries)
    scale = np.abs(expected).max()
    assert np.abs(actual - expected).max() <= 1e-6 * scale
    score = module(fp.export(fitted, "numpy"))["score"]
    alone = np.concatenate([score(X) for X in queries])
    at_once = score(data.X, np.repeat(np.arange(len(data)), data.lengths))
    assert alone.tolist() == at_once.tolist()
    if kind in ("linear", "features"):
        assert np.abs(alone - expected).max() <= 1e-12 * scale
    else:
        assert alone.tolist() == expected.tolist()


@pytest.mark.parametrize("impute", [None, "zero"])
def test_a_feature_that_is_constant_within_a_query_is_scaled_to_0(impute: str | None) -> None:
    fitted, data = fp.ListNet(normalize="standard", impute=impute).fit(dataset()), dataset()
    versions = []
    for value in (7.0, 0.1):  # the mean of the second one is rounded
        X = np.array(data.X, np.float64)
        X[:, 0] = value
        versions.append(data.with_features(X, data.feature_names))
    data, expected = versions[1], fitted.predict(versions[0])
    np.testing.assert_allclose(fitted.predict(data), expected, atol=1e-12)
    queries = [dense(query.X) for query in data]
    actual = run_onnx(fp.export(fitted, "onnx", dtype="float64"), queries)
    np.testing.assert_allclose(actual, expected, atol=1e-9)
    score = module(fp.export(fitted, "numpy"))["score"]
    np.testing.assert_allclose(np.concatenate([score(X) for X in queries]), expected, atol=1e-12)


@pytest.mark.parametrize("normalize", [None, "global minmax", "global standard"])
@pytest.mark.parametrize("kind", RANKERS)
def test_onnx_and_numpy_agree_on_extreme_numbers(kind: str, normalize: str | None) -> None:
    fitted = ranker(kind, normalize)
    probes = probe(fitted)
    expected = predict(fitted, probes.X)
    assert probes.error(run_onnx(fp.export(fitted, "onnx"), [probes.X]), expected) <= TOLERANCE
    actual = module(fp.export(fitted, "numpy"))["score"](probes.X)
    assert probes.error(actual, expected) <= TOLERANCE


@pytest.mark.parametrize("normalize", ["minmax", "standard"])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_queries_with_few_or_equal_documents(normalize: str, rows: int) -> None:
    fitted = ranker("lightgbm", normalize)
    X = np.repeat(dense(dataset().X[:1]), rows, axis=0)
    expected = predict(fitted, X)
    assert run_onnx(fp.export(fitted, "onnx"), [X]) == pytest.approx(expected, rel=1e-6)
    assert module(fp.export(fitted, "numpy"))["score"](X).tolist() == expected.tolist()


def network(normalize: str | None = None) -> Model:
    rng = np.random.default_rng(3)
    scoring = NetworkScoring.from_layer(
        rng.normal(0, 1, 6),
        rng.uniform(0.5, 2, 6),
        rng.normal(0, 1, (6, 8)).astype(np.float32),
        rng.normal(0, 1, 8).astype(np.float32),
        rng.normal(0, 1, 8).astype(np.float32),
        0.25,
    )
    transform = (
        None if normalize is None else transform_from_dict({"transform": normalize, "per": "query"})
    )
    return Model("RankNet", {}, scoring, transform, None, {})


@pytest.mark.parametrize("normalize", [None, "minmax", "standardize"])
def test_networks(normalize: str | None) -> None:
    data = fp.Synthetic(queries=20, docs=9, features=6).dataset()
    expected = network(normalize).predict(data)
    queries = [dense(query.X) for query in data]
    actual = run_onnx(fp.export(network(normalize), "onnx"), queries)
    assert np.abs(actual - expected).max() <= 1e-6 * np.abs(expected).max()
    score = module(fp.export(network(normalize), "numpy"))["score"]
    assert np.concatenate([score(X) for X in queries]) == pytest.approx(expected, rel=1e-12)
    with pytest.raises(fp.DataError, match="network, which Solr cannot score; export it to onnx"):
        fp.export(network(normalize), "solr")


DEEP = {
    "deep": Architecture(6, (7, 5), "gelu", True),
    "silu": Architecture(6, (4,), "silu"),
    "tanh": Architecture(6, (3, 4), "tanh"),
    "linear": Architecture(6, ()),
    "attention": Architecture(6, (8,), "relu", False, (2, 4, 5)),
}


@pytest.mark.parametrize("input_transform", ["log1p+standardize", "log1p"])
@pytest.mark.parametrize("case", DEEP)
def test_deep_networks_and_attention(case: str, input_transform: str) -> None:
    data = fp.Synthetic(queries=20, docs="uniform(1, 12)", features=6).dataset()
    data = replace(data, X=(data.X * 10.0 ** np.arange(-9, 9, 3)).astype(np.float32))
    inputs = InputTransform.fit(input_transform, dense(data.X))
    values = np.random.default_rng(1).normal(0, 0.5, DEEP[case].size).astype(np.float32)
    model = Model("RankNet", {}, NetworkScoring(DEEP[case], inputs, values), None, None, {})
    expected, queries = model.predict(data), [dense(query.X) for query in data]
    actual = run_onnx(fp.export(model, "onnx"), queries)
    assert actual == pytest.approx(expected, rel=1e-7, abs=1e-7)  # softmax of the runtime
    score, qid = module(fp.export(model, "numpy"))["score"], np.repeat(range(20), data.lengths)
    assert score(data.X, qid) == pytest.approx(expected, rel=1e-12, abs=1e-12)
    shuffled = np.random.default_rng(0).permutation(data.n_docs)
    assert score(data.X[shuffled], qid[shuffled]) == pytest.approx(expected[shuffled], rel=1e-9)


@pytest.mark.parametrize("target", ["vespa-onnx", "vespa", "solr", "elasticsearch", "ranklib"])
def test_targets_of_single_documents_refuse_attention(target: str) -> None:
    inputs = InputTransform("none", np.zeros(6), np.ones(6))
    shape = DEEP["attention"]
    scoring = NetworkScoring(shape, inputs, np.zeros(shape.size, np.float32))
    with pytest.raises(fp.DataError, match=r"is a listwise network, which .* export it to onnx or"):
        fp.export(Model("RankNet", {}, scoring, None, None, {}), target)


def test_onnx_contains_names_and_supports_empty_models() -> None:
    runtime = pytest.importorskip("onnxruntime")
    exported = fp.export(ranker("linear"), "onnx")
    contents = runtime.InferenceSession(exported.files["model.onnx"]).get_modelmeta()
    assert json.loads(contents.custom_metadata_map["features"]) == NAMES
    empty = Model("RankBoost", {}, StumpsScoring.from_stumps(6, [], [], []), None, None, {})
    assert (run_onnx(fp.export(empty, "onnx"), [dense(dataset().X)]) == 0).all()
    assert (module(fp.export(empty, "numpy"))["score"](dataset().X) == 0).all()


def test_the_numpy_scorer_needs_numpy_alone(tmp_path: Path) -> None:
    """An isolated interpreter runs the file without Firstpage."""
    fitted = ranker("lightgbm")
    fp.export(fitted, "numpy", tmp_path / "mine.py")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]
    text = (tmp_path / "mine.py").read_text()
    assert "import firstpage" not in text
    assert max(map(len, text.splitlines())) < 120
    X = dataset().X[:9]
    lines = "\n".join(" ".join(repr(float(v)) for v in row) for row in X)
    done = subprocess.run(
        [sys.executable, "-I", str(tmp_path / "mine.py")],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [float(line) for line in done.stdout.split()] == predict(fitted, dense(X)).tolist()


def test_the_numpy_scorer_rejects_what_predict_rejects() -> None:
    names = module(fp.export(ranker("linear"), "numpy"))
    assert names["FEATURES"] == NAMES
    X = dataset().X[:3].copy()
    with pytest.raises(ValueError, match="6 columns"):
        names["score"](X[:, :4])
    X[1, 2] = np.nan
    with pytest.raises(ValueError, match="missing or infinite"):
        names["score"](X)
    assert names["score"](X[:0]).tolist() == []


def test_files_of_libraries_score_as_predict_does(tmp_path: Path) -> None:
    import lightgbm
    import xgboost

    X = probe(ranker("lightgbm")).X
    fp.export(ranker("lightgbm"), "lightgbm", tmp_path / "trees.txt")
    actual = lightgbm.Booster(model_file=str(tmp_path / "trees.txt")).predict(X, raw_score=True)
    assert actual.tolist() == predict(ranker("lightgbm"), X).tolist()
    fp.export(ranker("xgboost"), "xgboost", tmp_path / "x")
    booster = xgboost.Booster(model_file=str(tmp_path / "x" / "model.json"))
    actual = booster.predict(xgboost.DMatrix(X), output_margin=True)
    assert actual.astype(float).tolist() == predict(ranker("xgboost"), X).tolist()
    assert json.loads((tmp_path / "x" / "columns.json").read_text()) == NAMES
    for kind, target in (("lightgbm", "xgboost"), ("stumps", "lightgbm"), ("linear", "xgboost")):
        with pytest.raises(fp.DataError, match=f"{target} accepts trees"):
            fp.export(ranker(kind), target)
    with pytest.raises(fp.DataError, match="scales features"):
        fp.export(ranker("lightgbm", "global minmax"), "lightgbm")


def test_global_scaling_needs_no_queries_and_survives_files(tmp_path: Path) -> None:
    fitted = ranker("linear", "global standard")
    assert fitted.transform_.per == "global"
    fitted.save(tmp_path / "m.json")
    again = fp.load(tmp_path / "m.json")
    X = dataset().X
    assert predict(again, dense(X)).tolist() == fitted.predict(dataset()).tolist()
    assert model_of(again).transform == fitted.transform_
