"""Feature logs of search engines: responses with the features and the score of each document.

Elasticsearch and OpenSearch log features in `_ltrlog`, Solr in `[features]`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from firstpage.core import Advice, DataError, warn
from firstpage.data import Dataset, Qrels, Run
from firstpage.interop.read.rows import Json, identifier, json_values, name_of

MAX_FLOAT32 = float(np.finfo(np.float32).max)


def read_feature_log(
    path: str | os.PathLike[str],
    qrels: Qrels | None = None,
    unjudged: Literal["zero", "drop"] = "zero",
) -> Dataset:
    """Read documents with logged features, labeled by judgments.

    A missing feature is 0, as in the plugins.

    Parameters
    ----------
    path : path
        Responses of Elasticsearch or OpenSearch with `_ltrlog`, or of Solr with `[features]`: a
        response of `_search` (its query is named 1), of `_msearch` (1, 2, ..) or of Solr (its
        query is the parameter q, if the response has it), or JSON lines of these or of
        {"query": .., "response": {..}}.
    qrels : Qrels, optional
        The judgments, joined as in `Dataset.with_qrels`.  Without judgments all labels are 0.
    unjudged : {"zero", "drop"}, default "zero"
        What happens to documents without a judgment: label 0, or they are left out.

    Returns
    -------
    Dataset
        The documents, with the names of the features.

    Raises
    ------
    DataError
        If the file is not a response of a search, has no logged features or no judged document.

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
    ...     data = fp.interop.read_feature_log(path, fp.Qrels.from_dict({"shoes": {"d1": 2}}))
    >>> data.feature_names, data.y.tolist()
    (('bm25',), [2.0])
    """
    data = logged_documents(Path(path))
    if qrels is None:
        warn_unlabeled(data.source)
        return data
    return data.with_qrels(qrels, unjudged)


def warn_unlabeled(source: str | os.PathLike[str]) -> None:
    """Warn the caller of the reader that there are no judgments."""
    message = f"{os.fspath(source)}: there are no judgments: all labels are 0."
    advice = Advice("Give them with {}.", "qrels")
    warn(message, advice)


def logged_documents(file: Path) -> Dataset:
    """Return the documents of a feature log with label 0."""
    names: dict[str, int] = {}
    rows: list[dict[int, float]] = []
    keys: list[tuple[str, str]] = []
    unlogged = 0
    for hit in _hits(file):
        logged = hit.features()
        if logged is None:
            unlogged += 1
            continue
        keys.append((hit.query, hit.document))
        rows.append({names.setdefault(key, len(names)): v for key, v in logged.items()})
    if not names:
        raise DataError(f"{file}: no hit has logged features (fields._ltrlog, or [features]).")
    if unlogged:
        warn(f"{file}: {unlogged} hits have no logged features, and are dropped.")
    X = np.zeros((len(rows), len(names)), np.float32)
    for number, row in enumerate(rows):
        for column, value in row.items():
            X[number, column] = value
    queries, documents = [q for q, _ in keys], [d for _, d in keys]
    return Dataset.from_arrays(X, np.zeros(len(rows)), queries, documents, names, str(file))


def read_logged_run(path: str | os.PathLike[str], name: str = "engine") -> Run:
    """Read the ranking of the search engine itself from a feature log.

    Parameters
    ----------
    path : path
        A feature log, as `read_feature_log` takes it.  Hits without logged features count, too.
    name : str, default "engine"
        The name of the run.

    Returns
    -------
    Run
        The engine's scores.  In queries where they do not give the order of the hits (equal or
        missing scores, or hits sorted by a field) the scores are n, n - 1, .., 1 by rank, with a
        warning.

    Raises
    ------
    DataError
        If the file is not a response of a search, or has no hits.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> import firstpage as fp
    >>> docs = [{"id": "d1", "score": 2.5, "[features]": "bm25=1.5"}, {"id": "d2", "score": 1.0}]
    >>> response = {"query": "shoes", "response": {"response": {"docs": docs}}}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "log.jsonl")
    ...     _ = path.write_text(json.dumps(response))
    ...     fp.interop.read_logged_run(path).to_dict()
    {'shoes': {'d1': 2.5, 'd2': 1.0}}
    """
    file = Path(path)
    hits: dict[str, list[_Hit]] = {}
    for hit in _hits(file):
        hits.setdefault(hit.query, []).append(hit)
    if not hits:
        raise DataError(f"{file}: no response has any hits.")
    table: dict[str, dict[str, float]] = {}
    ranked = 0
    for query, documents in hits.items():
        documents.sort(key=lambda hit: hit.rank)
        scores = [hit.score for hit in documents if hit.score is not None]
        descending = all(first > second for first, second in itertools.pairwise(scores))
        if len(scores) < len(documents) or not descending:
            ranked += 1
            scores = [float(n) for n in range(len(documents), 0, -1)]
        table[query] = dict(zip((hit.document for hit in documents), scores, strict=True))
    if ranked:
        warn(
            f"{file}: in {ranked} of {len(hits)} queries the scores do not give the order of the "
            "hits (they are equal, missing or not descending); the run has scores by rank there."
        )
    return Run.from_dict(table, name)


@dataclass(frozen=True)
class _Hit:
    """A document of a response; `features` returns its logged features, or None without a log."""

    query: str
    document: str
    rank: int  # from 0
    score: float | None
    features: Callable[[], dict[str, float] | None]


def _hits(file: Path) -> Iterator[_Hit]:
    """Yield the hits of all responses; refuse a document that occurs twice in a query."""
    number = 0
    seen: set[tuple[str, str]] = set()
    for where, value in json_values(file):
        responses = value.get("responses") if isinstance(value, dict) else value
        for response in responses if isinstance(responses, list) else [value]:
            number += 1
            if not isinstance(response, dict):
                raise DataError(f"{where}: is not a response of a search.")
            for hit in _response_hits(response, number, where):
                if (hit.query, hit.document) in seen:
                    raise DataError(
                        f"{where}: document {hit.document!r} occurs twice for query {hit.query!r}."
                    )
                seen.add((hit.query, hit.document))
                yield hit


def _response_hits(row: dict[str, Any], number: int, where: str) -> Iterator[_Hit]:
    """Yield the hits of a response, or of {"query": .., "response": ..}."""
    name = f"{where}: response {number}"
    nested = row.get("response")
    is_solr = isinstance(nested, dict) and "docs" in nested
    response = row if is_solr or nested is None else nested
    if isinstance(response, dict) and response.get("error"):
        error = response["error"]
        reason = str(error)
        if isinstance(error, dict):
            reason = str(error.get("reason", error.get("msg", error.get("type"))))
        raise DataError(f"{name} is an error ({' '.join(reason.split())[:200]}).")
    if isinstance(response, dict) and isinstance(response.get("response"), dict):
        query = row.get("query", _solr_query(response))
        hits = _solr_documents(response, name)
        yield from _parsed(hits, number if query is None else query, where, number, SOLR)
    else:
        hits = list(enumerate(_elastic_hits(response, name)))
        yield from _parsed(hits, row.get("query", number), where, number, ELASTIC)


@dataclass(frozen=True)
class _Keys:
    """Where the documents of an engine have their id and score, and how features are parsed."""

    id: str
    score: str
    features: Callable[[dict[str, Any], str], dict[str, float] | None]


def _parsed(
    hits: list[tuple[int, dict[str, Any]]], query: Json, where: str, number: int, keys: _Keys
) -> Iterator[_Hit]:
    """Yield the hits of a query with their ranks."""
    try:
        name = identifier(name_of(query), "query", where)
    except TypeError:
        raise DataError(f"{where}: the query of response {number} is not a string.") from None
    for rank, hit in hits:
        try:
            document = identifier(name_of(hit.get(keys.id, "")), "document id", where)
        except TypeError:
            raise DataError(f"{where}: the {keys.id} {hit[keys.id]!r} is not a string.") from None
        score = hit.get(keys.score)
        if score is not None and (
            isinstance(score, bool) or not isinstance(score, (int, float)) or not np.isfinite(score)
        ):
            raise DataError(f"{where}: the score {score!r} of {document!r} is not a number.")
        yield _Hit(name, document, rank, score, partial(keys.features, hit, where))


# --- Solr


def _solr_query(response: dict[str, Any]) -> Json:
    """Return the parameter q that a response of Solr repeats, or None."""
    header = response.get("responseHeader")
    params = header.get("params") if isinstance(header, dict) else None
    return params.get("q") if isinstance(params, dict) else None


def _solr_documents(response: dict[str, Any], name: str) -> list[tuple[int, dict[str, Any]]]:
    """Return the documents of a response of Solr with their ranks, from 0."""
    documents, start = (response["response"].get(key) for key in ("docs", "start"))
    if not isinstance(documents, list) or not all(isinstance(d, dict) for d in documents):
        raise DataError(f"{name}: response.docs is not a list of documents.")
    header = response.get("responseHeader")
    if isinstance(header, dict) and header.get("partialResults") is True:
        warn(f"{name} timed out or failed partially; hits may be missing.")
    first = start if isinstance(start, int) and not isinstance(start, bool) else 0
    return list(enumerate(documents, first))


def _solr_features(document: dict[str, Any], where: str) -> dict[str, float] | None:
    """Return the features of a document of Solr: `name=value,..`, where absent ones are 0."""
    text = document.get("[features]")
    if text is None:
        return None
    if not isinstance(text, str):
        raise DataError(f"{where}: [features] is not a text such as 'bm25=1.5,age=3'.")
    features: dict[str, float] = {}
    for entry in filter(None, text.split(",")):
        name, equals, value = entry.rpartition("=")
        try:
            number = _value(float(value.replace("_", "?")))  # Python ignores underscores
        except (ValueError, OverflowError):
            raise DataError(
                f"{where}: the value {value[:40]!r} of [features] is not a float32 number."
            ) from None
        if not equals or not name.strip():
            raise DataError(f"{where}: [features] has {entry[:40]!r} instead of name=value.")
        if features.setdefault(name.strip(), number) != number:
            raise DataError(f"{where}: {name!r} is logged twice with different values.")
    return features


# --- Elasticsearch and OpenSearch


def _elastic_hits(response: Json, name: str) -> list[dict[str, Any]]:
    """Return the hits of a response of Elasticsearch or OpenSearch."""
    try:
        hits = response["hits"]["hits"]  # type: ignore[index]
    except (KeyError, TypeError):
        raise DataError(
            f"{name} has no hits.hits (Elasticsearch) or response.docs (Solr); is it a response of "
            "a search?"
        ) from None
    if not isinstance(hits, list) or not all(isinstance(hit, dict) for hit in hits):
        raise DataError(f"{name}: hits.hits is not a list of documents.")
    assert isinstance(response, dict)
    shards = response.get("_shards")
    failed = shards.get("failed") if isinstance(shards, dict) else 0
    if failed or response.get("timed_out") is True:
        warn(f"{name} timed out or failed partially; hits may be missing.")
    return hits


def _elastic_features(hit: dict[str, Any], where: str) -> dict[str, float] | None:
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


SOLR = _Keys("id", "score", _solr_features)
ELASTIC = _Keys("_id", "_score", _elastic_features)
