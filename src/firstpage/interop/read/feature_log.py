"""Feature logs of the learning to rank plugins of Elasticsearch and OpenSearch (`_ltrlog`)."""

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

MAX_FLOAT32 = float(np.finfo(np.float32).max)


def read_feature_log(path: str | os.PathLike[str], qrels: Column | None = None) -> Dataset:
    """Read documents with logged features, labeled by judgments.

    A missing feature is 0, as in the plugin.

    Parameters
    ----------
    path : path
        A response of `_search` (its query is named 1) or of `_msearch` (1, 2, ..), or JSON lines
        {"query": .., "response": {..}}.
    qrels : Qrels, optional
        The judgments.  Documents without a judgment are dropped.  Without judgments all labels
        are 0.

    Returns
    -------
    Dataset
        The documents, with the names of the features.

    Raises
    ------
    DataError
        If the file is no response of a search, has no logged features or no judged document.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import firstpage as fp
    >>> log = [{"log": [{"name": "bm25", "value": 1.5}]}]
    >>> hits = [{"_id": "d1", "fields": {"_ltrlog": log}}]
    >>> response = {"query": "shoes", "response": {"hits": {"hits": hits}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "log.jsonl")
    ...     _ = path.write_text(json.dumps(response))
    ...     data = fp.read_feature_log(path, fp.Qrels.from_dict({"shoes": {"d1": 2}}))
    >>> data.feature_names, data.y.tolist()
    (('bm25',), [2.0])
    """
    file = Path(path)
    query, document = Names("query"), Names("document id")
    names: dict[str, int] = {}
    rows: list[dict[int, float]] = []
    keys: list[tuple[str, str]] = []
    seen: set[tuple[str, str]] = set()
    unlogged = 0
    for name, where, hit in _hits(file):
        logged = _logged(hit, where)
        if logged is None:
            unlogged += 1
            continue
        key = query(name, where), document(_id(hit, where), where)
        if key in seen:
            raise DataError(f"{where}: document {key[1]!r} occurs twice for query {key[0]!r}.")
        seen.add(key)
        keys.append(key)
        rows.append({names.setdefault(key, len(names)): v for key, v in logged.items()})
    if not names:
        raise DataError(f"{file}: no hit has logged features (fields._ltrlog).")
    if unlogged:
        _warn(f"{file}: {unlogged} hits have no logged features, and are dropped.")
    X = np.zeros((len(rows), len(names)), np.float32)
    for number, row in enumerate(rows):
        for column, value in row.items():
            X[number, column] = value
    judged, labels = _labeled(keys, qrels, file)
    ids = [keys[i] for i in judged]
    return Dataset.from_arrays(
        X[judged], labels, [q for q, _ in ids], [d for _, d in ids], names, str(file)
    )


def _warn(text: str) -> None:
    """Warn the caller of `read_feature_log`."""
    warnings.warn(text, FirstpageWarning, stacklevel=4)


def _labeled(
    keys: list[tuple[str, str]], qrels: Column | None, file: Path
) -> tuple[list[int], list[float]]:
    """Return the rows that have a label, and the labels."""
    if qrels is None:
        _warn(f"{file}: there are no judgments (--qrels): all labels are 0.")
        return list(range(len(keys))), [0.0] * len(keys)
    known = qrels.to_dict()
    judged = [i for i, (query, doc) in enumerate(keys) if doc in known.get(query, {})]
    if not judged:
        raise DataError(f"{file}: none of its {len(keys)} documents is judged.")
    if len(judged) < len(keys):
        unjudged = len(keys) - len(judged)
        _warn(f"{file}: {unjudged} of {len(keys)} documents are not judged, and dropped.")
    return judged, [known[keys[i][0]][keys[i][1]] for i in judged]


def _hits(file: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (query, file:line, hit) of all responses."""
    number = 0
    for where, value in json_values(file):
        responses = value.get("responses") if isinstance(value, dict) else value
        for response in responses if isinstance(responses, list) else [value]:
            number += 1
            if not isinstance(response, dict):
                raise DataError(f"{where}: is not a response of a search.")
            try:
                name = name_of(response.get("query", number))
            except TypeError:
                raise DataError(
                    f"{where}: the query of response {number} is not a string."
                ) from None
            for hit in _response_hits(
                response.get("response", response), f"{where}: response {number}"
            ):
                yield name, where, hit


def _response_hits(response: Any, name: str) -> list[dict[str, Any]]:
    """Return the hits of a response; raise an error if the search failed."""
    if isinstance(response, dict) and response.get("error"):
        error = response["error"]
        reason = error.get("reason", error.get("type")) if isinstance(error, dict) else error
        raise DataError(f"{name} is an error ({' '.join(str(reason).split())[:200]}).")
    try:
        hits = response["hits"]["hits"]
    except (KeyError, TypeError):
        raise DataError(f"{name} has no hits.hits; is it a response of a search?") from None
    if not isinstance(hits, list) or not all(isinstance(hit, dict) for hit in hits):
        raise DataError(f"{name}: hits.hits is not a list of documents.")
    shards = response.get("_shards")
    failed = shards.get("failed") if isinstance(shards, dict) else 0
    if failed or response.get("timed_out") is True:
        _warn(f"{name} timed out or failed partially; hits may be missing.")
    return hits


def _id(hit: dict[str, Any], where: str) -> str:
    """Return the id of a hit."""
    try:
        return name_of(hit.get("_id", ""))
    except TypeError:
        raise DataError(f"{where}: the _id {hit['_id']!r} is not a string.") from None


def _logged(hit: dict[str, Any], where: str) -> dict[str, float] | None:
    """Return the features of a hit from all its log entries; None without a log."""
    logged: dict[str, float] = {}
    logs = 0
    try:
        for entry in hit.get("fields", {}).get("_ltrlog", []):
            for features in entry.values():
                logs += 1
                for feature in features:
                    name, value = name_of(feature["name"]), _value(feature.get("value", 0.0))
                    if logged.setdefault(name, value) != value:
                        raise DataError(f"{where}: {name!r} is logged twice with different values.")
    except (AttributeError, KeyError, TypeError):
        raise DataError(f"{where}: _ltrlog is not a list of named values.") from None
    except OverflowError as error:
        raise DataError(f"{where}: the value {str(error)[:40]} is not a float32 number.") from None
    return logged if logs else None


def _value(value: Any) -> float:
    """Return a number in the range of float32; raise TypeError or OverflowError otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(value)
    if not abs(value) <= MAX_FLOAT32:  # False for NaN
        raise OverflowError(value)
    return float(value)
