"""HTML by functions that escape whatever is not marked as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
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
    start = name
    for key, value in attributes.items():
        if value is True:
            start += f" {_attribute(key)}"
        elif value is not None and value is not False:
            start += f' {_attribute(key)}="{escape(str(value))}"'
    if name in VOID:
        return Html(f"<{start}>")
    content = children[0] if len(children) == 1 and type(children[0]) is Html else join(*children)
    return Html(f"<{start}>{content}</{name}>")


@cache
def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def join(*children: Child) -> Html:
    """Return children one after the other; texts are escaped."""
    parts: list[str] = []
    for child in children:
        if type(child) is Html:
            parts.append(child)
        elif isinstance(child, list | tuple):
            parts.append(join(*child))
        elif child is not None:
            parts.append(escape(str(child)))
    return Html("".join(parts))
