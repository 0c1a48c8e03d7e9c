"""Transformers by onnxruntime: settings of a model's folder, batches, and pooling.

A session runs in the calling thread; several batches run in several threads.  That takes less CPU
time than one batch in several threads, which wait for one another in every operator.  The texts of
a batch have equally many tokens, so that none is padded: padding takes time, and a mask takes more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import Array, DataError, install_command, missing_dependency
from firstpage.core.engine import resolve
from firstpage.search.encoders.encoder import Encoder, with_prefix
from firstpage.search.encoders.model_files import (
    EXTRA,
    FEATURE,
    file_digest,
    first_line,
    read_config,
    read_list,
    read_tokenizer,
    settings_digest,
)
from firstpage.search.encoders.options import POOLINGS, EncoderOptions

BATCH_TOKENS = 256  # more do not fit into the cache of a core
MAX_TOKENS = 512  # where a model says nothing
MODULES_FILE = "modules.json"
MODULES = ("Transformer", "Pooling", "Normalize")  # of sentence-transformers that are known here
TOKENIZER = "tokenizer.json"

Forward = Callable[[Array], Array]
"""From token ids, int32, shape (texts, tokens), to the vectors of the tokens, or pooled ones."""


@dataclass(frozen=True)
class TransformerSettings:
    """What makes vectors of the vectors of tokens."""

    max_tokens: int
    pooling: str
    lowercase: bool
    prefixes: tuple[str, str]  # of queries and documents


def read_settings(
    name: str,
    folder: Path,
    options: EncoderOptions,
    positions: int | None = None,
    pools: bool = False,
) -> TransformerSettings:
    """Return the settings of a model's folder; the options of the name take precedence.

    `positions` is how many tokens its weights allow; `pools` says that its graph pools.
    """
    check_modules(name, folder)
    sentence = read_config(folder / "sentence_bert_config.json")
    config = read_config(folder / "config.json")
    limits = [
        sentence.get("max_seq_length"),
        read_config(folder / "tokenizer_config.json").get("model_max_length"),
        config.get("max_position_embeddings") if positions is None else positions,
    ]
    lengths = [limit for limit in limits if type(limit) is int and limit > 0]
    longest = min(lengths[-1:] if options.max_tokens else lengths, default=MAX_TOKENS)
    if options.max_tokens is not None and options.max_tokens > longest:
        raise DataError(f"encoder {name}: max_tokens must be at most {longest}.")
    return TransformerSettings(
        options.max_tokens or longest,
        options.pooling or ("" if pools else _pooling(name, folder)),
        bool(sentence.get("do_lower_case")),
        prefixes(folder, options),
    )


def check_modules(name: str, folder: Path) -> None:
    """Refuse a folder of sentence-transformers with modules that are not known here."""
    if other := _unknown_modules(folder):
        raise DataError(
            f"encoder {name}: its module {other[0]!r} is not supported here; install "
            f"sentence-transformers: {install_command('sentence-transformers')}"
        )


def needs_library(folder: Path) -> bool:
    """Return whether a folder's modules or pooling are known to sentence-transformers alone."""
    return (folder / MODULES_FILE).is_file() and bool(
        _unknown_modules(folder) or _poolings(folder) not in [[each] for each in POOLINGS]
    )


def _unknown_modules(folder: Path) -> list[str]:
    path = folder / MODULES_FILE
    modules = read_list(path) if path.is_file() else []
    types = [str(each.get("type")) for each in modules if isinstance(each, dict)]
    return [each for each in types if each.rpartition(".")[2] not in MODULES]


def prefixes(folder: Path, options: EncoderOptions) -> tuple[str, str]:
    """Return the prefixes of queries and documents: options, else the prompts of the folder."""
    config = read_config(folder / "config_sentence_transformers.json")
    prompts = config.get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    default = prompts.get(config.get("default_prompt_name") or "", "")
    query = prompts.get("query", default)
    names = ("document", "passage", "corpus")
    document = next((prompts[name] for name in names if name in prompts), default)
    return (
        str(query) if options.query is None else options.query,
        str(document) if options.document is None else options.document,
    )


def _pooling(name: str, folder: Path) -> str:
    """Return how the model makes one vector of those of the tokens."""
    poolings = _poolings(folder)
    if len(poolings) == 1 and poolings[0] in POOLINGS:
        return poolings[0]
    problem = (
        f"pools by {' and '.join(poolings)}" if poolings else "does not say how to pool tokens"
    )
    raise DataError(
        f"encoder {name}: the model {problem}; if mean or cls is what it was trained with, write "
        f"{name}?pooling=mean or {name}?pooling=cls."
    )


def _poolings(folder: Path) -> list[str]:
    """Return the poolings of a folder, and `without prompts` if these are left out of them."""
    config = read_config(folder / "1_Pooling" / "config.json")
    mode, prefix = config.get("pooling_mode"), "pooling_mode_"
    names = mode if isinstance(mode, list) else [] if mode is None else [mode]
    names += [
        key[len(prefix) :] for key in config if key.startswith(prefix) and config[key] is True
    ]
    poolings = [str(each).removesuffix("_tokens").removesuffix("_token") for each in names]
    return poolings + ["without prompts"] * (config.get("include_prompt") is False)


class TransformerEncoder:
    """Computes vectors of texts from those of their tokens."""

    def __init__(
        self,
        tokenizer: Any,
        settings: TransformerSettings,
        forward: Forward,
        batch_tokens: int | None,
    ) -> None:
        self._tokenizer, self._settings, self._forward = tokenizer, settings, forward
        self._batch_tokens = batch_tokens
        self.dimensions = self._pooled([[0]]).shape[1]

    def vectors(self, texts: Sequence[str]) -> Array:
        """Return one vector per text; 0 for a text without tokens."""
        if self._settings.lowercase:
            texts = [text.lower() for text in texts]
        encoded = self._tokenizer.encode_batch(list(texts))
        ids = [each.ids if 0 in each.special_tokens_mask else [] for each in encoded]
        batches = list(_batches([len(each) for each in ids], self._batch_tokens or BATCH_TOKENS))
        threads = min(resolve(None), len(batches))
        if threads > 1:
            with ThreadPoolExecutor(threads) as pool:
                pooled = list(pool.map(lambda rows: self._pooled([ids[r] for r in rows]), batches))
        else:
            pooled = [self._pooled([ids[row] for row in rows]) for rows in batches]
        result = np.zeros((len(texts), self.dimensions), np.float32)
        for rows, vectors in zip(batches, pooled, strict=True):
            result[rows] = vectors
        return result

    def _pooled(self, ids: Sequence[Sequence[int]]) -> Array:
        """Return the pooled vectors of texts with equally many tokens."""
        hidden = self._forward(np.array(ids, np.int32))
        if hidden.ndim == 2:  # the graph pools
            return hidden
        pooled: Array = hidden[:, 0] if self._settings.pooling == "cls" else hidden.mean(axis=1)
        return pooled


def _batches(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Yield rows of texts of the same length, of at most `tokens` together or one."""
    rows = [row for row, length in enumerate(lengths) if length]
    for length, group in groupby(sorted(rows, key=lengths.__getitem__), lengths.__getitem__):
        same, size = list(group), max(tokens // length, 1)
        yield from (same[start : start + size] for start in range(0, len(same), size))


def transformer_encoder(
    name: str,
    folder: Path,
    settings: TransformerSettings,
    forward: Forward,
    batch_tokens: int | None = None,
    **digested: object,
) -> Encoder:
    """Return the encoder of a forward pass; `digested` is what else changes its vectors."""
    digest = settings_digest(
        tokenizer=file_digest(folder / TOKENIZER), settings=asdict(settings), **digested
    )
    tokenizer = read_tokenizer(folder / TOKENIZER, settings.max_tokens)
    encoder = TransformerEncoder(tokenizer, settings, forward, batch_tokens)
    queries, documents = (with_prefix(prefix, encoder.vectors) for prefix in settings.prefixes)
    return Encoder(name, digest, encoder.dimensions, queries, documents)


def open_session(source: Path | bytes, where: Path, weights: dict[str, Array] | None = None) -> Any:
    """Return a session of onnxruntime that runs in the calling thread."""
    try:
        import onnxruntime
    except ImportError as error:
        raise missing_dependency("onnxruntime", EXTRA, FEATURE) from error
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors
    if weights:
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(each) for each in weights.values()]
        options.add_external_initializers(list(weights), values)
    model = source if isinstance(source, bytes) else str(source)
    try:
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # the library has an error class per status
        raise DataError(f"{where}: the model cannot be loaded ({first_line(error)}).") from error
