"""Models by the package sentence-transformers: architectures that are not known here, and names.

A folder is loaded offline.  A name such as `org/model` is downloaded by the package, and kept in
its cache.  Models that bring code of their own are refused.
"""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import Array, DataError, missing_dependency
from firstpage.search.encoders.encoder import Encoder, check_vectors, unit_vectors
from firstpage.search.encoders.model_files import (
    FEATURE,
    file_digest,
    first_line,
    read_list,
    settings_digest,
)
from firstpage.search.encoders.options import EncoderOptions
from firstpage.search.encoders.transformer import MODULES_FILE

PACKAGE = "sentence-transformers"
BATCH = 32
ROLES = {"query": ("query",), "document": ("document", "passage", "corpus")}  # and their prompts
PROBE = "the quick brown fox"
WEIGHTS_TOLERANCE = 1e-3  # of the vector of one text by two copies of a model


def sentence_encoder(name: str, base: str, options: EncoderOptions) -> Encoder:
    """Return the encoder of a folder, or of a model that the package downloads."""
    options.refuse_all_but(name, "query", "document", "max_tokens")
    _refuse_code(name, Path(base))
    model = SentenceModel(name, _loaded(name, base), options)
    folder = Path(base) if Path(base).is_dir() else _downloaded(name, base)
    _refuse_code(name, folder)
    dimensions = model.check_weights(SentenceModel(name, _loaded(name, base, seed=1), options))
    digest = settings_digest(kind=PACKAGE, files=_files_digest(folder), options=asdict(options))
    queries, documents = (partial(model.vectors, role) for role in ROLES)
    return Encoder(name, digest, dimensions, queries, documents)


class SentenceModel:
    """A model of the package, whose own prompts count unless an option replaces them."""

    def __init__(self, name: str, model: Any, options: EncoderOptions) -> None:
        self._name, self._model = name, model
        self._prompts = {role: getattr(options, role) for role in ROLES}
        self._lock = threading.Lock()  # its tokenizers must not be shared by threads
        if options.max_tokens is not None:
            model.max_seq_length = options.max_tokens

    def vectors(self, role: str, texts: Sequence[str]) -> Array:
        """Return one vector per text in the role of a query or a document."""
        model, prompt = self._model, self._prompts[role]
        encode = getattr(model, f"encode_{role}", None)
        if encode is None:  # before version 5 of the package
            known = next((each for each in ROLES[role] if each in model.prompts), None)
            encode = partial(model.encode, prompt_name=None if prompt is not None else known)
        settings = {} if prompt is None else {"prompt": prompt}
        with self._lock:
            try:
                vectors: Array = encode(
                    list(texts), batch_size=BATCH, show_progress_bar=False, **settings
                )
            except Exception as error:  # of several libraries
                raise DataError(
                    f"encoder {self._name}: the model failed ({first_line(error)})."
                ) from error
        return vectors

    def check_weights(self, again: SentenceModel) -> int:
        """Return the dimensions; refuse missing weights, which the package replaces at random."""
        first, second = (
            unit_vectors(check_vectors(self._name, each.vectors("query", [PROBE]), 1))
            for each in (self, again)
        )
        if not np.allclose(first, second, atol=WEIGHTS_TOLERANCE):
            raise DataError(
                f"encoder {self._name}: weights of the model are missing or do not fit its "
                "configuration; copy the whole model again."
            )
        return len(first[0])


def _loaded(name: str, base: str, seed: int = 0) -> Any:
    """Return the model, from local files alone if `base` is a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries about each other
        try:
            import torch
            from sentence_transformers import SentenceTransformer
            from transformers.utils import logging
        except ImportError as error:
            other = f"encoder {name} is not a folder; loading a model of this name"
            feature = FEATURE if Path(base).is_dir() else other
            raise missing_dependency(PACKAGE, PACKAGE, feature) from error
        verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
        logging.set_verbosity(logging.CRITICAL)
        logging.disable_progress_bar()
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(seed)
                local = Path(base).is_dir()
                return SentenceTransformer(base, device="cpu", local_files_only=local).eval()
        except Exception as error:  # of several libraries
            raise DataError(
                f"encoder {name}: the model cannot be loaded ({first_line(error)})."
            ) from error
        finally:
            logging.set_verbosity(verbosity)
            if bars:
                logging.enable_progress_bar()


def _downloaded(name: str, base: str) -> Path:
    """Return the folder of the package's cache that contains a model."""
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(base, local_files_only=True))
    except Exception as error:
        raise DataError(
            f"encoder {name}: its downloaded files are not found ({first_line(error)})."
        ) from error


def _refuse_code(name: str, folder: Path) -> None:
    """Refuse a model whose modules are not the package's own, since loading it would run code."""
    if not (folder / MODULES_FILE).is_file():
        return
    for module in read_list(folder / MODULES_FILE):
        kind = str(module.get("type")) if isinstance(module, dict) else ""
        if not kind.startswith("sentence_transformers."):
            raise DataError(
                f"encoder {name}: its module {kind!r} is not part of {PACKAGE}; models that bring "
                "their own code are not loaded."
            )


def _files_digest(folder: Path) -> str:
    """Return the digest of a model's files; hidden files and Markdown do not count."""
    digest = hashlib.sha256()
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    for name in sorted(files):
        hidden = any(part.startswith(".") for part in name.split("/"))
        if files[name].is_file() and not hidden and not name.endswith(".md"):
            digest.update(f"{file_digest(files[name])} {name}\n".encode())
    return digest.hexdigest()
