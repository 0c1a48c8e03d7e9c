"""A page for whoever opens the address in a browser: the model, and how to ask it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shlex
import time
from html import escape

from firstpage.serving.answers import JSON
from firstpage.serving.description import HTML
from firstpage.serving.holder import Holder
from firstpage.serving.replies import Reply, Scope
from firstpage.serving.served import Served
from firstpage.transport.server import shown

NAMED = 12  # features up to which the example calls them by name
HOST = re.compile(rb"([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?")
LOOKS = {
    "/health": "whether it is in service, and since when",
    "/model": "features in their order, parameters, record of training",
    "/metrics": "counters for Prometheus",
    "/openapi.json": "all of this for machines",
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


def reply(holder: Holder, scope: Scope) -> Reply:
    """The page of now."""
    served = holder.served
    if served is None:
        said = f"<p>No model yet: {escape(str(holder.refused))}</p>"
        headers = {**HEADERS, "retry-after": "1"}
        return Reply(503, _page("No model yet", said), HTML, headers)
    since = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(served.since))
    ranker, count = escape(served.model.ranker), len(served.names)
    said = (
        f"<p><code>{escape(holder.name)}</code>: {ranker}, {count} feature{'s' * (count != 1)}; "
        f"in service since {since}.<br>sha256 <code>{served.digest}</code></p>"
    )
    if holder.refused:
        said += f"<p>The file that lies there now is refused: {escape(holder.refused)}</p>"
    said += f"<h2>Ask it</h2><pre>{escape(command(served, _address(scope)))}</pre>"
    return Reply(200, _page(served.model.ranker, said), HTML, HEADERS)


def command(served: Served, address: str) -> str:
    """A line for a shell that ranks two candidates: one of zeros, one of ones."""
    names = served.names
    rows = [dict.fromkeys(names, n) if len(names) <= NAMED else [n] * len(names) for n in (0, 1)]
    candidates = [{"id": f"d{i + 1}", "features": row} for i, row in enumerate(rows)]
    body = json.dumps({"query": "q", "explain": 3, "candidates": candidates})
    words = ["curl", "-s", f"{address}/rank", "-H", f"Content-Type: {JSON}", "-d", body]
    return " ".join(map(shlex.quote, words))


def _address(scope: Scope) -> str:
    """As the browser wrote it, if that can be an address."""
    said: bytes = dict(scope["headers"]).get(b"host", b"")
    if HOST.fullmatch(said):
        return f"{scope['scheme']}://{said.decode()}"
    host, port = scope["server"]
    return f"{scope['scheme']}://{shown(host)}:{port}"


def _page(title: str, said: str) -> bytes:
    links = "".join(f'<li><a href="{at}">{at}</a>: {what}' for at, what in LOOKS.items())
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)} - firstpage serve</title><style>{STYLE}</style>"
        f"<h1>firstpage serve</h1>{said}"
        f"<h2>Look at it</h2><ul>{links}</ul></html>\n"
    ).encode()
