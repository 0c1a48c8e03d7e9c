"""Parse texts such as `sgd(rate=0.01)` or `trees(count=300)` into objects.

Names ignore case, hyphens, underscores, periods and blanks.  `module:Name` names an object of any
module, and is taken literally.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from importlib import import_module
from inspect import signature
from typing import Any, Generic, TypeVar

import numpy as np

from firstpage.core.errors import DataError

Kind = TypeVar("Kind")
MAX_FLOAT, MAX_INTEGER = 1e300, 2**62  # bounds of the absolute value of a parameter
CALL = re.compile(r"\s*([^\W\d][\w\-.: ]*?)\s*(?:\((.*)\))?\s*", re.DOTALL)
PACKAGE = __name__.partition(".")[0]


class ParameterError(DataError):
    """A name or a parameter does not exist, or a value is out of range."""


def check_number(
    owner: object,
    name: str,
    minimum: float | None = None,
    above: float | None = None,
    integer: bool = False,
) -> None:
    """Raise ParameterError unless the attribute `name` of `owner` is a number in its range."""
    value: Any = getattr(owner, name)
    types: Any = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    valid = isinstance(value, types) and not isinstance(value, bool)
    valid = valid and abs(value) <= (MAX_INTEGER if integer else MAX_FLOAT)  # False for NaN
    if valid and (minimum is None or value >= minimum) and (above is None or value > above):
        return
    bound = "" if minimum is None else f" of at least {minimum:g}"
    bound = bound if above is None else f" above {above:g}"
    if isinstance(value, types) and value > MAX_INTEGER and integer:
        bound = f" of at most {MAX_INTEGER}"
    noun = "an integer" if integer else "a number"
    raise ParameterError(f"{name} of {type(owner).__name__} must be {noun}{bound}; got {value!r}.")


def canonical_name(name: str) -> str:
    """Return a name in lower case, without hyphens, underscores, periods and blanks."""
    return re.sub(r"[-_.\s]", "", name).casefold()


def parse_call(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name and the parameters of a text such as `name(a=1, b=x)`."""
    if text.isalpha():
        return text, {}
    match = CALL.fullmatch(text)
    if match is None:
        raise ParameterError(
            f"cannot read {text!r}; it must look like name or name(parameter=value)."
        )
    arguments: dict[str, Any] = {}
    for item in split_arguments(match[2] or ""):
        if item.strip():
            name, equals, value = (token.strip() for token in item.partition("="))
            if not equals:
                raise ParameterError(
                    f"{text!r}: write parameters as name=value; got {item.strip()!r}."
                )
            if name in arguments:
                raise ParameterError(f"{text!r}: {name} is given twice.")
            arguments[name] = parse_literal(value)
    return match[1], arguments


def split_arguments(text: str) -> list[str]:
    """Split a text at its commas, except those inside brackets."""
    arguments, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth <= 0:
            arguments.append("")
        else:
            arguments[-1] += letter
    return arguments


def parse_literal(text: str) -> Any:
    """Return the number, boolean, None, list or tuple that a text spells; else the text."""
    word = text.strip()
    if word.lower() in ("true", "false", "none"):
        return {"true": True, "false": False, "none": None}[word.lower()]
    try:
        return ast.literal_eval(word)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return word


def lookup(name: str, known: Mapping[str, Kind], kind: str) -> Kind:
    """Return the entry of `known` with this name, in any spelling; `kind` is for the error."""
    entries = {canonical_name(key): value for key, value in known.items()}
    if canonical_name(name) in entries:
        return entries[canonical_name(name)]
    matches = get_close_matches(canonical_name(name), entries, 1, 0.5)
    spelling = {canonical_name(key): key for key in known}
    hint = (
        f"Did you mean {spelling[matches[0]]!r}?" if matches else f"There are: {', '.join(known)}."
    )
    raise ParameterError(f"there is no {kind} {name!r}. {hint}")


def imported(text: str, kind: str) -> Any:
    """Return the class or function that `module:Name` names; `kind` is for the error."""
    module, _, path = (side.strip() for side in text.partition(":"))
    if not all(part.isidentifier() for part in (*module.split("."), *path.split("."))):
        raise ParameterError(f"{text!r} names no {kind}; write module:Name.")
    if (known := _DEFINED.get(f"{module}:{path}")) is not None:
        return known
    try:
        value: Any = import_module(module)
    except Exception as error:  # whatever the module's own code raises
        reason = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise ParameterError(
            f"{text}: the module {module!r} cannot be imported ({reason}). Is its folder in "
            "PYTHONPATH?"
        ) from error
    for part in path.split("."):
        value = getattr(value, part, None)
    if not callable(value):
        raise ParameterError(f"{text}: the module {module!r} has no {kind} {path!r}.")
    return value


_DEFINED: dict[str, object] = {}  # what was registered, by `module:Name`: it need not be imported


def qualified_name(value: Any) -> str:
    """Return the name by which a class or a function is found again: `module:Name`, or its bare
    name if it is one of this package."""
    if str(value.__module__).partition(".")[0] == PACKAGE:
        return str(value.__name__)
    return f"{value.__module__}:{value.__qualname__.rpartition('<locals>.')[2]}"


def register(value: Any, name: str | None, kind: str, *tables: dict[str, Any]) -> None:
    """Add a class to tables of classes by name.

    A class may be defined and registered again, as in a notebook; another class of the same name is
    an error.
    """
    listed = value.__name__ if name is None else name
    if not listed.isidentifier() or not canonical_name(listed):
        raise ParameterError(
            f"{listed!r} cannot be the name of a {kind}; use letters, digits and underscores."
        )
    for table in tables:
        for known, entry in table.items():
            same = qualified_name(entry) == qualified_name(value)
            if canonical_name(known) == canonical_name(listed) and not same:
                raise ParameterError(
                    f"there is already a {kind} {known!r}; register yours by another name=."
                )
    for table in tables:
        table[listed] = value
    _DEFINED[qualified_name(value)] = value


@dataclass(frozen=True)
class Registry(Generic[Kind]):
    """Classes by name, and instances from texts.

    Attributes
    ----------
    kind : str
        What an entry is, for error messages: "loss", "solver".
    entries : mapping of str to type
        Classes by their listed names.
    aliases : mapping of str to str
        Other names, and the entries that they stand for.
    """

    kind: str
    entries: Mapping[str, type[Kind]]
    aliases: Mapping[str, str] = field(default_factory=dict)

    def find(self, name: str) -> type[Kind]:
        """Return the class with this name or alias, or that of `module:Name`."""
        if ":" in name:
            found: type[Kind] = imported(name, self.kind)
            if not isinstance(found, type) or not issubclass(found, self._base):
                kind = f"an {self.kind}" if self.kind[0] in "aeiou" else f"a {self.kind}"
                raise ParameterError(
                    f"{name} is not {kind}: it is not a subclass of {self._base.__name__}."
                )
            return found
        aliased = {alias: self.entries[entry] for alias, entry in self.aliases.items()}
        return lookup(name, {**self.entries, **aliased}, self.kind)

    @property
    def _base(self) -> type:
        """The class that all entries have in common."""
        shared = set.intersection(*(set(cls.__mro__) for cls in self.entries.values()))
        first = next(iter(self.entries.values()))
        return next(cls for cls in first.__mro__ if cls in shared)

    def create(
        self, text: str, defaults: Mapping[str, Any] | None = None, **parameters: Any
    ) -> Kind:
        """Return an instance of the class that a text names, with the parameters of the text.

        `defaults` are used where the class has such parameters and the text does not set them.
        `parameters` must exist and override those of the text.
        """
        name, in_text = parse_call(text)
        return self.instance(name, {**in_text, **parameters}, defaults)

    def instance(
        self, name: str, parameters: Mapping[str, Any], defaults: Mapping[str, Any] | None = None
    ) -> Kind:
        """Return an instance of the class with this name; unknown parameters are an error."""
        cls = self.find(name)
        allowed = parameter_names(cls)
        for key in parameters:
            if key not in allowed:
                options = ", ".join(allowed) or "none"
                raise ParameterError(
                    f"{cls.__name__} has no parameter {key!r} (it has: {options})."
                )
        usable = {key: value for key, value in (defaults or {}).items() if key in allowed}
        return cls(**{**usable, **parameters})


def by_class_name(*classes: type[Kind]) -> dict[str, type[Kind]]:
    """Return the classes keyed by their names."""
    return {cls.__name__: cls for cls in classes}


def parameter_names(cls: type) -> list[str]:
    """Return the names of the constructor parameters of a class."""
    if is_dataclass(cls):
        return [f.name for f in fields(cls) if f.init]
    return list(signature(cls).parameters)
