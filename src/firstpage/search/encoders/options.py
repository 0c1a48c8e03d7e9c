"""Options of an encoder's name: `NAME?query=query: &document=passage: &max_tokens=256`."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from urllib.parse import unquote

from firstpage.core import DataError

POOLINGS = ("mean", "cls")
PRECISIONS = ("int8", "float32")


@dataclass(frozen=True)
class EncoderOptions:
    """What a name sets; None is the model's own setting.

    `query` and `document` are prefixes, `max_tokens` is where texts are cut, `pooling` makes one
    vector of those of the tokens, and `precision` is that of matrix products.
    """

    query: str | None = None
    document: str | None = None
    max_tokens: int | None = None
    pooling: str | None = None
    precision: str | None = None

    def refuse_all_but(self, name: str, *options: str) -> None:
        """Raise if another option is set, since this kind of encoder does not have it."""
        for option, value in vars(self).items():
            if value is not None and option not in options:
                raise DataError(f"encoder {name}: this kind of encoder has no option {option!r}.")


def split_options(name: str) -> tuple[str, EncoderOptions]:
    """Return a name without its options, and the options.

    Those of an endpoint follow its `#model`, since a question mark before belongs to the address.
    An existing file or folder may contain a question mark.
    """
    address, mark, model = name.partition("#")
    if name.startswith(("http://", "https://")):
        base, question, text = model.partition("?")
        base = f"{address}{mark}{base}"
    elif os.path.exists(name):
        return name, EncoderOptions()
    else:
        base, question, text = name.partition("?")
    known = {option.name for option in fields(EncoderOptions)}
    values: dict[str, str] = {}
    for item in text.split("&") if question else ():
        option, equals, value = item.partition("=")
        if not equals or option not in known or option in values:
            raise DataError(
                f"encoder {name}: cannot read its option {item!r}; write NAME?option=value&.., "
                f"each option once, with {', '.join(sorted(known))}."
            )
        values[option] = unquote(value)
    return base, EncoderOptions(
        values.get("query"),
        values.get("document"),
        _max_tokens(name, values.get("max_tokens")),
        _choice(name, "pooling", values.get("pooling"), POOLINGS),
        _choice(name, "precision", values.get("precision"), PRECISIONS),
    )


def _max_tokens(name: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise DataError(f"encoder {name}: max_tokens must be a positive integer; got {text!r}.")
    return int(text)


def _choice(name: str, option: str, value: str | None, choices: tuple[str, ...]) -> str | None:
    if value is not None and value not in choices:
        raise DataError(
            f"encoder {name}: {option} must be one of {', '.join(choices)}; got {value!r}."
        )
    return value
