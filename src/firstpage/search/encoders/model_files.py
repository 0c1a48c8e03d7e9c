"""Files of models: configurations, weights and tokenizers, with their digests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

from firstpage.core import Array, DataError, missing_dependency

EXTRA = "embed"
FEATURE = "Encoding texts"


def read_config(path: Path, required: bool = False) -> dict[str, Any]:
    """Return the JSON object of a file; that of a missing file that is not required is empty."""
    if not required and not path.exists():
        return {}
    content = _json(path)
    if not isinstance(content, dict):
        raise DataError(f"{path}: must contain a JSON object.")
    return content


def _unreadable(path: Path, error: OSError) -> DataError:
    if isinstance(error, FileNotFoundError):
        return DataError(f"{path}: no such file; the encoder needs it.")
    return DataError(f"{path}: cannot be read ({error.strerror or first_line(error)}).")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except OSError as error:
        raise _unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: is not JSON, or is damaged ({first_line(error)}).") from error


def read_list(path: Path) -> list[Any]:
    """Return the JSON list of a file."""
    content = _json(path)
    if not isinstance(content, list):
        raise DataError(f"{path}: must contain a JSON list.")
    return content


def read_number(path: Path, config: Mapping[str, Any], key: str) -> int:
    """Return a positive integer of a configuration."""
    value = config.get(key)
    if type(value) is not int or value < 1:
        raise DataError(f"{path}: {key} must be a positive integer; got {value!r}.")
    return value


def read_weights(path: Path) -> dict[str, Array]:
    """Return the arrays of a safetensors file."""
    with _open_weights(path) as weights:
        return {name: weights.get_tensor(name) for name in sorted(weights.keys())}


def weight_names(path: Path) -> set[str]:
    """Return the names of the arrays of a safetensors file."""
    with _open_weights(path) as weights:
        return set(weights.keys())


@contextmanager
def _open_weights(path: Path) -> Iterator[Any]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise missing_dependency("safetensors", EXTRA, FEATURE) from error
    try:
        with safe_open(path, framework="numpy") as weights:
            yield weights
    except OSError as error:
        raise _unreadable(path, error) from error
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: is not a safetensors file that NumPy can read, or is damaged "
            f"({first_line(error)})."
        ) from error


def read_tokenizer(path: Path, max_tokens: int | None = None) -> Any:
    """Return the tokenizer of a file; it pads nothing, and cuts texts after `max_tokens`.

    Its settings are not changed afterwards, so threads may share it.
    """
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise missing_dependency("tokenizers", EXTRA, FEATURE) from error
    if not path.is_file():
        raise _unreadable(path, FileNotFoundError())
    try:
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        if max_tokens is None:
            tokenizer.no_truncation()
        else:
            tokenizer.enable_truncation(max_tokens)
    except Exception as error:  # the library raises plain ones
        raise DataError(f"{path}: is not a tokenizer ({first_line(error)}).") from error
    return tokenizer


def file_digest(path: Path) -> str:
    """Return the sha256 of a file."""
    try:
        status = path.stat()
        return _digest_of(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        raise _unreadable(path, error) from error


@lru_cache(64)
def _digest_of(path: Path, modified: int, size: int) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def settings_digest(**settings: object) -> str:
    """Return a digest of all that changes the vectors of an encoder."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def first_line(error: Exception) -> str:
    """Return the type and the first line of an error, for messages about other libraries."""
    return f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(" .")
