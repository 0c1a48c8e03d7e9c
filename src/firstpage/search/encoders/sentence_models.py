"""Models by the package sentence-transformers: architectures that are not known here, and names.

A folder is loaded offline.  A name such as `org/model` is downloaded by the package, and kept in
its cache.  Models that bring code of their own are refused.
"""

from __future__ import annotations

import hashlib
import threading
import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from firstpage.core import DataError, missing_dependency
from firstpage.search.encoders.encoder import Encoder
from firstpage.search.encoders.model_files import (
    FEATURE,
    file_digest,
    first_line,
    read_list,
    settings_digest,
)
from firstpage.search.encoders.options import EncoderOptions
from firstpage.search.encoders.transformer import MODULES_FILE, prefixes

PACKAGE = "sentence-transformers"
BATCH = 32


def sentence_encoder(name: str, base: str, options: EncoderOptions) -> Encoder:
    """Return the encoder of a folder, or of a model that the package downloads."""
    options.refuse_all_but(name, "query", "document", "max_tokens")
    _refuse_code(name, Path(base))
    model = _loaded(name, base)
    if options.max_tokens is not None:
        model.max_seq_length = options.max_tokens
    folder = Path(base) if Path(base).is_dir() else _downloaded(name, base)
    digest = settings_digest(
        kind=PACKAGE,
        files=_files_digest(folder),
        max_tokens=options.max_tokens,
        prefixes=prefixes(folder, options),
    )
    lock = threading.Lock()  # its tokenizers must not be shared by threads
    queries, documents = (
        partial(_vectors, name, model, lock, prefix) for prefix in prefixes(folder, options)
    )
    return Encoder(name, digest, queries(["dimensions"]).shape[1], queries, documents)


def _vectors(name: str, model: Any, lock: threading.Lock, prefix: str, texts: Sequence[str]) -> Any:
    with lock:
        try:
            return model.encode(
                [prefix + text for text in texts],
                prompt="",  # the prefix is in the texts
                batch_size=BATCH,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
        except Exception as error:  # of several libraries
            raise DataError(f"encoder {name}: the model failed ({first_line(error)}).") from error


def _loaded(name: str, base: str) -> Any:
    """Return the model, from local files alone if `base` is a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of libraries about each other
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise missing_dependency(PACKAGE, PACKAGE, FEATURE) from error
        try:
            local = Path(base).is_dir()
            return SentenceTransformer(base, device="cpu", local_files_only=local).eval()
        except Exception as error:  # of several libraries
            raise DataError(
                f"encoder {name}: the model cannot be loaded ({first_line(error)})."
            ) from error


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
