"""The HTML of documents: as a page of its own, or as content for an empty frame.

Documents are untrusted: they must not run code or send requests.  The content security policy of
both kinds of page allows no scripts, no forms and no requests except for stored images; links and
other loads that the policy does not cover are removed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from sqlalchemy import RowMapping

from firstpage.labeling.app.sanitize import plain_text, sanitize_document, too_complex

POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; "
    "sandbox allow-same-origin; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",  # so that the browser keeps nothing after signing out
    "x-frame-options": "SAMEORIGIN",
}
# HTML keeps its own style; other kinds use the colors of the pages.
STYLE = Path(__file__).with_name("document.css").read_text("utf-8").replace("\n", "")
TOO_COMPLEX = (
    "<p><em>This page is too large or too deeply nested to show; this is its text.</em></p>"
)


@dataclass(frozen=True)
class DocumentContent:
    """What an empty frame needs to show a document: the class of its root, and its body."""

    style: str
    body: str


def content_of(row: RowMapping | Mapping[str, Any]) -> DocumentContent:
    """Return the content of a stored document, sanitized."""
    return DocumentContent("html" if row["kind"] == "html" else "own", _body(row))


def page_of(row: RowMapping | Mapping[str, Any]) -> str:
    """Return a stored document as a page of its own."""
    return _page(escape(row["title"] or row["key"]), content_of(row))


def _page(title: str, content: DocumentContent) -> str:
    return (
        f'<!doctype html><html dir="auto" class="{content.style}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>{content.body}</body></html>"
    )


# The page of a frame before it gets its content; it has none of its own, so it may be cached.
EMPTY_PAGE = _page("Document", DocumentContent("own", ""))
EMPTY_URL = f"/documents/frame-{hashlib.sha256(EMPTY_PAGE.encode()).hexdigest()[:12]}"


def _body(row: RowMapping | Mapping[str, Any]) -> str:
    heading = f"<h1>{escape(row['title'])}</h1>" if row["title"] else ""
    body = row["body"]
    if row["kind"] == "html":
        return (
            heading + TOO_COMPLEX + _paragraphs(plain_text(body))
            if too_complex(body)
            else sanitize_document(body)
        )
    image = (
        f'<p><img src="/documents/{row["id"]}/image" alt="{escape(row["title"])}"></p>'
        if row["image"]
        else ""
    )
    fields = row["fields"] if isinstance(row["fields"], dict) else {}
    if row["kind"] == "list":
        return heading + _items(fields.get("items") or [])
    pairs = "".join(
        f"<dt>{escape(str(k))}</dt><dd>{escape(str(v))}</dd>" for k, v in fields.items()
    )
    return heading + image + _paragraphs(body) + (f"<dl>{pairs}</dl>" if pairs else "")


def _items(items: list[Any]) -> str:
    """Return the items of a list as an ordered list in HTML."""
    rows = []
    for item in items:
        fields = item if isinstance(item, dict) else {"title": item}
        lines = [f"<strong>{escape(str(fields.get('title', '')))}</strong>"]
        lines += [escape(str(fields[name])) for name in ("url", "text") if fields.get(name)]
        rows.append(f"<li>{'<br>'.join(lines)}</li>")
    return f"<ol>{''.join(rows)}</ol>"


def _paragraphs(text: str) -> str:
    """Return the paragraphs of a text as HTML, each in its own direction, with line breaks.

    Breaks at which a program wrapped the text have the class `wrap`, so that a page can join their
    lines; the blank behind them then separates the words.
    """
    width = wrap_width(text)
    paragraphs = [p for p in re.split(r"\n\s*\n", text) if p.strip()]
    return "".join(
        f'<p dir="auto">{_joined(p.strip(chr(10)).split(chr(10)), width)}</p>' for p in paragraphs
    )


MIN_WIDTH, MAX_WIDTH = 40, 100  # characters per line of a text that was wrapped by a program
_ITEM = re.compile(
    r"\s|[-*•>|#]|\(?\w{1,3}[.)]\s"
)  # the start of a line that is not continued text


def wrap_width(text: str) -> int | None:
    """Return the width to which a text was wrapped; None if it was not.

    Only lines that another one follows tell it; a tenth of them may be longer.
    """
    lines = [line.rstrip() for line in text.split("\n")]
    lengths = sorted(len(line) for line, following in pairwise(lines) if line and following)
    width = lengths[int(0.9 * len(lengths))] if lengths else 0
    return width if MIN_WIDTH <= width <= MAX_WIDTH else None


def _joined(lines: list[str], width: int | None) -> str:
    """Return the lines of a paragraph as HTML, with a break between each two."""
    html = [escape(lines[0])]
    for line, following in pairwise(lines):
        wrapped = width is not None and _is_wrapped(line.rstrip(), following, width)
        line_break = '<br class="wrap">' if wrapped else "<br>"
        html.append(f"{line_break}\n{escape(following)}")
    return "".join(html)


def _is_wrapped(line: str, following: str, width: int) -> bool:
    """Return whether a line ends where one more word would not have fitted."""
    if not following.strip() or _ITEM.match(following):
        return False
    return len(line) + 1 + len(following.split(maxsplit=1)[0]) > width
