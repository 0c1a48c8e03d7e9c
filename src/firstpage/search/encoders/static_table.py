"""Static models: the vector of a text is the mean of the vectors of its tokens.

References
----------
The form of model2vec (github.com/MinishLab/model2vec): `tokenizer.json`, and `model.safetensors`
with `embeddings`, optional `weights` of tokens and `mapping` of tokens to rows.  The form of
sentence-transformers' StaticEmbedding and of wordllama: `embedding.weight`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import Array, DataError, Ints
from firstpage.search.encoders.encoder import Encoder, with_prefix
from firstpage.search.encoders.model_files import (
    file_digest,
    read_tokenizer,
    read_weights,
    settings_digest,
)
from firstpage.search.encoders.options import EncoderOptions

MODEL2VEC, STATIC_EMBEDDING = "embeddings", "embedding.weight"  # names of the table
MODEL2VEC_TOKENS = 512  # where model2vec cuts texts
BLOCK_TOKENS = 1 << 14  # whose vectors are in memory at a time


def static_encoder(name: str, weights: Path, tokenizer: Path, options: EncoderOptions) -> Encoder:
    """Return the encoder of a table of token vectors."""
    options.refuse_all_but(name, "query", "document", "max_tokens")
    arrays = read_weights(weights)
    model2vec = MODEL2VEC in arrays
    max_tokens = options.max_tokens or (MODEL2VEC_TOKENS if model2vec else None)
    table = TokenTable(weights, arrays, read_tokenizer(tokenizer, max_tokens))
    prefixes = (options.query or "", options.document or "")
    digest = settings_digest(
        kind="static",
        weights=file_digest(weights),
        tokenizer=file_digest(tokenizer),
        max_tokens=max_tokens,
        prefixes=prefixes,
    )
    queries, documents = (with_prefix(prefix, table.vectors) for prefix in prefixes)
    return Encoder(name, digest, table.rows.shape[1], queries, documents)


def is_static(names: Collection[str]) -> bool:
    """Return whether weights with these names are a table of token vectors."""
    return MODEL2VEC in names or set(names) == {STATIC_EMBEDDING}


class TokenTable:
    """The vectors of tokens, and the mean of those of a text."""

    def __init__(self, path: Path, arrays: Mapping[str, Array], tokenizer: Any) -> None:
        key = MODEL2VEC if MODEL2VEC in arrays else STATIC_EMBEDDING
        if key not in arrays or arrays[key].ndim != 2:
            raise DataError(f"{path}: has no table {MODEL2VEC!r} or {STATIC_EMBEDDING!r}.")
        self.rows: Array = np.asarray(arrays[key], np.float32)
        self._tokenizer = tokenizer
        size = tokenizer.get_vocab_size()
        self._row_of = _per_token(arrays.get("mapping"), np.intp)
        self._weights = _per_token(arrays.get("weights"), np.float32)
        tables = (self._row_of, self._weights, self.rows if self._row_of is None else None)
        known = min(len(each) for each in tables if each is not None)
        if self._row_of is not None and not _are_rows(self._row_of, len(self.rows)):
            raise DataError(f"{path}: its mapping names rows that its table does not have.")
        if known < size:
            raise DataError(
                f"{path}: has vectors of {known:,} tokens, and its tokenizer has {size:,} tokens; "
                "do they belong together?"
            )
        self._unknown = _unknown_token(tokenizer) if key == MODEL2VEC else None

    def vectors(self, texts: Sequence[str]) -> Array:
        """Return the mean vector of the tokens of each text, 0 without tokens."""
        encoded = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        ids = [np.array(each.ids, np.intp) for each in encoded]
        if self._unknown is not None:
            ids = [each[each != self._unknown] for each in ids]
        result = np.zeros((len(ids), self.rows.shape[1]), np.float32)
        begin = tokens = 0
        for end in range(1, len(ids) + 1):
            tokens += len(ids[end - 1])
            if tokens >= BLOCK_TOKENS or end == len(ids):
                result[begin:end] = self._means(ids[begin:end])
                begin, tokens = end, 0
        return result

    def _means(self, ids: Sequence[Ints]) -> Array:
        counts = np.array([len(each) for each in ids])
        means = np.zeros((len(ids), self.rows.shape[1]), np.float32)
        tokens = np.concatenate(ids)
        if not len(tokens):
            return means
        vectors = self.rows[tokens if self._row_of is None else self._row_of[tokens]]
        if self._weights is not None:
            vectors *= self._weights[tokens, None]
        present = counts > 0
        starts = (np.cumsum(counts) - counts)[present]
        means[present] = np.add.reduceat(vectors, starts) / counts[present, None]
        return means


def _per_token(values: Array | None, dtype: type[np.generic]) -> Array | None:
    return None if values is None else np.asarray(values, dtype).ravel()


def _are_rows(numbers: Array, count: int) -> bool:
    return len(numbers) > 0 and numbers.min() >= 0 and numbers.max() < count


def _unknown_token(tokenizer: Any) -> int | None:
    """Return the number of the token for unknown words, which model2vec leaves out."""
    token = getattr(tokenizer.model, "unk_token", None)
    number: int | None = tokenizer.token_to_id(token) if token else None
    return number
