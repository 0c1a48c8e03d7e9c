"""Models saved by sentence-transformers: our own forward pass, and the package where it is needed."""

from __future__ import annotations

import re
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.core.errors import DataError, MissingDependency, install_command
from firstpage.search import load_encoder
from tests.search.encoders.models import BERT, save_weights, write_bert, write_json

TEXTS = ["open a file", "read lines of numbers and sort", "list"]


@pytest.fixture(scope="module")
def library() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("torch")
        return pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="module")
def folder(library: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT with prompts, written by hand; the package can read it."""
    folder = write_bert(tmp_path_factory.mktemp("models") / "tiny", architectures=["BertModel"])
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "unk_token": "[UNK]",
        "cls_token": "[CLS]", "sep_token": "[SEP]", "model_max_length": 16,
    })  # fmt: skip
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 16, "do_lower_case": False})
    write_json(folder / "config_sentence_transformers.json", {
        "prompts": {"query": "query: ", "document": "passage: "}, "default_prompt_name": None,
    })  # fmt: skip
    write_pooling(folder, "mean_tokens")
    return folder


def write_pooling(folder: Path, name: str) -> None:
    pooling = {"word_embedding_dimension": BERT["hidden_size"], f"pooling_mode_{name}": True}
    pooling.setdefault("pooling_mode_mean_tokens", False)
    write_json(folder / "1_Pooling" / "config.json", pooling)
    kind = "sentence_transformers.models"
    write_json(folder / "modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": f"{kind}.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": f"{kind}.Pooling"},
    ])  # fmt: skip


def of_library(library: Any, folder: Path, role: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = library.SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        prompt = {"query": "query: ", "document": "passage: "}[role]
        return model.encode(TEXTS, prompt=prompt, normalize_embeddings=True)


@pytest.mark.torch
@pytest.mark.parametrize("pooling", ["mean_tokens", "cls_token", "max_tokens"])
def test_vectors_equal_those_of_the_package(
    library: Any, folder: Path, tmp_path: Path, pooling: str
) -> None:
    """Maxima are pooled by the package; the others here, by onnxruntime."""
    pytest.importorskip("onnxruntime")
    model = tmp_path / "model"
    shutil.copytree(folder, model)
    write_pooling(model, pooling)
    encoder = load_encoder(model if pooling == "max_tokens" else f"{model}?precision=float32")
    for role, vectors in (
        ("query", encoder.encode_queries(TEXTS)),
        ("document", encoder.encode_documents(TEXTS)),
    ):
        np.testing.assert_allclose(vectors, of_library(library, model, role), atol=3e-6)
    assert not encoder.encode_queries([""]).any()


@pytest.mark.torch
def test_options_and_digests_of_models_of_the_package(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(folder, model)
    write_pooling(model, "max_tokens")
    own, same = load_encoder(model), load_encoder(f"{model}?query=query: &document=passage: ")
    np.testing.assert_allclose(own.encode_queries(TEXTS), same.encode_queries(TEXTS), atol=1e-6)
    cut = load_encoder(f"{model}?query=&max_tokens=3")
    longer, shorter = cut.encode_queries(["open a file", "open"])
    np.testing.assert_allclose(longer, shorter, atol=1e-6)
    digests = {own.digest, cut.digest, load_encoder(f"{model}?document=a").digest}
    (model / "README.md").write_text("other words")
    assert load_encoder(model).digest in digests
    write_bert(model, seed=1)
    write_pooling(model, "max_tokens")
    assert load_encoder(model).digest not in digests
    assert len(digests) == 3


@pytest.mark.torch
def test_missing_weights_and_own_code_are_refused(
    library: Any, folder: Path, tmp_path: Path
) -> None:
    from safetensors.numpy import load_file

    model = tmp_path / "model"
    shutil.copytree(folder, model)
    write_pooling(model, "max_tokens")
    weights = load_file(model / "model.safetensors")
    del weights["encoder.layer.1.output.dense.weight"]
    save_weights(model / "model.safetensors", **weights)
    with pytest.raises(DataError, match="weights of the model are missing or do not fit its conf"):
        load_encoder(model)
    write_json(model / "modules.json", [{"idx": 0, "name": "0", "path": "", "type": "own.Model"}])
    with pytest.raises(DataError, match=r"its module 'own.Model' is not part of sentence-tr"):
        load_encoder(model)


def test_names_of_the_hub_need_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    command = install_command("sentence-transformers")
    with pytest.raises(MissingDependency, match=re.escape(command)):
        load_encoder("org/model")
