"""The home page: the model in service, and an example request."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
import time
from html import escape

from starlette.requests import Request
from starlette.responses import HTMLResponse

from firstpage.serving.ranking import JSON
from firstpage.serving.served_model import ServedModel
from firstpage.serving.watched_model import WatchedModel
from firstpage.transport.server import url_host

MAX_NAMED = 12  # features that the example request names; more are sent as a list
HOST = re.compile(r"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
LINKS = {
    "/health": "whether a model is in service, and since when",
    "/model": "features in order, parameters, training record",
    "/metrics": "metrics for Prometheus",
    "/openapi.json": "the API as OpenAPI",
}
STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:48rem;margin:2rem auto;padding:0 1rem;"
    "color:#1b1b1b;background:#fff}"
    "pre{padding:1rem;background:#f2f2f2;white-space:pre-wrap;overflow-wrap:anywhere}"
    "code{overflow-wrap:anywhere}"
)
HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src 'sha256-{HASH}'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


def home_page(watched: WatchedModel, request: Request) -> HTMLResponse:
    """Return the current home page."""
    model = watched.model
    if model is None:
        text = f"<p>No model yet: {escape(str(watched.refused))}</p>"
        headers = {**HEADERS, "retry-after": "1"}
        return HTMLResponse(_document("No model yet", text), 503, headers)
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(model.since))
    ranker, count = escape(model.model.ranker), len(model.names)
    text = (
        f"<p><code>{escape(watched.name)}</code>: {ranker}, {count} feature{'s' * (count != 1)}; "
        f"in service since {since}.<br>sha256 <code>{model.digest}</code></p>"
    )
    if watched.refused:
        text += f"<p>The current file is refused: {escape(watched.refused)}</p>"
    text += f"<h2>Try it</h2><pre>{escape(example_request(model, _address(request)))}</pre>"
    return HTMLResponse(_document(model.model.ranker, text), 200, HEADERS)


def example_request(model: ServedModel, address: str) -> str:
    """Return a shell command that ranks two candidates: one of zeros, one of ones."""
    names = model.names
    by_name = len(names) <= MAX_NAMED
    rows = [dict.fromkeys(names, n) if by_name else [n] * len(names) for n in (0, 1)]
    candidates = [{"id": f"d{i + 1}", "features": row} for i, row in enumerate(rows)]
    body = json.dumps({"query": "q", "explain": 3, "candidates": candidates})
    words = ["curl", "-s", f"{address}/rank", "-H", f"Content-Type: {JSON}", "-d", body]
    return " ".join(map(shlex.quote, words))


def _address(request: Request) -> str:
    """Return the address of the Host header if it is valid, else that of the socket."""
    scheme, host = request.scope["scheme"], request.headers.get("host", "")
    if HOST.fullmatch(host):
        return f"{scheme}://{host}"
    name, port = request.scope["server"]
    return f"{scheme}://{url_host(name)}:{port}"


def _document(title: str, text: str) -> str:
    links = "".join(f'<li><a href="{path}">{path}</a>: {text}' for path, text in LINKS.items())
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)} - firstpage serve</title><style>{STYLE}</style>"
        f"<h1>firstpage serve</h1>{text}"
        f"<h2>More</h2><ul>{links}</ul></html>\n"
    )
