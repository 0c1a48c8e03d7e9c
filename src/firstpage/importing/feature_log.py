"""Logged features of Elasticsearch's and OpenSearch's learning to rank: hits with `_ltrlog`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.data.dataset import Dataset
from firstpage.data.trec import Column
from firstpage.errors import DataError, FirstpageWarning, at
from firstpage.importing.text import Names, json_lines


def read_feature_log(path: str | os.PathLike[str], qrels: Column | None = None) -> Dataset:
    """Documents with their logged features, labelled by judgments.

    The file is a response of `_search` (its query is called 1) or of `_msearch` (1, 2, ..), or has
    JSON lines {"query": .., "response": {..}}.  A feature that is not there is 0, as the plugin has
    it.  With judgments, documents without one are left out; without, all labels are 0.
    """
    file = Path(path)
    query, document = Names("query", file), Names("document id", file)
    names: dict[str, int] = {}
    rows: list[dict[int, float]] = []
    keys: list[tuple[str, str]] = []
    for name, line, hit in _hits(file):
        logged = _logged(hit, at(file, line))
        rows.append({names.setdefault(key, len(names)): v for key, v in logged.items()})
        keys.append((query(name), document(str(hit.get("_id", "")))))
    if not names:
        raise DataError(f"{file}: no hit has logged features (fields._ltrlog).")
    if len(set(keys)) < len(keys):
        twice = next(key for i, key in enumerate(keys) if key in keys[:i])
        raise DataError(f"{file}: document {twice[1]!r} is there twice for query {twice[0]!r}.")
    X = np.zeros((len(rows), len(names)), np.float32)
    for at_row, row in enumerate(rows):
        for place, value in row.items():
            X[at_row, place] = value
    kept, labels = _labelled(keys, qrels, file)
    ids = [keys[i] for i in kept]
    return Dataset.from_arrays(
        X[kept], labels, [q for q, _ in ids], [d for _, d in ids], names, str(file)
    )


def _labelled(
    keys: list[tuple[str, str]], qrels: Column | None, file: Path
) -> tuple[list[int], list[float]]:
    """Rows that have a label, and the labels."""
    if qrels is None:
        return list(range(len(keys))), [0.0] * len(keys)
    known = qrels.to_dict()
    kept = [i for i, (query, doc) in enumerate(keys) if doc in known.get(query, {})]
    if not kept:
        raise DataError(f"{file}: none of its {len(keys)} documents is judged.")
    if len(kept) < len(keys):
        warnings.warn(
            f"{file}: {len(keys) - len(kept)} of {len(keys)} documents are not judged, and left "
            "out.",
            FirstpageWarning,
            stacklevel=4,
        )
    return kept, [known[keys[i][0]][keys[i][1]] for i in kept]


def _hits(file: Path) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """(query, line, hit) of all responses."""
    number = 0
    for line, held in json_lines(file):
        many = held.get("responses") if isinstance(held, dict) else held
        for response in many if isinstance(many, list) else [held]:
            number += 1
            if not isinstance(response, dict):
                raise DataError(f"{at(file, line)}: no response of a search.")
            name = str(response.get("query", number))
            inner = response.get("response", response)
            try:
                hits = inner["hits"]["hits"]
                found = [hit for hit in hits if isinstance(hit, dict)]
            except (KeyError, TypeError):
                raise DataError(f"{at(file, line)}: has no hits.hits; is it a response?") from None
            for hit in found:
                yield name, line, hit


def _logged(hit: dict[str, Any], where: str) -> dict[str, float]:
    """The features of a hit, of all its log entries."""
    found: dict[str, float] = {}
    try:
        for entry in hit.get("fields", {}).get("_ltrlog", []):
            for features in entry.values():
                for feature in features:
                    value = float(feature.get("value", 0.0))
                    if not np.isfinite(value):
                        raise ValueError
                    found[str(feature["name"])] = value
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DataError(f"{where}: _ltrlog is not a list of named values.") from None
    return found
