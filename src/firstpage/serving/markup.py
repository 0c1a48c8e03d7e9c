"""HTML by functions that escape whatever is not marked as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

VOID = ("input", "link", "meta", "br")


class Html(str):
    """A text that is HTML already."""

    __slots__ = ()


Child = str | int | Sequence["Child"] | None


def tag(name: str, /, *children: Child, **attributes: str | int | bool | None) -> Html:
    """Return an element; texts and attributes are escaped.

    Names of attributes have `_` instead of `-`, and end in `_` where Python reserves them.  True is
    an attribute without a value; None and False leave it out.
    """
    words = [name]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        words.append(key if value is True else f'{key}="{escape(str(value))}"')
    start = f"<{' '.join(words)}>"
    return Html(start) if name in VOID else Html(f"{start}{join(*children)}</{name}>")


def join(*children: Child) -> Html:
    """Return children one after the other; texts are escaped."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, list | tuple):
            parts.append(join(*child))
        else:
            parts.append(child if isinstance(child, Html) else escape(str(child)))
    return Html("".join(parts))
