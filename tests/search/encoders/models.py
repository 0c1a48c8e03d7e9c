"""Tiny models with random weights, written as the files that encoders read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WORDS = ("open", "a", "file", "read", "lines", "sort", "list", "of", "numbers", "query", "passage")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", ":")
TOKENS = (*SPECIAL, *WORDS)
BERT = {
    "model_type": "bert", "hidden_size": 8, "num_attention_heads": 2, "num_hidden_layers": 2,
    "intermediate_size": 12, "max_position_embeddings": 16, "vocab_size": len(TOKENS),
    "type_vocab_size": 2, "layer_norm_eps": 1e-5, "hidden_act": "gelu",
}  # fmt: skip


def write_json(path: Path, content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def save_weights(path: Path, **arrays: Any) -> None:
    numpy = pytest.importorskip("safetensors.numpy")
    numpy.save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, path)


def write_tokenizer(path: Path, special: bool = True) -> None:
    """Words between blanks, lower-cased; texts begin with [CLS] and end with [SEP]."""
    ids = {token: number for number, token in enumerate(TOKENS)}
    template = {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
        ],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {
            token: {"id": token, "ids": [ids[token]], "tokens": [token]}
            for token in ("[CLS]", "[SEP]")
        },
    }
    content: dict[str, Any] = {
        "version": "1.0",
        "truncation": {
            "max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right",
        },
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "Lowercase"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": template if special else None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": ids, "unk_token": "[UNK]"},
    }  # fmt: skip
    path.write_text(json.dumps(content))


def ids_of(text: str, max_tokens: int = 16) -> list[int]:
    """The tokens of a text as the tokenizer should return them."""
    known = {token: number for number, token in enumerate(TOKENS)}
    words = text.lower().replace(":", " : ").split()[: max_tokens - 2]
    return [2, *(known.get(word, 1) for word in words), 3]


def bert_weights(config: dict[str, Any], seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    width, inner = config["hidden_size"], config["intermediate_size"]
    arrays: dict[str, Any] = {}

    def add(name: str, *shape: int) -> None:
        arrays[name] = rng.normal(0, 0.5, shape).astype(np.float32)

    def dense(name: str, outputs: int, inputs: int) -> None:
        add(f"{name}.weight", outputs, inputs)
        add(f"{name}.bias", outputs)

    def norm(name: str) -> None:
        add(f"{name}.LayerNorm.weight", width)
        add(f"{name}.LayerNorm.bias", width)

    add("embeddings.word_embeddings.weight", config["vocab_size"], width)
    add("embeddings.position_embeddings.weight", config["max_position_embeddings"], width)
    add("embeddings.token_type_embeddings.weight", config["type_vocab_size"], width)
    norm("embeddings")
    for layer in range(config["num_hidden_layers"]):
        prefix = f"encoder.layer.{layer}"
        for name in ("query", "key", "value"):
            dense(f"{prefix}.attention.self.{name}", width, width)
        dense(f"{prefix}.attention.output.dense", width, width)
        norm(f"{prefix}.attention.output")
        dense(f"{prefix}.intermediate.dense", inner, width)
        dense(f"{prefix}.output.dense", width, inner)
        norm(f"{prefix}.output")
    return arrays


def write_bert(folder: Path, prefix: str = "", seed: int = 0, **changes: Any) -> Path:
    """A BERT with mean pooling, as sentence-transformers saves it."""
    config = BERT | changes
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", config)
    arrays = bert_weights(config, seed)
    save_weights(
        folder / "model.safetensors", **{prefix + name: array for name, array in arrays.items()}
    )
    write_tokenizer(folder / "tokenizer.json")
    write_json(folder / "1_Pooling" / "config.json", {"pooling_mode_mean_tokens": True})
    return folder


def bert_reference(
    ids: list[int], config: dict[str, Any], arrays: dict[str, Any], first_position: int = 0
) -> Any:
    """The vectors of all tokens of one text, as the paper defines them, in double precision."""
    from scipy.special import erf

    weights = {name: array.astype(float) for name, array in arrays.items()}

    def dense(name: str, values: Any) -> Any:
        return values @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(name: str, values: Any) -> Any:
        centered = values - values.mean(axis=-1, keepdims=True)
        scale = np.sqrt(values.var(axis=-1, keepdims=True) + config["layer_norm_eps"])
        return (
            centered / scale * weights[f"{name}.LayerNorm.weight"]
            + weights[f"{name}.LayerNorm.bias"]
        )

    def gelu(values: Any) -> Any:
        if config["hidden_act"] == "gelu":
            return values / 2 * (1 + erf(values / np.sqrt(2)))
        return values / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (values + 0.044715 * values**3)))

    positions = np.arange(len(ids)) + first_position
    hidden = norm(
        "embeddings",
        weights["embeddings.word_embeddings.weight"][ids]
        + weights["embeddings.position_embeddings.weight"][positions]
        + weights["embeddings.token_type_embeddings.weight"][0],
    )
    heads = config["num_attention_heads"]
    for layer in range(config["num_hidden_layers"]):
        prefix = f"encoder.layer.{layer}"
        query, key, value = (
            dense(f"{prefix}.attention.self.{name}", hidden)
            .reshape(len(ids), heads, -1)
            .transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        logits = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
        odds = np.exp(logits - logits.max(axis=-1, keepdims=True))
        attended = odds / odds.sum(axis=-1, keepdims=True) @ value
        joined = attended.transpose(1, 0, 2).reshape(len(ids), -1)
        output = f"{prefix}.attention.output"
        hidden = norm(output, dense(f"{output}.dense", joined) + hidden)
        inner = gelu(dense(f"{prefix}.intermediate.dense", hidden))
        hidden = norm(f"{prefix}.output", dense(f"{prefix}.output.dense", inner) + hidden)
    return hidden


def unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)
