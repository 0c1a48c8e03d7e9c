"""The page about the server: the model in service, what it has answered, and example requests."""

from __future__ import annotations

import json
import re
import shlex
import time
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse

from firstpage.core.http import HEADERS, JSON, url_host
from firstpage.serving.drift import LARGE, LEAST_ROWS, MODERATE
from firstpage.serving.metrics import Metrics
from firstpage.serving.pages import render
from firstpage.serving.served_model import ServedModel
from firstpage.serving.watched_model import WatchedModel

MAX_NAMED = 12  # features that the example request names; more are sent as a list
HOST = re.compile(r"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")


def about_page(watched: WatchedModel, metrics: Metrics, request: Request) -> HTMLResponse:
    """Return the current page."""
    model, address = watched.model, _address(request)
    if model is None:
        page = render("about.html", watched, model=None)
        return HTMLResponse(page, 503, {**HEADERS, "retry-after": "1"})
    page = render(
        "about.html",
        watched,
        model=model,
        since=time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(model.since)),
        routes=metrics.routes(),
        search_example=_example_search(model, address),
        rank_example=example_request(model, address),
        rank_example_is_long=len(model.names) > MAX_NAMED,
    )
    return HTMLResponse(page, headers=HEADERS)


def drift_page(watched: WatchedModel) -> HTMLResponse:
    """Return the page about drift."""
    model = watched.model
    total, rows = (0, []) if model is None or model.drift is None else model.drift.rows(model.names)
    ordered = rows[:1] + sorted(rows[1:], key=lambda row: -row.psi)
    shown = {"total": total, "rows": ordered, "least": LEAST_ROWS, "limits": (MODERATE, LARGE)}
    page = render("drift.html", watched, model=model, **shown)
    return HTMLResponse(page, 503 if model is None else 200, HEADERS)


def _example_search(model: ServedModel, address: str) -> str | None:
    """Return a shell command that searches; None without an index."""
    if model.texts is None:
        return None
    query = urlencode({"q": next(iter(model.texts.titles), "words"), "depth": 3})
    return shlex.join(["curl", "-s", f"{address}/search?{query}"])


def example_request(model: ServedModel, address: str) -> str:
    """Return a shell command that ranks two candidates: one of zeros, one of ones."""
    names = model.names
    by_name = len(names) <= MAX_NAMED
    rows = [dict.fromkeys(names, n) if by_name else [n] * len(names) for n in (0, 1)]
    candidates = [{"id": f"d{i + 1}", "features": row} for i, row in enumerate(rows)]
    body = json.dumps({"query": "q", "explain": 3, "candidates": candidates})
    words = ["curl", "-s", f"{address}/rank", "-H", f"Content-Type: {JSON}", "-d", body]
    return shlex.join(words)


def _address(request: Request) -> str:
    """Return the address of the Host header if it is valid, else that of the socket."""
    scheme, host = request.scope["scheme"], request.headers.get("host", "")
    if HOST.fullmatch(host):
        return f"{scheme}://{host}"
    name, port = request.scope["server"]
    return f"{scheme}://{url_host(name)}:{port}"
