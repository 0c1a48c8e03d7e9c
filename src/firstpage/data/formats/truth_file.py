"""Truth files of the labeling application: JSON lines with the judged order of each query."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np

from firstpage.core import DataError
from firstpage.data.formats.row_reader import read_file_rows, read_json_rows
from firstpage.data.groups import offsets_from_lengths
from firstpage.data.ids import Ids
from firstpage.data.runs import Qrels


def read_truth(path: str | os.PathLike[str], confidences: bool = True) -> Qrels:
    """Read the truth that `firstpage label export --content truth --format jsonl` writes.

    Documents that were judged equal get the label of the best of them, so that losses share their
    positions.  Documents without an answer are left out: they are unjudged.

    Parameters
    ----------
    path : path
        The file (`truth.jsonl`), plain or compressed.
    confidences : bool, default True
        Whether to use the confidences as `query_weights`, with which training weights the queries:
        the weight of a query is the mean probability that a document is at its rank, and 1 where
        it is unknown.

    Returns
    -------
    Qrels
        The labels: k for the best document of an ordered top k, one less for each next, and 0 for
        the others; or the grades.

    Raises
    ------
    DataError
        If the file cannot be read or a line is malformed; the message names file and line.

    Examples
    --------
    >>> import json, os, tempfile
    >>> import firstpage as fp
    >>> line = {"query": "shoes", "labels": {"a": 2, "b": 1, "c": 0}, "confidence": [0.9, 0.7]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "truth.jsonl")
    ...     with open(path, "w") as file:
    ...         json.dump(line, file)
    ...     truth = fp.read_truth(path)
    >>> truth.to_dict(), truth.query_weights.tolist()
    ({'shoes': {'a': 2.0, 'b': 1.0, 'c': 0.0}}, [0.8])
    """
    file = Path(path)
    table: dict[str, dict[str, float]] = {}
    weights: list[float | None] = []
    for where, row in read_file_rows(file, read_json_rows):
        query = _name(row.get("query"))
        if query is None or not isinstance(row.get("labels"), dict):
            missing = "query" if query is None else "labels"
            raise DataError(
                f"{where}: has no {missing}; truth files are written by `firstpage label export "
                "--content truth --format jsonl`."
            )
        if query in table:
            raise DataError(f"{where}: the query {query!r} occurs twice.")
        table[query] = _labels(row, where)
        weights.append(_confidence(row.get("confidence"), where))
    if not table:
        raise DataError(f"{file}: contains no queries.")
    query_weights = None
    if confidences and any(weight is not None for weight in weights):
        query_weights = np.array([1.0 if weight is None else weight for weight in weights])
    docids = Ids.from_values(doc for labels in table.values() for doc in labels)
    values = np.array([v for labels in table.values() for v in labels.values()], np.float64)
    offsets = offsets_from_lengths(map(len, table.values()))
    return Qrels(Ids.from_values(table), offsets, docids, values, "", str(file), query_weights)


def _name(value: Any) -> str | None:
    """Return a string or an integer as an id, or None."""
    if isinstance(value, bool) or not isinstance(value, (str, int)) or value == "":
        return None
    return str(value)


def _labels(row: Any, where: str) -> dict[str, float]:
    """Return the labels of the judged documents, equal ones for documents judged equal."""
    labels: dict[str, float] = {}
    for document, label in row["labels"].items():
        number = isinstance(label, (int, float)) and not isinstance(label, bool)
        if not number or not math.isfinite(label):
            raise DataError(f"{where}: the label of {document!r} is {label!r}, not a number.")
        labels[document] = float(label)
    for group in _lists(row.get("tied"), "tied", where):
        best = max((labels.get(document, 0.0) for document in group), default=0.0)
        labels |= {document: best for document in group if document in labels}
    for document in _lists([row.get("unjudged") or []], "unjudged", where)[0]:
        labels.pop(document, None)
    if not labels:
        raise DataError(f"{where}: no document has a label.")
    return labels


def _lists(value: Any, key: str, where: str) -> list[list[str]]:
    """Return lists of document ids; raise an error if they are none."""
    groups = value or []
    if not isinstance(groups, list) or not all(
        isinstance(group, list) and all(isinstance(document, str) for document in group)
        for group in groups
    ):
        raise DataError(f"{where}: {key} is not a list of document ids.")
    return groups


def _confidence(value: Any, where: str) -> float | None:
    """Return the mean confidence of the ranks, or None if it is unknown."""
    if value is None or value == []:
        return None
    if not isinstance(value, list) or not all(
        isinstance(p, (int, float)) and not isinstance(p, bool) and 0 <= p <= 1 for p in value
    ):
        raise DataError(f"{where}: confidence is not a list of probabilities.")
    return float(np.mean(value))
