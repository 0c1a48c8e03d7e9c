"""Models in ONNX: token vectors that are pooled here, graphs that pool, and other graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.search import load_encoder
from firstpage.search.encoders.onnx_graph import INT32, EncoderGraph
from tests.search.encoders.models import TOKENS, ids_of, unit, write_json, write_tokenizer

onnx: Any = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

TEXTS = ["open a file", "read lines of numbers and sort", "list"]
TABLE = np.random.default_rng(0).normal(size=(len(TOKENS), 5)).astype(np.float32)


def save_onnx(
    path: Path, nodes: list[tuple[str, list[str], str]], output: str, rank: int, **inputs: Any
) -> None:
    """Write a graph over a table of token vectors."""
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    types = {"int64": onnx.TensorProto.INT64, "int32": onnx.TensorProto.INT32}
    inputs = inputs or {"input_ids": "int64", "attention_mask": "int64"}
    graph = helper.make_graph(
        [helper.make_node(kind, sources, [target]) for kind, sources, target in nodes],
        "tiny",
        [
            helper.make_tensor_value_info(name, types[dtype], ["n", "m"])
            for name, dtype in inputs.items()
        ],
        [helper.make_tensor_value_info(output, onnx.TensorProto.FLOAT, ["n", "m", 5][-rank:])],
        [
            numpy_helper.from_array(TABLE, "table"),
            numpy_helper.from_array(np.array([1]), "axis"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    path.parent.mkdir(exist_ok=True)
    onnx.save(model, path)


GATHER = ("Gather", ["table", "input_ids"], "hidden")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    save_onnx(folder / "model.onnx", [GATHER], "hidden", 3)
    write_tokenizer(folder / "tokenizer.json")
    return folder


@pytest.mark.parametrize("place", ["", "onnx"])
def test_tokens_are_pooled_as_the_option_says(folder: Path, place: str) -> None:
    (folder / place).mkdir(exist_ok=True)
    (folder / "model.onnx").rename(folder / place / "any.onnx")
    with pytest.raises(DataError, match="the model does not say how to pool tokens"):
        load_encoder(folder)
    mean, first = (load_encoder(f"{folder}?pooling={pooling}") for pooling in ("mean", "cls"))
    np.testing.assert_allclose(
        mean.encode_documents(TEXTS),
        [unit(TABLE[ids_of(text)].mean(axis=0)) for text in TEXTS],
        atol=1e-6,
    )
    np.testing.assert_allclose(first.encode_queries(TEXTS), [unit(TABLE[2])] * 3, atol=1e-6)
    assert mean.digest != first.digest


def test_a_graph_that_pools(folder: Path) -> None:
    nodes = [GATHER, ("ReduceMax", ["hidden", "axis"], "largest"),
             ("Squeeze", ["largest", "axis"], "sentence_embedding")]  # fmt: skip
    inputs = {"input_ids": "int32", "token_type_ids": "int32"}
    save_onnx(folder / "model.onnx", nodes, "sentence_embedding", 2, **inputs)
    vector = load_encoder(folder).encode_queries(TEXTS[:1])[0]
    np.testing.assert_allclose(vector, unit(TABLE[ids_of(TEXTS[0])].max(axis=0)), atol=1e-6)


def test_vectors_of_graphs_that_quantize_do_not_depend_on_other_texts(folder: Path) -> None:
    helper = onnx.helper
    model = onnx.load(folder / "model.onnx")
    model.graph.node.append(
        helper.make_node("DynamicQuantizeLinear", ["hidden"], ["q", "scale", "zero"])
    )
    model.graph.node.append(helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["back"]))
    model.graph.output[0].name = "back"
    onnx.save(model, folder / "model.onnx")
    encoder = load_encoder(f"{folder}?pooling=mean")
    alone = np.concatenate([encoder.encode_documents([text]) for text in TEXTS])
    np.testing.assert_array_equal(encoder.encode_documents(TEXTS), alone)


def test_the_digest_depends_on_weights_beside_the_model(folder: Path) -> None:
    name = f"{folder}?pooling=mean"
    before = load_encoder(name).digest
    (folder / "model.onnx_data").write_bytes(b"weights")
    assert load_encoder(name).digest != before


def test_unsupported_folders_are_refused(folder: Path) -> None:
    save_onnx(folder / "other.onnx", [GATHER], "hidden", 3)
    assert load_encoder(f"{folder}?pooling=mean").dimensions == 5  # model.onnx
    (folder / "model.onnx").rename(folder / "first.onnx")
    with pytest.raises(DataError, match=r"a folder with one of its models: first.onnx, other.onnx"):
        load_encoder(f"{folder}?pooling=mean")
    (folder / "first.onnx").unlink()
    save_onnx(folder / "other.onnx", [("Gather", ["table", "words"], "hidden")], "hidden", 3,
              words="int64")  # fmt: skip
    with pytest.raises(DataError, match="the model needs inputs words; only input_ids"):
        load_encoder(f"{folder}?pooling=mean")
    nodes = [
        GATHER,
        ("ReduceMax", ["hidden", "axis"], "largest"),
        ("Squeeze", ["largest", "axis"], "v"),
    ]
    save_onnx(folder / "other.onnx", nodes, "v", 2)
    with pytest.raises(DataError, match="its output 'v' has 2 dimensions; it must be the vectors"):
        load_encoder(f"{folder}?pooling=mean")
    (folder / "other.onnx").write_bytes(b"no model")
    with pytest.raises(DataError, match=r"other.onnx: the model cannot be loaded") as caught:
        load_encoder(f"{folder}?pooling=mean")
    assert "\n" not in str(caught.value)


def test_modules_that_are_not_known_are_refused(folder: Path) -> None:
    write_json(folder / "modules.json", [{"type": "sentence_transformers.models.Dense"}])
    with pytest.raises(DataError, match=r"its module 'sentence_transformers.models.Dense' is not"):
        load_encoder(f"{folder}?pooling=mean")


def test_graphs_that_are_written_here_are_valid() -> None:
    graph = EncoderGraph()
    weight = graph.weight(TABLE)
    hidden = graph.node("Gather", [weight, "ids"])
    graph.nodes("Split", [hidden], ["left", "right"], axis=2)
    total = graph.node("LayerNormalization", ["left", graph.weight(TABLE[0])], epsilon=1e-5)
    model = onnx.load_from_string(
        graph.model({"ids": (INT32, 2)}, graph.node("ReduceMax", [total], axes=(-1, 300)), 3)
    )
    kinds = [node.op_type for node in model.graph.node]
    assert kinds == ["Gather", "Split", "LayerNormalization", "ReduceMax"]
    values = {
        a.name: onnx.helper.get_attribute_value(a) for n in model.graph.node for a in n.attribute
    }
    assert values == {"axis": 2, "epsilon": pytest.approx(1e-5), "axes": [-1, 300]}
    assert [tuple(each.dims) for each in model.graph.initializer] == [TABLE.shape, (5,)]
    assert {each.domain: each.version for each in model.opset_import} == {
        "": 17,
        "com.microsoft": 1,
    }
