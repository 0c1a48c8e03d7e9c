"""Grade scales of a project, further aspects to grade, and reasons as tags.

A grade is stored as its number, from 0 for the worst; names, keys and colors only change how it is
shown.  Scales are written as texts, one grade per line or separated by semicolons: `name`, or
`name, key`, or `name, key, #color`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from firstpage.core import DataError

DEFAULT_NAMES = ("Bad", "Fair", "Good", "Excellent", "Perfect")
MAX_GRADES = 10
MAX_TAGS = 20
DEFAULT_KEYS = "1234567890"
RESERVED_KEYS = "cdghjpstuvxz"  # of the judging page; `tools.js` has them too
COLOR = re.compile(r"#[0-9a-fA-F]{6}")


Name = Annotated[str, Meta(max_length=60)]


class GradeLevel(Struct, frozen=True, forbid_unknown_fields=True):
    """One grade: its name, and optionally its key and its color."""

    name: Name
    key: Annotated[str, Meta(pattern="^[a-z0-9]$", max_length=1)] | None = None
    color: Annotated[str, Meta(pattern=f"^{COLOR.pattern}$", max_length=7)] | None = None


Scale = Annotated[list[GradeLevel], Meta(min_length=2, max_length=MAX_GRADES)]
Tags = Annotated[list[Name], Meta(min_length=1, max_length=MAX_TAGS)]


def check_scale(levels: Sequence[GradeLevel]) -> None:
    """Raise unless names and keys of a scale are distinct, and keys have no other meaning."""
    check_names([level.name for level in levels])
    keys = [level.key or "" for level in shown_scale(levels)]
    if len(set(keys)) < len(keys) or any(key in RESERVED_KEYS for key in keys):
        raise ValueError("a key occurs twice, or has another meaning")


def check_names(names: Sequence[str]) -> None:
    """Raise unless names are distinct, and can be shown in a line."""
    if len(set(names)) < len(names):
        raise ValueError("names must be distinct")
    if any(not name.strip() or name != name.strip() or not name.isprintable() for name in names):
        raise ValueError("a name must not have line breaks")


def shown_scale(levels: Sequence[GradeLevel] | None) -> list[GradeLevel]:
    """Return the grades as they are shown, worst first, each with its key."""
    named = levels or [GradeLevel(name=name) for name in DEFAULT_NAMES]
    return [
        level if level.key is not None else structs.replace(level, key=DEFAULT_KEYS[number])
        for number, level in enumerate(named)
    ]


def grade_names(levels: Sequence[GradeLevel] | None) -> tuple[str, ...]:
    """Return the names of the grades, worst first."""
    return tuple(level.name for level in shown_scale(levels))


COUNTS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def scale_title(levels: Sequence[GradeLevel] | None) -> str:
    """Return how a scale is called in a text, such as "five grades"."""
    return f"{COUNTS[len(shown_scale(levels)) - 2]} grades"


def scale_ends(levels: Sequence[GradeLevel] | None) -> str:
    """Return the first and the last grade, such as "from “Bad” to “Perfect”"."""
    scale = shown_scale(levels)
    return f"from “{scale[0].name}” to “{scale[-1].name}”"


def parse_scale(text: str) -> list[dict[str, Any]] | None:
    """Return the grades of a text, worst first; None if it is empty."""
    levels: list[dict[str, Any]] = []
    for line in _lines(text):
        name, *rest = (part.strip() for part in line.split(","))
        level: dict[str, Any] = {"name": name}
        for part in filter(None, rest):
            field = "color" if COLOR.fullmatch(part) else "key"
            if field in level or (field == "key" and len(part) > 1):
                raise DataError(
                    f"the grade {line[:80]!r} must be a name, a key and a color such as #2e7d32."
                )
            level[field] = part.lower()
        levels.append(level)
    return levels or None


def parse_tags(text: str) -> list[str] | None:
    """Return the tags of a text; None if it is empty."""
    return _lines(text) or None


def _lines(text: str) -> list[str]:
    return [line.strip() for line in re.split(r"[\n;]", text) if line.strip()]


def scale_text(levels: Iterable[GradeLevel] | None) -> str:
    """Return a scale as the text from which `parse_scale` reads it."""
    return "\n".join(
        ", ".join(filter(None, (level.name, level.key, level.color))) for level in levels or ()
    )


def describe_scale(levels: Sequence[GradeLevel] | None) -> str:
    """Return the numbers and names of the grades, as a note on an export."""
    names = [level.name for level in shown_scale(levels)]
    return ", ".join(f"{number} = {name}" for number, name in enumerate(names))


def check_annotations(
    reasons: Sequence[str], aspects: Mapping[str, int], options: Any, graded: bool
) -> None:
    """Refuse reasons and aspects that the project does not have."""
    for reason in reasons:
        if reason not in (options.reasons or ()):
            raise DataError(f"this project has no reason {reason[:60]!r}.")
    if aspects and not graded:
        raise DataError("only documents that are graded have aspects.")
    highest = len(shown_scale(options.grades)) - 1
    for aspect, grade in aspects.items():
        if aspect not in (options.aspects or ()):
            raise DataError(f"this project has no aspect {aspect[:60]!r}.")
        if not 0 <= grade <= highest:
            raise DataError(f"the grade of an aspect must be from 0 to {highest}; got {grade}.")
