"""The public names of the package, and what their docstrings say, for tests."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import firstpage as fp

SECTION = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\s*$", re.MULTILINE)
ENTRY = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : .*)?$", re.MULTILINE)


def public_objects() -> Iterator[tuple[str, Any]]:
    """Yield every public object with the path that leads to it, namespaces included."""
    for name in dir(fp):
        if name == "torch" and find_spec("torch") is None:
            continue
        value = getattr(fp, name)
        if isinstance(value, ModuleType):
            for inner in value.__all__:
                yield f"fp.{name}.{inner}", getattr(value, inner)
        elif not name.startswith("__"):
            yield f"fp.{name}", value


def public_callables() -> Iterator[tuple[str, Any]]:
    """Yield public functions and classes, and the public methods that the classes define."""
    for path, value in public_objects():
        yield path, value
        if not inspect.isclass(value):
            continue
        for name, member in inspect.getmembers(value, _is_method):
            if not name.startswith("_") and member.__module__.startswith("firstpage."):
                yield f"{path}.{name}", member


def _is_method(member: object) -> bool:
    return inspect.isfunction(member) or inspect.ismethod(member)


def sections(docstring: str) -> dict[str, str]:
    """Return the sections of a numpydoc docstring by title; the text before them is ""."""
    parts = SECTION.split(inspect.cleandoc(docstring))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def documented(docstring: str, section: str = "Parameters") -> list[str]:
    """Return the names of a section's entries."""
    text = sections(docstring).get(section, "")
    return [
        name.lstrip("*")
        for line in text.splitlines()
        if (match := ENTRY.fullmatch(line))
        for name in match[1].split(", ")
    ]


def parameters(value: Any) -> list[str]:
    """Return the parameters that a caller can pass."""
    if inspect.isclass(value) and issubclass(value, BaseException):
        return []
    if dataclasses.is_dataclass(value) and inspect.isclass(value):
        return [f.name for f in dataclasses.fields(value) if f.init]
    names = list(inspect.signature(value).parameters)
    return [name for name in names if name not in ("self", "cls")]
