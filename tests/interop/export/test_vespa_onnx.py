"""Vespa with ONNX: the profile passes one document at a time to the model."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import firstpage as fp
from firstpage.learning.models.model_files import Model
from tests.interop.export.conftest import (
    NAMES,
    RANKERS,
    TOLERANCE,
    Probe,
    dataset,
    predict,
    probe,
    ranker,
)
from tests.interop.export.test_runtimes import network
from tests.narrow import dense, present

TENSOR = re.compile(r"tensor<(float|double)>\(d0\[1\],d1\[(\d+)\]\):\[\[(.*?)\]\]", re.S)


def block(text: str, head: str) -> str:
    """Return the text between the brackets after a head."""
    at = text.index(head) + len(head)
    depth, end = 1, at
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    return text[at : end - 1]


class Vespa:
    """Evaluates a profile and its model as Vespa does, one row per run."""

    def __init__(self, exported: fp.results.Export) -> None:
        runtime = pytest.importorskip("onnxruntime")
        profile = next(name for name in exported.files if name.endswith(".profile"))
        name, text = profile.removesuffix(".profile"), exported.files[profile].decode()
        assert text.startswith(f"rank-profile {name} ")
        model = block(text, f"onnx-model {name} {{")
        file = present(re.search(r"file: models/(\S+)\n", model))[1]
        self.input, self.function = present(re.search(r'input "(\w+)": (\w+)\n', model)).groups()
        self.output, alias = present(re.search(r'output "(\w+)": (\w+)\n', model)).groups()
        assert f"expression: sum(onnx({name}).{alias})" in block(text, "first-phase {")
        kind, width, cells = present(
            TENSOR.search(block(text, f"function {self.function}() {{"))
        ).groups()
        self.dtype = np.float32 if kind == "float" else np.float64
        self.order = [cell.strip() for cell in cells.split(",")]
        assert len(self.order) == int(width)
        self.functions = re.findall(r"# feature \d+: (.*)\n\s+function (\w+)\(\)", text)
        self.session = runtime.InferenceSession(exported.files[file])
        assert self.session.get_inputs()[0].shape == [1, int(width)]
        assert self.session.get_outputs()[0].shape == [1]

    def score(self, named: dict[str, np.ndarray]) -> np.ndarray:
        """Columns by the names of features."""
        column = {
            function: named[json.loads(name.removesuffix(" (FILL IN)"))]
            for name, function in self.functions
        }
        X = np.column_stack([column[one] for one in self.order]).astype(self.dtype)
        runs = (self.session.run([self.output], {self.input: row[None]})[0] for row in X)
        return np.array([run.sum() for run in runs])


def columns(names: list[str], X: np.ndarray) -> dict[str, np.ndarray]:
    return {name: X[:, i] for i, name in enumerate(names)}


@pytest.mark.parametrize("normalize", [None, "global minmax", "global standard"])
@pytest.mark.parametrize("kind", RANKERS)
def test_the_onnx_profile_scores_one_document_at_a_time(kind: str, normalize: str | None) -> None:
    fitted = ranker(kind, normalize)
    probes = probe(fitted)
    some = np.random.default_rng(5).permutation(len(probes.X))[:900]  # a run a row takes its time
    probes = Probe(probes.X[some], probes.sizes[some])
    expected = predict(fitted, probes.X)
    actual = Vespa(fp.export(fitted, "vespa-onnx")).score(columns(NAMES, probes.X))
    assert probes.error(actual, expected) <= TOLERANCE


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_networks(dtype: str) -> None:
    data = fp.Synthetic(queries=20, docs=9, features=6).dataset()
    X = dense(data.X).astype(dtype)
    expected = network().predict(data.with_features(X))
    exported = fp.export(network(), "vespa-onnx", dtype=dtype)
    actual = Vespa(exported).score(columns([f"feature_{i}" for i in range(1, 7)], X))
    assert np.abs(actual - expected).max() <= 1e-6 * np.abs(expected).max()
    with pytest.raises(fp.DataError, match="which Vespa cannot score; export it to vespa-onnx"):
        fp.export(network(), "vespa")
    with pytest.raises(fp.DataError, match="cannot score; export it to onnx or numpy"):
        fp.export(network("minmax"), "vespa")


@pytest.mark.torch
def test_a_trained_network() -> None:
    data = dataset()
    fitted = fp.RankNet(scorer="mlp(hidden=8)", solver="sgd(max_iter=2)").fit(data)
    actual = Vespa(fp.export(fitted, "vespa-onnx")).score(columns(NAMES, dense(data.X)))
    expected = fitted.predict(data)
    assert np.abs(actual - expected).max() <= 1e-6 * np.abs(expected).max()


def test_scaling_per_query_is_rejected() -> None:
    for model in (ranker("linear", "minmax"), network("minmax")):
        with pytest.raises(fp.DataError, match="one document at a time; export to onnx"):
            fp.export(model, "vespa-onnx")


def test_definitions_and_file_names_of_vespa_onnx(tmp_path) -> None:
    contents = [{"name": "a", "expression": "bm25(title){d0:0}"}, "b", "c", "d", "e", "f"]
    exported = fp.export(ranker("linear"), "vespa-onnx", features=contents, name="3-shoes")
    assert sorted(exported.files) == ["README.md", "_3_shoes.onnx", "_3_shoes.profile"]
    text = exported.files["_3_shoes.profile"].decode()
    assert "        expression: bm25(title){d0:0}\n" in text
    assert text.count("(FILL IN)") == 5
    readme = exported.files["README.md"].decode()
    assert "models/" in readme
    assert "schemas/SCHEMA/" in readme
    with pytest.raises(fp.DataError, match=r"must be called _3_shoes\.onnx"):
        exported.save(tmp_path / "mine.onnx")
    exported.save(tmp_path / "_3_shoes.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["_3_shoes.onnx", "_3_shoes.profile"]


@pytest.mark.parametrize("bad", ["", "a\nb", "bm25(title) }", 3, {"a": 1}, ["x"]])
@pytest.mark.parametrize("target", ["vespa", "vespa-onnx"])
def test_invalid_expressions_are_rejected(target: str, bad: object) -> None:
    contents = [{"name": "a", "expression": bad}, "b", "c", "d", "e", "f"]
    with pytest.raises(fp.DataError, match="the expression of the feature 'a' must be one line"):
        fp.export(ranker("linear"), target, features=contents)


@pytest.mark.parametrize("target", ["vespa", "vespa-onnx"])
def test_a_profile_named_default_does_not_inherit_itself(target: str) -> None:
    text = fp.export(ranker("linear"), target, name="default").files["default.profile"].decode()
    assert text.startswith("rank-profile default {\n")


def test_models_in_memory_with_one_feature() -> None:
    from firstpage.learning.scorers.linear import LinearScoring

    model = Model("ListNet", {}, LinearScoring(np.array([0.5]), -1.0), None, None, {})
    vespa = Vespa(fp.export(model, "vespa-onnx"))
    assert vespa.score({"feature_1": np.array([4.0], np.float32)}).tolist() == [1.0]
