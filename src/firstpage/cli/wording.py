"""Messages of the library in the words of the command line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from firstpage.core import Advice, FirstpageError, FirstpageWarning

# Parameters of functions whose options have another name: those of a command that set them.
OPTIONS = {
    "format of data": "from_",
    "format of documents": "document_format",
    "format of output": "to",
    "format of queries": "query_format",
    "ignore_fields": "ignored",
    "numbering": "ordinal",
    "n_features": "pad",
    "replace of vectors": "replace_vectors",
    "valid": "valid_run",
}


def worded(message: FirstpageError | FirstpageWarning, command: click.Command | None) -> str:
    """Return a message with the option of a command in its advice; without one, no advice."""
    advice = message.advice
    if advice is None:
        return str(message)
    option = None if command is None else _option(advice, command.params)
    if option is None:
        return message.message
    words = [max(option.opts, key=len)]
    if not option.is_flag and advice.value is not None:
        words.append(_text(advice.value))
    return f"{message.message} {advice.sentence.replace('{}', ' '.join(words))}"


def _option(advice: Advice, parameters: Sequence[click.Parameter]) -> click.Option | None:
    """Return the option that sets the parameter of an advice."""
    key = f"{advice.parameter} of {advice.of}" if advice.of else advice.parameter
    name = OPTIONS.get(key, key)
    options = (each for each in parameters if isinstance(each, click.Option))
    return next((option for option in options if option.name == name), None)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={part}" for name, part in value.items())
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
