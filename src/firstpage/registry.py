"""Objects from texts that name them with parameters: `sgd(rate=0.01)`, `trees(count=300)`.

Case, hyphens, underscores, points and blanks do not matter in names.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from inspect import signature
from typing import Any, Generic, TypeVar

import numpy as np

from firstpage.errors import DataError

Kind = TypeVar("Kind")
MOST, MOST_WHOLE = 1e300, 2**62  # no parameter is greater
FORM = re.compile(r"\s*([^\W\d][\w\-. ]*?)\s*(?:\((.*)\))?\s*", re.DOTALL)


class ParameterError(DataError):
    """A name or a parameter that does not exist."""


def number(
    owner: object, name: str, low: float | None = None, above: float | None = None,
    whole: bool = False,
) -> None:  # fmt: skip
    """Refuse a parameter that is no number, or out of its range."""
    value: Any = getattr(owner, name)
    kinds: Any = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    fine = isinstance(value, kinds) and not isinstance(value, bool)
    fine = fine and abs(value) <= (MOST_WHOLE if whole else MOST)  # which also tells NaN
    if fine and (low is None or value >= low) and (above is None or value > above):
        return
    range_ = "" if low is None else f" from {low:g} on"
    range_ = range_ if above is None else f" above {above:g}"
    what = "a whole number" if whole else "a number"
    raise ParameterError(f"{name} of {type(owner).__name__} must be {what}{range_}; got {value!r}.")


def plain(name: str) -> str:
    """A name without case, hyphens, underscores, points and blanks."""
    return re.sub(r"[-_.\s]", "", name).casefold()


def split(text: str) -> tuple[str, dict[str, Any]]:
    """`name(a=1, b=x)` as its name and parameters."""
    if text.isalpha():
        return text, {}
    match = FORM.fullmatch(text)
    if match is None:
        raise ParameterError(
            f"cannot read {text!r}; it must look like name or name(parameter=value)."
        )
    given: dict[str, Any] = {}
    for item in pieces(match[2] or ""):
        if item.strip():
            name, equals, value = (part.strip() for part in item.partition("="))
            if not equals:
                raise ParameterError(f"{text!r}: parameters read name=value; got {item.strip()!r}.")
            given[name] = literal(value)
    return match[1], given


def pieces(text: str) -> list[str]:
    """What stands between commas, but not those inside brackets."""
    found, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            found.append("")
        else:
            found[-1] += letter
    return found


def literal(text: str) -> Any:
    """A number, true, false, none, a list or tuple of such; anything else is a text."""
    word = text.strip()
    if word.lower() in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[word.lower()]
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError):
        return word


def lookup(name: str, known: Mapping[str, Kind], kind: str) -> Kind:
    """Return the entry of this name; keys of `known` are written as people write them."""
    by_plain = {plain(key): value for key, value in known.items()}
    if plain(name) in by_plain:
        return by_plain[plain(name)]
    near = get_close_matches(plain(name), by_plain, 1, 0.5)
    shown = {plain(key): key for key in known}
    hint = f"Did you mean {shown[near[0]]!r}?" if near else f"There are: {', '.join(known)}."
    raise ParameterError(f"there is no {kind} {name!r}. {hint}")


@dataclass(frozen=True)
class Registry(Generic[Kind]):
    """Classes by name, and instances from texts.

    kind     what an entry is, for messages: "loss", "solver"
    entries  classes by the names that are listed
    aliases  other names, and the entries they mean
    """

    kind: str
    entries: Mapping[str, type[Kind]]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def find(self, name: str) -> type[Kind]:
        """Return the class of this name or alias."""
        others = {alias: self.entries[entry] for alias, entry in self.aliases.items()}
        return lookup(name, {**self.entries, **others}, self.kind)

    def create(self, text: str, defaults: Mapping[str, Any] | None = None, **given: Any) -> Kind:
        """Return an instance of what a text names, with the parameters of the text.

        defaults  parameters that the class may lack, and that the text may name otherwise
        given     parameters that the class must have; they win over those of the text
        """
        name, inside = split(text)
        return self.instance(name, {**inside, **given}, defaults)

    def instance(
        self, name: str, given: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> Kind:
        """Return an instance of the class of this name; unknown parameters are refused."""
        cls = self.find(name)
        allowed = parameters(cls)
        for key in given:
            if key not in allowed:
                options = ", ".join(allowed) or "none"
                raise ParameterError(
                    f"{cls.__name__} has no parameter {key!r} (it has: {options})."
                )
        usual = {key: value for key, value in (defaults or {}).items() if key in allowed}
        return cls(**{**usual, **given})


def by_class_name(*classes: type[Kind]) -> dict[str, type[Kind]]:
    """Return classes by their names."""
    return {cls.__name__: cls for cls in classes}


def parameters(cls: type) -> list[str]:
    """Return the names of a class's parameters."""
    if is_dataclass(cls):
        return [f.name for f in fields(cls) if f.init]
    return list(signature(cls).parameters)
