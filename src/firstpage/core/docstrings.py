"""Complete the docstring of a dataclass with what its base class documents.

Each parameter and each attribute is documented once, in numpydoc form, in the class that defines
it.  `inherit_sections` adds the entries of the base class, so that `help` of a subclass names all.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import pairwise

ORDER = ("Parameters", "Attributes", "Raises", "See Also", "Notes", "References", "Examples")
HEADING = re.compile(r"^([A-Z][A-Za-z ]+)\n-{3,}\n", re.MULTILINE)
ENTRY = re.compile(r"^(\w+) : ", re.MULTILINE)


def inherit_sections(cls: type) -> None:
    """Merge Parameters and Attributes of the base class into the docstring of a new subclass.

    The base class must be complete already.  Parameters come in the order of the signature; where
    both classes document a name, the text of the subclass is used.  Called from
    `__init_subclass__`, that is, before `dataclass` has processed `cls`.
    """
    own, base = cls.__dict__.get("__doc__"), cls.__mro__[1]
    if own is None or base.__doc__ is None:  # python -OO
        return
    text, sections = split_sections(own)
    inherited = _entries(base.__doc__)
    for title in ("Parameters", "Attributes"):
        entries = dict(inherited[title])
        entries.update(split_entries(sections.get(title, "")))
        names = signature_order(cls, base) if title == "Parameters" else list(entries)
        sections[title] = "\n".join(entries[name] for name in names if name in entries)
    titles = sorted(filter(sections.get, sections), key=_position)
    cls.__doc__ = "\n\n".join(
        [text, *(f"{title}\n{'-' * len(title)}\n{sections[title]}" for title in titles)]
    )


@cache
def _entries(docstring: str) -> dict[str, dict[str, str]]:
    """Return the parameters and attributes that a docstring documents, read once per base class."""
    _, sections = split_sections(docstring)
    return {title: split_entries(sections.get(title, "")) for title in ("Parameters", "Attributes")}


def _position(title: str) -> int:
    """Return the place of a section; unknown ones come last."""
    return ORDER.index(title) if title in ORDER else len(ORDER)


def split_sections(docstring: str) -> tuple[str, dict[str, str]]:
    """Return the text before the first section, and the sections by title."""
    text, *tokens = HEADING.split(inspect.cleandoc(docstring))
    bodies = (body.strip("\n") for body in tokens[1::2])
    return text.strip("\n"), dict(zip(tokens[::2], bodies, strict=True))


def split_entries(section: str) -> dict[str, str]:
    """Return the entries `name : type` of a section by name."""
    starts = [*(match.start() for match in ENTRY.finditer(section)), len(section)]
    entries = (section[a:b].strip("\n") for a, b in pairwise(starts))
    return {entry.split(" : ", 1)[0]: entry for entry in entries}


def signature_order(cls: type, base: type) -> list[str]:
    """Return the parameters of the dataclass that `cls` will be, keyword-only ones last."""
    keyword_only = {f.name: bool(f.kw_only) for f in fields(base)} if is_dataclass(base) else {}
    after_marker = False
    for name, annotation in inspect.get_annotations(cls).items():
        if annotation == "KW_ONLY":
            after_marker = True
        elif not str(annotation).startswith("ClassVar"):
            keyword_only[name] = after_marker
    return sorted(keyword_only, key=keyword_only.__getitem__)
