"""Lines of text logs; broken ones are named, or skipped and counted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from firstpage.clicks.formats.collector import LogCollector
from firstpage.core import DataError, location
from firstpage.data.formats import NO_LIMITS, read_lines
from firstpage.data.io import unique_keys


def log_lines(name: str, stream: Any, collector: LogCollector) -> Iterator[tuple[int, str]]:
    """Yield the numbers and lines of a log that are not blank."""

    def decode(_: str, number: int, raw: bytes) -> str:
        try:
            return raw.removesuffix(b"\r").decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            collector.broken(location(name, number), "the line is not UTF-8 text.")
            return ""

    return (pair for pair in read_lines(name, stream, NO_LIMITS, decode) if pair[1].strip())


def json_objects(
    name: str, stream: Any, collector: LogCollector
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the location and the content of the JSON objects of a file.

    A file has one object per line, or is an array of objects, or the response of a search
    (`hits.hits`).  Of documents exported by an engine, what is in `_source` is yielded.
    """
    lines = log_lines(name, stream, collector)
    first = next(lines, None)
    if first is None:
        return
    if first[1].strip() in ("[", "{") or first[1].lstrip().startswith("["):
        text = "\n".join([first[1], *(line for _, line in lines)])
        lines = iter([(first[0], text)])
    else:
        lines = chain([first], lines)
    for number, line in lines:
        where = location(name, number)
        try:
            value = json.loads(line, object_pairs_hook=unique_keys)
            if "\\u" in line:
                json.dumps(value, ensure_ascii=False).encode()  # half of a pair of surrogates fails
        except (ValueError, RecursionError, DataError) as error:
            collector.broken(where, f"the line is not valid JSON ({str(error).rstrip('.')}).")
            continue
        hits = value.get("hits") if isinstance(value, dict) else None
        listed = hits.get("hits") if isinstance(hits, dict) else value
        for each in listed if isinstance(listed, list) else [listed]:
            if not isinstance(each, dict):
                collector.broken(where, "is not a JSON object.")
                continue
            source = each.get("_source")
            yield where, source if isinstance(source, dict) else each


def reason_of(error: Exception) -> str:
    """Return why a line cannot be read; errors of types are those of values in it."""
    plain = type(error) is ValueError
    return str(error) if plain else "a value of the line is not of the type that is expected."
