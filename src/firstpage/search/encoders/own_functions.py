"""Encoders of one's own: `module:function`, or `module:queries,documents`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from firstpage.core import DataError, imported
from firstpage.search.encoders.encoder import Encoder, check_vectors, with_prefix
from firstpage.search.encoders.model_files import file_digest, first_line, settings_digest
from firstpage.search.encoders.options import EncoderOptions

DIGEST = "digest"  # attribute of a function that stands for the model behind it


def function_encoder(name: str, base: str, options: EncoderOptions) -> Encoder:
    """Return the encoder of one function, or of one for queries and one for documents."""
    options.refuse_all_but(name, "query", "document")
    module, _, text = base.partition(":")
    names = [each.strip() for each in text.split(",")]
    if len(names) > 2:
        raise DataError(f"encoder {name}: write module:function or module:queries,documents.")
    functions = [imported(f"{module}:{each}", "function") for each in names]
    queries, documents = (partial(_called, name, each) for each in (functions[0], functions[-1]))
    widths = [
        check_vectors(name, each(["dimensions"]), 1).shape[1] for each in (queries, documents)
    ]
    if widths[0] != widths[1]:
        raise DataError(
            f"encoder {name}: its vectors have {widths[0]} dimensions for queries and {widths[1]} "
            "for documents."
        )
    prefixes = (options.query or "", options.document or "")
    digest = settings_digest(
        kind="function",
        functions=[_function_digest(each) for each in functions],
        prefixes=prefixes,
        dimensions=widths[0],
    )
    return Encoder(
        name,
        digest,
        widths[0],
        with_prefix(prefixes[0], queries),
        with_prefix(prefixes[1], documents),
    )


def _called(name: str, function: Callable[[Sequence[str]], Any], texts: Sequence[str]) -> Any:
    try:
        return function(list(texts))
    except DataError:
        raise
    except Exception as error:  # whatever the user's code raises
        raise DataError(f"encoder {name}: its function failed ({first_line(error)}).") from error


def _function_digest(function: Any) -> list[str]:
    """Return the function's name with its attribute `digest`, else with that of its file."""
    name = str(getattr(function, "__qualname__", type(function).__qualname__))
    own = getattr(function, DIGEST, None)
    if isinstance(own, str):
        return [name, own]
    try:
        file = inspect.getsourcefile(inspect.unwrap(function))
    except TypeError:  # an object that can be called
        file = inspect.getsourcefile(type(function))
    return [name, file_digest(Path(file)) if file and Path(file).is_file() else ""]
