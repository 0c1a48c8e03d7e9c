"""Logged features of Elasticsearch's and OpenSearch's learning to rank: hits with `_ltrlog`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.formats.trec import Column
from firstpage.errors import DataError, FirstpageWarning
from firstpage.interop.read.rows import Names, json_values, name_of

MOST = float(np.finfo(np.float32).max)


def read_feature_log(path: str | os.PathLike[str], qrels: Column | None = None) -> Dataset:
    """Documents with their logged features, labeled by judgments.

    The file is a response of `_search` (its query is called 1) or of `_msearch` (1, 2, ..), or has
    JSON lines {"query": .., "response": {..}}.  A feature that is not there is 0, as the plugin has
    it.  With judgments, documents without one are left out; without, all labels are 0.
    """
    file = Path(path)
    query, document = Names("query"), Names("document id")
    names: dict[str, int] = {}
    rows: list[dict[int, float]] = []
    keys: list[tuple[str, str]] = []
    seen: set[tuple[str, str]] = set()
    bare = 0
    for name, where, hit in _hits(file):
        logged = _logged(hit, where)
        if logged is None:
            bare += 1
            continue
        key = query(name, where), document(_id(hit, where), where)
        if key in seen:
            raise DataError(f"{where}: document {key[1]!r} is there twice for query {key[0]!r}.")
        seen.add(key)
        keys.append(key)
        rows.append({names.setdefault(key, len(names)): v for key, v in logged.items()})
    if not names:
        raise DataError(f"{file}: no hit has logged features (fields._ltrlog).")
    if bare:
        _note(f"{file}: {bare} hits have no logged features, and are left out.")
    X = np.zeros((len(rows), len(names)), np.float32)
    for at_row, row in enumerate(rows):
        for place, value in row.items():
            X[at_row, place] = value
    kept, labels = _labeled(keys, qrels, file)
    ids = [keys[i] for i in kept]
    return Dataset.from_arrays(
        X[kept], labels, [q for q, _ in ids], [d for _, d in ids], names, str(file)
    )


def _note(text: str) -> None:
    warnings.warn(text, FirstpageWarning, stacklevel=4)


def _labeled(
    keys: list[tuple[str, str]], qrels: Column | None, file: Path
) -> tuple[list[int], list[float]]:
    """Rows that have a label, and the labels."""
    if qrels is None:
        _note(f"{file}: there are no judgments (--qrels): all labels are 0.")
        return list(range(len(keys))), [0.0] * len(keys)
    known = qrels.to_dict()
    kept = [i for i, (query, doc) in enumerate(keys) if doc in known.get(query, {})]
    if not kept:
        raise DataError(f"{file}: none of its {len(keys)} documents is judged.")
    if len(kept) < len(keys):
        left = len(keys) - len(kept)
        _note(f"{file}: {left} of {len(keys)} documents are not judged, and left out.")
    return kept, [known[keys[i][0]][keys[i][1]] for i in kept]


def _hits(file: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(query, file:line, hit) of all responses."""
    number = 0
    for where, held in json_values(file):
        many = held.get("responses") if isinstance(held, dict) else held
        for response in many if isinstance(many, list) else [held]:
            number += 1
            if not isinstance(response, dict):
                raise DataError(f"{where}: no response of a search.")
            try:
                name = name_of(response.get("query", number))
            except TypeError:
                raise DataError(f"{where}: the query of response {number} is no text.") from None
            for hit in _found(response.get("response", response), f"{where}: response {number}"):
                yield name, where, hit


def _found(response: Any, which: str) -> list[dict[str, Any]]:
    """The hits of one response; a search that failed is no empty one."""
    if isinstance(response, dict) and response.get("error"):
        error = response["error"]
        reason = error.get("reason", error.get("type")) if isinstance(error, dict) else error
        raise DataError(f"{which} is an error ({' '.join(str(reason).split())[:200]}).")
    try:
        hits = response["hits"]["hits"]
    except (KeyError, TypeError):
        raise DataError(f"{which} has no hits.hits; is it one of a search?") from None
    if not isinstance(hits, list) or not all(isinstance(hit, dict) for hit in hits):
        raise DataError(f"{which}: hits.hits is no list of documents.")
    shards = response.get("_shards")
    failed = shards.get("failed") if isinstance(shards, dict) else 0
    if failed or response.get("timed_out") is True:
        _note(f"{which} timed out or failed in part; hits may be missing.")
    return hits


def _id(hit: dict[str, Any], where: str) -> str:
    try:
        return name_of(hit.get("_id", ""))
    except TypeError:
        raise DataError(f"{where}: the _id {hit['_id']!r} is no text.") from None


def _logged(hit: dict[str, Any], where: str) -> dict[str, float] | None:
    """The features of a hit, of all its log entries; None where there is no log."""
    found: dict[str, float] = {}
    logs = 0
    try:
        for entry in hit.get("fields", {}).get("_ltrlog", []):
            for features in entry.values():
                logs += 1
                for feature in features:
                    name, value = name_of(feature["name"]), _value(feature.get("value", 0.0))
                    if found.setdefault(name, value) != value:
                        raise DataError(f"{where}: {name!r} is logged twice, with other values.")
    except (AttributeError, KeyError, TypeError):
        raise DataError(f"{where}: _ltrlog is not a list of named values.") from None
    except OverflowError as error:
        raise DataError(f"{where}: the value {str(error)[:40]} is no float32 number.") from None
    return found if logs else None


def _value(given: Any) -> float:
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(given)
    if not abs(given) <= MOST:  # which also tells NaN
        raise OverflowError(given)
    return float(given)
