"""Cross-encoders in ONNX: scores of a query and a text, and graphs that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firstpage as fp
from firstpage.core.errors import DataError
from firstpage.labeling.rerank.list_assessors import load_list_assessor
from firstpage.search import CrossEncoder
from tests.search.encoders.models import TOKENS, write_json, write_tokenizer

onnx: Any = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")

TABLE = np.random.default_rng(0).normal(size=(len(TOKENS), 1)).astype(np.float32)


def save(folder: Path, output: str = "score") -> Path:
    """Write a graph that sums the values of the tokens of the second text."""
    helper, types = onnx.helper, onnx.TensorProto
    nodes = [
        helper.make_node("Gather", ["table", "input_ids"], ["values"]),
        helper.make_node("Cast", ["token_type_ids"], ["kinds"], to=types.FLOAT),
        helper.make_node("Unsqueeze", ["kinds", "last"], ["column"]),
        helper.make_node("Mul", ["values", "column"], ["second"]),
        helper.make_node("ReduceSum", ["second", "middle"], ["score"], keepdims=0),
    ]
    names = ("input_ids", "token_type_ids")
    shape = ["n", 1] if output == "score" else ["n", "m", 1]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info(name, types.INT64, ["n", "m"]) for name in names],
        [helper.make_tensor_value_info(output, types.FLOAT, shape)],
        [
            onnx.numpy_helper.from_array(TABLE, "table"),
            onnx.numpy_helper.from_array(np.array([2]), "last"),
            onnx.numpy_helper.from_array(np.array([1]), "middle"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    folder.mkdir(exist_ok=True)
    onnx.save(model, folder / "model.onnx")
    write_tokenizer(folder / "tokenizer.json")
    return folder


def value(text: str) -> float:
    known = {token: number for number, token in enumerate(TOKENS)}
    return float(sum(TABLE[known[word], 0] for word in text.split()))


def test_scores_are_those_of_the_graph(tmp_path: Path) -> None:
    model = CrossEncoder(save(tmp_path / "model"))
    texts = ["open file", "sort list of numbers", "query"]
    assert np.allclose(model.scores("read lines", texts), [value(text) for text in texts])
    write_json(tmp_path / "model" / "tokenizer_config.json", {"model_max_length": 4})
    cut = CrossEncoder(tmp_path / "model")
    assert np.allclose(cut.scores("read lines", ["sort list of numbers"]), value("sort list"))


def test_a_run_is_reranked_by_its_scores(tmp_path: Path) -> None:
    texts = {word: word for word in TOKENS[5:]}
    run = fp.Run.from_dict({"q": {word: float(at) for at, word in enumerate(texts)}})
    assessor = load_list_assessor(str(save(tmp_path / "model")))
    result = fp.labeling.Reranker(assessor, k=3).rerank(run, {"q": "read"}, texts)
    best = sorted(texts, key=lambda word: -value(word))
    assert list(result.run.docids)[:3] == best[:3]


def test_other_models_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"needs tokenizer.json, and model.onnx"):
        CrossEncoder(tmp_path / "empty")
    pooled = CrossEncoder(save(tmp_path / "tokens", "values"))
    with pytest.raises(DataError, match="a cross-encoder returns one finite score"):
        pooled.scores("read", ["open file"])
