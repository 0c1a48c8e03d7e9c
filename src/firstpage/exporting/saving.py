"""Files of an export in their places, and what must not be written over."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from firstpage.data.files import write_bytes
from firstpage.errors import DataError

FILL = "FILL_IN"
FUNCTION = re.compile(r"# feature \d+: (\".*\").*\n\s*function \w+\(\) \{\n\s*expression(.*)\n")


def places_of(given: Path, model: str, names: Iterable[str], fixed: bool) -> dict[str, Path]:
    """Into a folder; or, where the path has a suffix, the model there and the rest beside it."""
    try:
        if given.is_dir() or not given.suffix:
            given.mkdir(parents=True, exist_ok=True)
            return {name: given / name for name in names}
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise DataError(f"{given}: cannot write there ({said}).") from None
    if fixed and given.name != model:
        raise DataError(
            f"{given}: the files name each other, and this one must be called {model}; name the "
            "model as the file, or write into a folder."
        )
    kept = [name for name in names if name not in ("README.md", model)]
    beside = {n: given.with_name(n if fixed else f"{given.stem}.{n}") for n in kept}
    return {model: given, **beside}


def write_files(files: dict[str, bytes], places: dict[str, Path], sources: list[Path]) -> None:
    """All, each in one step; none where one of them would take something away."""
    for name, place in places.items():
        if any(_same(place, source) for source in sources):
            raise DataError(f"{place}: is the model that is exported; write elsewhere (-o FOLDER).")
        lost = _lost(place, files[name]) if name.endswith((".json", ".profile")) else None
        if lost is not None:
            raise DataError(
                f"{place}: the feature {lost!r} is filled in there, and would be lost; give its "
                "definition with --features, or write elsewhere."
            )
    for name, place in places.items():
        with write_bytes(place) as out:
            out.write(files[name])


def _same(place: Path, other: Path) -> bool:
    try:
        return os.path.samefile(place, other)
    except (OSError, ValueError):
        return False


def _lost(place: Path, new: bytes) -> str | None:
    """A feature that is defined in the file of that place, and would be a template again."""
    try:
        old = place.read_bytes() if place.is_file() else b""
    except OSError:
        return None
    had, has = _defined(old), _defined(new)
    return next((name for name, filled in had.items() if filled and not has.get(name, True)), None)


def _defined(text: bytes) -> dict[str, bool]:
    """Whether each feature of a feature store, feature set or profile is filled in."""
    plain = text.decode("utf-8", "replace")
    if plain.startswith("rank-profile"):
        return {name: said.strip() != ": 0" for name, said in FUNCTION.findall(plain)}
    try:
        held: Any = json.loads(plain)
    except (ValueError, RecursionError):
        return {}
    if isinstance(held, dict):
        held = held.get("featureset")
        held = held.get("features") if isinstance(held, dict) else None
    features = held if isinstance(held, list) else []
    return {
        str(one["name"]): FILL not in json.dumps(one)
        for one in features
        if isinstance(one, dict) and "name" in one
    }
