"""Candidates and features from a running search engine: `query_engine`.

Elasticsearch and OpenSearch are asked by `_search`, Solr by its JSON requests to `/select`.  The
responses are stored as a feature log, from which an interrupted run goes on.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from firstpage.core import DataError, Progress, warn
from firstpage.core.http import (
    DamagedReply,
    HttpReply,
    KeyMask,
    RateLimiter,
    Retries,
    check_key,
    json_payload,
    post_json,
    reply_excerpt,
)
from firstpage.data import Run
from firstpage.data.formats import NO_LIMITS, read_json_rows
from firstpage.data.io import suffix_of, write_bytes
from firstpage.interop.read.feature_log import read_logged_run

AUTHORIZATION = "FIRSTPAGE_ENGINE_AUTHORIZATION"  # of the environment: "ApiKey ..", "Basic .."
PLACEHOLDERS = ("{{query}}", "{{quoted}}")
RETRIES = Retries(timeout=60.0, max_attempts=4, backoff=1.0, max_bytes=256 << 20)
SOLR_HANDLERS = ("/select", "/query", "/search")
DIGEST_LENGTH = 16


@dataclass(frozen=True)
class EngineRequest:
    """The request that a search engine gets for a query.

    Parameters
    ----------
    url : str
        The address of an index of Elasticsearch or OpenSearch, or of a collection of Solr.
    template : dict, optional
        The body of a request, in which `{{query}}` stands for the text of a query, `{{quoted}}` for
        the same with backslashes before quotation marks and backslashes, and `{{id}}` for its id.
    depth : int, default 100
        The number of documents, where the template does not say it.
    """

    url: str
    template: dict[str, Any] = field(default_factory=dict)
    depth: int = 100

    @property
    def is_solr(self) -> bool:
        """Whether the address is that of Solr."""
        path = urlsplit(self.url).path
        return "/solr/" in f"{path}/" or path.endswith(SOLR_HANDLERS)

    @property
    def endpoint(self) -> str:
        """The address that requests are sent to."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise DataError(f"{self.url}: is not the address of an engine, such as http://..")
        if parts.username or parts.password:
            raise DataError(
                f"{parts.hostname}: the address contains a password; set {AUTHORIZATION} to "
                "'Basic ..' instead."
            )
        path = parts.path.rstrip("/")
        if self.is_solr:
            path = path if path.endswith(SOLR_HANDLERS) else f"{path}/select"
        elif not path.endswith("/_search"):
            path = f"{path}/_search"
        return urlunsplit(parts._replace(path=path, fragment=""))

    def body(self, query: str, text: str) -> dict[str, Any]:
        """Return the request of a query."""
        template = self.template or self._default()
        size = "limit" if self.is_solr else "size"
        if "rows" not in template.get("params", {}):
            template = {size: self.depth, **template}
        quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")
        values = {"{{query}}": text, "{{quoted}}": quoted, "{{id}}": query}
        filled: dict[str, Any] = _filled(template, values)
        return filled

    def _default(self) -> dict[str, Any]:
        """Return a request that searches the fields that the engine searches by default."""
        if self.is_solr:
            return {"query": "{{query}}", "fields": ["id", "score"], "params": {"wt": "json"}}
        return {"query": {"multi_match": {"query": "{{query}}"}}, "_source": False}


def _filled(value: Any, values: dict[str, str]) -> Any:
    """Return a JSON value with the placeholders in its texts replaced, in one pass."""
    if isinstance(value, dict):
        return {key: _filled(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, values) for item in value]
    if not isinstance(value, str):
        return value
    parts = [value]
    for name, text in values.items():  # a text that contains a placeholder is not replaced again
        split: list[str] = []
        for number, part in enumerate(parts):
            if number % 2:
                split.append(part)
                continue
            pieces = part.split(name)
            split += [piece for each in pieces for piece in (each, text)][:-1]
        parts = split
    return "".join(parts)


def query_engine(
    url: str,
    queries: Iterable[tuple[str, str]],
    log: str | os.PathLike[str],
    *,
    request: dict[str, Any] | None = None,
    depth: int = 100,
    authorization: str | None = None,
    progress: Progress | None = None,
    name: str = "engine",
) -> Run:
    """Retrieve the candidates of queries from a running search engine.

    The responses are stored in a feature log.  If it exists, the queries are left out whose same
    requests it has, so that an interrupted run goes on.  Requests are repeated if the engine is
    busy.  `read_feature_log` returns the features of the log, where the request asks for them.

    Parameters
    ----------
    url : str
        The address of an index of Elasticsearch or OpenSearch (http://localhost:9200/shop), also
        with `/_search` and parameters, or of a collection of Solr (http://localhost:8983/solr/shop).
    queries : iterable of (str, str)
        The id and the text of each query.
    log : path
        The feature log to write: JSON lines with a response each.
    request : dict, optional
        The body of a request, in which `{{query}}` stands for the text of the query, `{{quoted}}`
        for the same with a backslash before quotation marks and backslashes, and `{{id}}` for its
        id.  By default the engine's default fields are searched.
    depth : int, default 100
        The number of documents per query, where the request does not contain it.
    authorization : str, optional
        The header of this name, such as "ApiKey .." or "Basic .."; by default the environment
        variable FIRSTPAGE_ENGINE_AUTHORIZATION, if it is set.
    progress : callable, optional
        Called with the number of queries that are done, and that of all.
    name : str, default "engine"
        The name of the run.

    Returns
    -------
    Run
        The documents of each query with the engine's scores, as `read_logged_run` returns it.

    Raises
    ------
    DataError
        If the address, the request or the log is invalid, or the engine does not answer with
        documents; what was received is in the log.

    Examples
    --------
    >>> import firstpage as fp
    >>> queries = [("q1", "red shoes"), ("q2", "rain coat")]
    >>> request = {"query": {"match": {"title": "{{query}}"}}, "_source": False}
    >>> url = "http://localhost:9200/shop"
    >>> fp.interop.query_engine(url, queries, "log.jsonl", request=request)  # doctest: +SKIP
    Run(engine: 2 queries, 200 documents)
    """
    engine, path = EngineRequest(url, request or {}, depth), Path(log)
    if request is not None and not any(text in json.dumps(request) for text in PLACEHOLDERS):
        raise DataError(f"the request has no {PLACEHOLDERS[0]}, which stands for the query.")
    endpoint = engine.endpoint
    header = os.environ.get(AUTHORIZATION, "") if authorization is None else authorization
    scheme, _, key = header.strip().partition(" ")
    if header.strip() and not key:
        raise DataError("the authorization must be a scheme and a key, such as 'ApiKey ..'.")
    check_key(key)
    bodies = {query: engine.body(query, text) for query, text in queries if text.strip()}
    digests = {query: _digest(endpoint, body) for query, body in bodies.items()}
    if suffix_of(path)[1]:
        raise DataError(f"{path}: the log cannot be compressed, since responses are appended.")
    stored = _stored(path, digests)
    with write_bytes(path) as out:
        out.writelines(stored.values())
    limiter = RateLimiter()
    with path.open("ab") as out:
        for query, body in bodies.items():
            if query not in stored:
                try:
                    response = post_json(
                        endpoint, "", key, body, _read_response, RETRIES, limiter, scheme
                    )
                except DataError as error:
                    raise DataError(
                        f"{error} {len(stored)} of {len(bodies)} responses are in {path}; the same "
                        "request goes on from there."
                    ) from None
                stored[query] = _line(query, digests[query], response)
                out.write(stored[query])
                out.flush()
            if progress is not None:
                progress(len(stored), len(bodies))
    run = read_logged_run(path, name)
    if len(run) < len(bodies):
        warn(f"{endpoint}: {len(bodies) - len(run)} of {len(bodies)} queries have no documents.")
    return run


def _read_response(reply: HttpReply, mask: KeyMask, _: float, __: int) -> dict[str, Any]:
    """Return the response to a search."""
    payload = json_payload(reply, mask)
    if not isinstance(payload.get("hits", payload.get("response")), dict):
        raise DamagedReply(f"something else than documents: {reply_excerpt(reply, mask)}")
    return payload


def _digest(endpoint: str, body: dict[str, Any]) -> str:
    """Return what identifies a request."""
    text = json.dumps([endpoint, body], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH]


def _line(query: str, digest: str, response: dict[str, Any]) -> bytes:
    """Return a line of the log."""
    return json.dumps({"query": query, "request": digest, "response": response}).encode() + b"\n"


def _stored(path: Path, digests: dict[str, str]) -> dict[str, bytes]:
    """Return the lines of a log that are responses to these requests; without an unfinished one."""
    if not path.exists():
        return {}
    stored: dict[str, bytes] = {}
    data = path.read_bytes()
    complete = data[: data.rfind(b"\n") + 1]
    for where, row in read_json_rows(str(path), io.BytesIO(complete), NO_LIMITS):
        if not isinstance(row, dict) or not {"query", "request", "response"} <= set(row):
            raise DataError(f"{where}: is not a line of such a log; give another file.")
        query = str(row["query"])
        if digests.get(query) == row["request"]:
            stored[query] = _line(query, str(row["request"]), row["response"])
    return stored
