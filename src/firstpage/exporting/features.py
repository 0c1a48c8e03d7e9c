"""Names of features, and what an engine is told to compute for them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firstpage.data.files import read_all
from firstpage.errors import DataError

Given = str | os.PathLike[str] | Sequence[Any] | None


@dataclass(frozen=True)
class Features:
    """One different name a column; `known` holds definitions that the user gave, by name."""

    names: tuple[str, ...]
    known: dict[str, dict[str, Any]] = field(default_factory=dict)

    def constant(self) -> str:
        """A name that no feature has, for one that is always 1."""
        name = "constant"
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
        return _of_items(_read(source), count, source)
    return _of_items(given, count, "features")


def _read(source: str) -> Any:
    text = read_all(Path(source)).decode("utf-8", "replace")
    if not source.lower().endswith(".json"):
        return [line.strip() for line in text.splitlines() if line.strip()]
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{source}: no JSON ({error}).") from None


def _of_items(given: Any, count: int, source: str) -> Features:
    """Names, or definitions as Solr's feature stores and Elasticsearch's feature sets have them."""
    if isinstance(given, dict):
        inner = given.get("featureset", given)
        given = inner.get("features") if isinstance(inner, dict) else None
    if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
        raise DataError(f"{source}: must be a list of names, or of features that have a 'name'.")
    names, known = [], {}
    for item in given:
        if isinstance(item, dict):
            if not isinstance(item.get("name"), str):
                raise DataError(f"{source}: a feature has no 'name': {json.dumps(item)[:80]}.")
            known[item["name"]] = item
            names.append(item["name"])
        else:
            names.append(str(item))
    return _checked(tuple(names), known, count, source)


def _checked(
    names: tuple[str, ...], known: dict[str, dict[str, Any]], count: int, source: str
) -> Features:
    if len(names) != count:
        raise DataError(f"{source}: {len(names)} names for the {count} features of the model.")
    if len(set(names)) < count or not all(name.strip() for name in names):
        raise DataError(f"{source}: features need different names, none of them blank.")
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise DataError(f"{source}: the name {name!r} is no valid text.") from None
    return Features(names, known)
