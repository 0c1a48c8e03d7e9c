"""Names of features, and what an engine is told to compute for them."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.files import read_all
from firstpage.errors import DataError, at

CONSTANT = "constant"
Given = str | os.PathLike[str] | Sequence[Any] | None


@dataclass(frozen=True)
class Features:
    """One different name a column; `known` holds definitions that the user gave, by name."""

    names: tuple[str, ...]
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def constant(self) -> str:
        """A name that no feature has, for one that is always 1."""
        name = CONSTANT
        while name in self.names:
            name += "_"
        return name


def features_of(given: Given, own: tuple[str, ...] | None, count: int) -> Features:
    """From a file or a list, else from the model, else feature_1 .. as LETOR files count."""
    if given is None:
        names = own or tuple(f"feature_{i + 1}" for i in range(count))
        return _checked(names, {}, count, "the model")
    if isinstance(given, (str, os.PathLike)):
        source = os.fspath(given)
        found = _of_items(_read(source), count, source)
    else:
        source = "features"
        found = _of_items(given, count, source)
    return found if own is None else _in_order(found, own, source)


def _in_order(found: Features, own: tuple[str, ...], source: str) -> Features:
    """The names of the model in any order mean its columns; a name of it in the place of another
    is a mistake, that would give a weight to the wrong feature."""
    if set(found.names) == set(own):
        return Features(own, found.known)
    places = {name: i for i, name in enumerate(own, 1)}
    for place, name in enumerate(found.names, 1):
        if places.get(name, place) != place:
            raise DataError(
                f"{source}: {name!r} stands at {place}, and is feature {places[name]} of the "
                "model; keep its order, or give all of its names."
            )
    return found


def _read(source: str) -> Any:
    try:
        text = read_all(Path(source)).decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{source}: is no UTF-8 text (byte {error.start}).") from None
    if not source.lower().endswith(".json"):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{at(source, getattr(error, 'lineno', 1))}: no JSON ({error}).") from None


def _of_items(given: Any, count: int, source: str) -> Features:
    """Names, or definitions as Solr's feature stores and Elasticsearch's feature sets have them."""
    if isinstance(given, dict):
        inner = given.get("featureset", given)
        given = inner.get("features") if isinstance(inner, dict) else None
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes, Set, dict)):
        raise DataError(f"{source}: must be a list of names, or of features that have a 'name'.")
    items = list(given)
    if len(items) == count + 1 and _is_constant(items[-1]):
        items.pop()  # which an export added
    names, known = [], {}
    for item in items:
        if isinstance(item, dict):
            if not isinstance(item.get("name"), str):
                raise DataError(f"{source}: a feature has no 'name': {str(item)[:80]}.")
            _writable(item, source)
            known[item["name"]] = item
            names.append(item["name"])
        elif isinstance(item, (str, int, float, np.generic)) and not isinstance(item, bool):
            names.append(str(item))
        else:
            raise DataError(f"{source}: a name must be a text; got {item!r}.")
    return _checked(tuple(names), known, count, source)


def _writable(item: dict[str, Any], source: str) -> None:
    """Refuse what JSON has no form for, such as NaN."""
    try:
        json.dumps(item, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise DataError(
            f"{source}: the feature {item['name']!r} cannot be written as JSON ({error})."
        ) from None


def _is_constant(item: Any) -> bool:
    if not isinstance(item, dict) or not str(item.get("name")).startswith(CONSTANT):
        return False
    return item.get("params") == {"value": 1} or item.get("template") == {
        "match_all": {"boost": 1.0}
    }


def _checked(
    names: tuple[str, ...], known: dict[str, dict[str, Any]], count: int, source: str
) -> Features:
    if len(names) != count:
        raise DataError(f"{source}: {len(names)} names for the {count} features of the model.")
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None or not all(name.strip() for name in names):
        what = "one is blank" if twice is None else f"{twice!r} is there twice"
        raise DataError(f"{source}: features need different names, none of them blank; {what}.")
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"{source}: the name {name!r} is no valid text.") from None
    return Features(names, known)
