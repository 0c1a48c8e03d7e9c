"""Static models: means of token vectors, in the forms of model2vec and wordllama."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstpage.core.errors import DataError
from firstpage.search import load_encoder
from firstpage.search.encoders import static_table
from tests.search.encoders.models import TOKENS, save_weights, unit, write_tokenizer
from tests.search.encoders.test_transformer import installed

pytest.importorskip("tokenizers")
pytest.importorskip("safetensors")

TEXTS = ["open a file", "read unknown lines lines", "sort"]
TABLE = np.random.default_rng(0).normal(size=(len(TOKENS), 5)).astype(np.float16)


def folder_of(path: Path, **arrays: Any) -> Path:
    path.mkdir(exist_ok=True)
    write_tokenizer(path / "tokenizer.json")
    save_weights(path / "model.safetensors", **arrays)
    return path


def ids(text: str) -> list[int]:
    return [TOKENS.index(word) if word in TOKENS else 1 for word in text.split()]


def test_a_table_of_sentence_transformers_counts_unknown_words(tmp_path: Path) -> None:
    encoder = load_encoder(folder_of(tmp_path / "m", **{"embedding.weight": TABLE}))
    expected = [unit(TABLE[ids(text)].astype(float).mean(axis=0)) for text in TEXTS]
    assert encoder.dimensions == 5
    np.testing.assert_allclose(encoder.encode_documents(TEXTS), expected, atol=1e-6)


def test_a_table_of_model2vec_leaves_out_unknown_words(tmp_path: Path) -> None:
    encoder = load_encoder(folder_of(tmp_path / "m", embeddings=TABLE))
    expected = [
        unit(TABLE[[n for n in ids(text) if n != 1]].astype(float).mean(axis=0)) for text in TEXTS
    ]
    np.testing.assert_allclose(encoder.encode_queries(TEXTS), expected, atol=1e-6)
    assert not encoder.encode_queries(["unknown words"]).any()
    long = encoder.encode_queries(["open " * 511 + "file " * 500])
    np.testing.assert_allclose(
        long[0], unit(511 * TABLE[5].astype(float) + TABLE[7].astype(float)), atol=1e-6
    )


def test_tokens_may_share_rows_and_have_weights(tmp_path: Path) -> None:
    rows = np.arange(len(TOKENS)) % 3
    weights = np.linspace(0.1, 2, len(TOKENS))
    folder = folder_of(tmp_path / "m", embeddings=TABLE[:3], mapping=rows, weights=weights)
    expected = [
        unit(
            np.mean(
                [weights[n] * TABLE[rows[n]].astype(float) for n in ids(text) if n != 1], axis=0
            )
        )
        for text in TEXTS
    ]
    np.testing.assert_allclose(load_encoder(folder).encode_queries(TEXTS), expected, atol=1e-6)


def test_blocks_and_empty_texts_do_not_change_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = load_encoder(folder_of(tmp_path / "m", embeddings=TABLE))
    texts = ["", *TEXTS, "unknown", "", "open", "unknown"]
    expected = np.concatenate([encoder.encode_queries([text]) for text in texts])
    for size in (1, 4, 100):
        monkeypatch.setattr(static_table, "BLOCK_TOKENS", size)
        np.testing.assert_array_equal(encoder.encode_queries(texts), expected)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"embeddings": TABLE[:4]}, "has vectors of 4 tokens, and its tokenizer has 16 tokens"),
        ({"embeddings": TABLE, "weights": np.ones(3)}, "has vectors of 3 tokens, and its"),
        ({"embeddings": TABLE[0]}, "has no table 'embeddings' or 'embedding.weight'"),
        (
            {"embeddings": TABLE[:3], "mapping": np.arange(len(TOKENS))},
            "its mapping names rows that its table does not have",
        ),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    tmp_path: Path, arrays: dict[str, Any], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        load_encoder(folder_of(tmp_path / "m", **arrays))


def test_options_of_other_models_are_refused(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "m", embeddings=TABLE)
    with pytest.raises(DataError, match="this kind of encoder has no option 'pooling'"):
        load_encoder(f"{folder}?pooling=cls")
    shorter = load_encoder(f"{folder}?max_tokens=1")
    assert shorter.digest != load_encoder(folder).digest
    cut, first = shorter.encode_queries(["open file", "open"])
    np.testing.assert_array_equal(cut, first)


def test_wordllama_is_a_package_and_a_folder() -> None:
    installed("wordllama")
    encoder = load_encoder("wordllama")
    assert encoder.dimensions == 256
    query = encoder.encode_queries(["How do I parse a date?"])[0]
    near, far = encoder.encode_documents(
        ["Parse a string into a date and time.", "Return the cosine of an angle."]
    )
    assert query @ near > 0.5 > 0.2 > query @ far
    from importlib.metadata import distribution

    folder = str(distribution("wordllama").locate_file("wordllama"))
    assert load_encoder(folder).digest == encoder.digest
