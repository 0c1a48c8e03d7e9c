"""From the texts of a request to typed values; what is invalid is reported with its place.

Values are never repeated in an error: they may be passwords.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import ValidationError, convert, inspect

T = TypeVar("T")
CheckText = Callable[[str, str], object]  # of a text and its place; raises ValueError
MAX_DETAIL = 500  # characters
NOT_JSON = "body: this is not valid JSON in UTF-8."
PLACE = re.compile(r"^(?P<problem>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?$", re.DOTALL)
FIELD = re.compile(r"^Object (missing required|contains unknown) field `(.*)`$", re.DOTALL)
STEP = re.compile(r"\.([^.\[]+)|\[([^\]]*)\]")


class InvalidRequest(Exception):
    """The path, the query or the body of a request is not what its route declares."""


def decode_json(content: bytes, kind: type[T], check_text: CheckText | None = None) -> T:
    """Return a body of JSON; refuse repeated keys, of which only the last value would count."""
    try:
        text = content.decode()
        value = json.loads(text, object_pairs_hook=_unique)
        if check_text is not None and "\\u" in text:  # only escapes can write what is refused
            _check_texts(value, check_text, "body")
    except (ValueError, RecursionError):
        raise InvalidRequest(NOT_JSON) from None
    return converted(value, kind, "body")


def decode_texts(
    texts: Mapping[str, Any], kind: type[T], place: str, check_text: CheckText | None = None
) -> T:
    """Return the parameters of a path, a query or a form; numbers are written as texts."""
    if check_text is not None:
        _check_texts(dict(texts), check_text, place)
    return converted(texts, kind, place, strict=False)


def converted(value: Any, kind: type[T], place: str, strict: bool = True) -> T:
    """Return a value as its declared type."""
    try:
        return convert(value, kind, strict=strict)
    except ValidationError as error:
        raise InvalidRequest(_problem(str(error), kind, place)[:MAX_DETAIL]) from None


def _problem(message: str, kind: Any, place: str) -> str:
    """Return what is wrong, and where, of a message of msgspec."""
    match = PLACE.match(message)
    assert match is not None
    problem, path = match["problem"], match["path"] or ""
    place = f"a key of {place}{path}" if match["key"] else f"{place}{path}"
    field = FIELD.match(problem)
    if field is not None and field[1] == "missing required":
        return f"{place}.{field[2]}: is required."
    if field is not None:
        names = [field.encode_name for kind in _at(kind, path) for field in _fields(kind)]
        return f"{place}.{field[2][:100]}: there is no such field; there are {', '.join(names)}."
    if problem.startswith("Invalid"):  # the message repeats the value
        allowed = [str(value) for kind in _at(kind, path) for value in getattr(kind, "values", ())]
        problem = f"expected one of {', '.join(allowed)}"
    return f"{place}: {problem[:1].lower()}{problem[1:]}."


def _at(kind: Any, path: str) -> list[inspect.Type]:
    """Return the alternatives of a type at a path within it."""
    kinds = list(_alternatives(inspect.type_info(kind)))
    for name, _ in STEP.findall(path):
        kinds = [inner for outer in kinds for inner in _inside(outer, name)]
    return kinds


def _fields(kind: inspect.Type) -> tuple[inspect.Field, ...]:
    fields: tuple[inspect.Field, ...] = getattr(kind, "fields", ())
    return fields


def _inside(kind: inspect.Type, name: str) -> Iterator[inspect.Type]:
    """Yield the types of a field, or of all items."""
    fields = {field.encode_name: field.type for field in _fields(kind)}
    inner = (
        fields.get(name) or getattr(kind, "item_type", None) or getattr(kind, "value_type", None)
    )
    if inner is not None:
        yield from _alternatives(inner)


def _alternatives(kind: inspect.Type) -> Iterator[inspect.Type]:
    if isinstance(kind, inspect.Metadata):
        yield from _alternatives(kind.type)
    elif isinstance(kind, inspect.UnionType):
        for inner in kind.types:
            yield from _alternatives(inner)
    else:
        yield kind


def _check_texts(value: Any, check: CheckText, place: str) -> None:
    """Check all texts of a value, keys included."""
    if isinstance(value, str):
        try:
            check(value, place)
        except ValueError as error:
            raise InvalidRequest(f"{place[:MAX_DETAIL]}: {error}.") from None
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_texts(key, check, place)
            _check_texts(item, check, f"{place}.{key}")
    elif isinstance(value, list):
        for item in value:
            _check_texts(item, check, place)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for number, key in enumerate(keys) if key in keys[:number])
        raise InvalidRequest(f"body: the key {repeated[:100]!r} occurs twice in one JSON object.")
    return record
