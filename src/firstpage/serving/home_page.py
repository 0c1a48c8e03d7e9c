"""The page about the server: the model in service, what it has answered, and example requests."""

from __future__ import annotations

import json
import re
import shlex
import time
from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse

from firstpage.core.http import HEADERS, url_host
from firstpage.serving.markup import Child, Html, tag
from firstpage.serving.metrics import Metrics
from firstpage.serving.page_frame import document, facts, search_box
from firstpage.serving.ranking import JSON
from firstpage.serving.served_model import ServedModel
from firstpage.serving.snippets import MAX_ID, displayed
from firstpage.serving.watched_model import WatchedModel, printable

MAX_NAMED = 12  # features that the example request names; more are sent as a list
HOST = re.compile(r"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
LINKS = {
    "/health": "whether a model is in service, and since when",
    "/model": "features in order, parameters, training record",
    "/metrics": "all metrics, for Prometheus",
    "/openapi.json": "the API as OpenAPI",
}
HEADS = ("Route", "Requests", "Refused", "Mean time")


def home_page(
    watched: WatchedModel, metrics: Metrics, static: str, request: Request
) -> HTMLResponse:
    """Return the current page."""
    model, status, headers = watched.model, 200, dict(HEADERS)
    if model is None:
        status, headers["retry-after"] = 503, "1"
        content: list[Child] = [
            tag("h1", "No model yet"),
            tag("p", f"No model yet: {watched.refused}", class_="note warn"),
        ]
    else:
        content = _about(watched, model, metrics, _address(request))
    links = [tag("li", tag("a", path, href=path), f": {text}") for path, text in LINKS.items()]
    content += [tag("h2", "More"), tag("ul", links)]
    about, box = ("/about", search_box()) if watched.source else ("/", None)
    title = "No model yet" if model is None else model.model.ranker
    page = tag("div", content, class_="page reading")
    return HTMLResponse(
        document(f"{title} - firstpage serve", static, [page], box, about), status, headers
    )


def _about(
    watched: WatchedModel, model: ServedModel, metrics: Metrics, address: str
) -> list[Child]:
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(model.since))
    names = [displayed(name, MAX_ID).text for name in model.names]
    rows: list[tuple[str, Child]] = [
        ("Model", [tag("code", watched.name), f": {model.model.ranker}, {_features(len(names))}"]),
        ("In service since", since),
        ("SHA-256", tag("code", model.digest)),
    ]
    if model.texts is not None:
        index = model.texts.index
        name = tag("code", printable(index.path.name))
        rows.append(("Index", [name, f": {len(index):,} documents"]))
    return [
        tag("h1", "About this server"),
        tag("p", f"The current file is refused: {watched.refused}", class_="note warn")
        if watched.refused
        else None,
        facts(rows),
        tag(
            "details",
            tag("summary", "Names of the features"),
            tag("p", ", ".join(names), class_="soft"),
        ),
        tag("h2", "Requests"),
        _requests(metrics),
        tag("h2", "Try it"),
        *_examples(model, address),
    ]


def _features(count: int) -> str:
    return f"{count:,} feature{'s' * (count != 1)}"


def _requests(metrics: Metrics) -> Html:
    """Return a table of what was requested since the start."""
    routes = metrics.routes()
    if not routes:
        return tag("p", "None since the start.", class_="soft")
    rows = [
        tag(
            "tr",
            tag("th", tag("code", each.route), scope="row"),
            tag("td", f"{each.requests:,}"),
            tag("td", f"{each.refused:,}" if each.refused else "-"),
            tag("td", f"{1000 * each.seconds:,.1f} ms"),
        )
        for each in routes
    ]
    head = tag("thead", tag("tr", [tag("th", name, scope="col") for name in HEADS]))
    return tag("table", head, tag("tbody", rows), class_="requests")


def _examples(model: ServedModel, address: str) -> Sequence[Child]:
    """Return a search, and a request with features; numbers that nobody reads are folded away."""
    text = example_request(model, address)
    ranking = tag("pre", text, tabindex="0")
    if len(model.names) > MAX_NAMED:
        summary = f"Rank two candidates by their {_features(len(model.names))}"
        ranking = tag("details", tag("summary", summary), ranking)
    if model.texts is None:
        return [ranking]
    query = urlencode({"q": next(iter(model.texts.titles), "words"), "depth": 3})
    search = shlex.join(["curl", "-s", f"{address}/search?{query}"])
    return [tag("pre", search, tabindex="0"), ranking]


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
