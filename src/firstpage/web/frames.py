"""Documents in frames of their own.  They are untrusted: nothing in them may act or call out.

The policy allows no script, no form, no request but for our own pictures; links and other loads
that a policy does not cover are taken out besides.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse
from sqlalchemy import RowMapping

from firstpage.web.api.bodies import Id
from firstpage.web.sanitize import cleaned, plain_text, too_tangled
from firstpage.web.security import CurrentPerson, store_of
from firstpage.web.store import projects, tasks, texts
from firstpage.web.store.connect import Tx
from firstpage.web.store.people import Person

POLICY = (
    "default-src 'none'; img-src 'self' data:; style-src 'unsafe-inline'; "
    "sandbox allow-same-origin; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",  # nothing is left in the browser of who logged out
    "x-frame-options": "SAMEORIGIN",
}
STYLE = (  # HTML keeps its own looks; our renderings take the colors of the pages
    ":root{color-scheme:light dark}body{overflow-wrap:anywhere}img{max-width:100%;height:auto}"
    ".html body{font:1rem/1.5 system-ui,sans-serif;margin:1rem}"
    ".own body{font:1.05rem/1.6 -apple-system,'Segoe UI',Roboto,'Noto Sans','Liberation Sans',"
    "system-ui,sans-serif;margin:1.1rem 1.3rem;max-width:68ch;"
    "background:light-dark(#fffdfa,#1c2226);color:light-dark(#1e2428,#e9e6df)}"
    ".own h1{font-size:1.3rem;line-height:1.3;margin:0 0 .8rem}"
    ".own p{margin:0 0 1em}.own p img{border-radius:.5rem;max-height:60vh}"
    ".own dl{display:grid;grid-template-columns:auto 1fr;gap:.35rem 1.2rem;margin:1rem 0}"
    ".own dt{color:light-dark(#56606a,#a9b1b8)}.own dd{margin:0}"
    ".own ol{padding-inline-start:1.6rem}.own li{margin-block-end:.9rem}"
    ".own li::marker{color:light-dark(#56606a,#a9b1b8)}"
)
TANGLED = "<p><em>This page is too large or too deeply nested to show; this is its text.</em></p>"
router = APIRouter(include_in_schema=False)


@router.get("/documents/{document}")
def frame(request: Request, document: Id, person: CurrentPerson) -> HTMLResponse:
    """The document alone."""
    with store_of(request).read() as tx:
        row = _allowed(tx, document, person)
    return HTMLResponse(_page(row), headers=HEADERS)


@router.get("/documents/{document}/image")
def picture(request: Request, document: Id, person: CurrentPerson) -> Response:
    """The picture that a document shows; the kinds are ours, so none is run."""
    with store_of(request).read() as tx:
        row = _allowed(tx, document, person)
        found = texts.image(tx, row["image"]) if row["image"] else None
    if found is None:
        raise HTTPException(404, "This document has no picture.")
    return Response(found["data"], media_type=found["type"], headers=HEADERS)


def _allowed(tx: Tx, document: int, person: Person) -> RowMapping:
    """The document, for those who judge it or lead its project; 404 for all others."""
    row = texts.document(tx, document)
    if row is not None:
        project = projects.get(tx, row["project"])
        member = projects.member(tx, project.slug, person)
        if member is not None and (
            member.leads
            or row["purpose"] == "training"
            or tasks.sees_query(tx, person.id, row["query"])
        ):
            return row
    raise HTTPException(404, "There is no such document.")


def _page(row: RowMapping) -> str:
    title = escape(row["title"] or row["key"])
    looks = "html" if row["kind"] == "html" else "own"
    return (
        f'<!doctype html><html dir="auto" class="{looks}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{STYLE}</style></head><body>{_body(row)}</body></html>"
    )


def _body(row: RowMapping) -> str:
    heading = f"<h1>{escape(row['title'])}</h1>" if row["title"] else ""
    body = row["body"]
    if row["kind"] == "html":
        return (
            heading + TANGLED + _paragraphs(plain_text(body))
            if too_tangled(body)
            else cleaned(body)
        )
    image = (
        f'<p><img src="/documents/{row["id"]}/image" alt="{escape(row["title"])}"></p>'
        if row["image"] else ""
    )  # fmt: skip
    fields = row["fields"] if isinstance(row["fields"], dict) else {}
    if row["kind"] == "list":
        return heading + _items(fields.get("items") or [])
    pairs = "".join(
        f"<dt>{escape(str(k))}</dt><dd>{escape(str(v))}</dd>" for k, v in fields.items()
    )
    return heading + image + _paragraphs(body) + (f"<dl>{pairs}</dl>" if pairs else "")


def _items(items: list[Any]) -> str:
    found = []
    for item in items:
        shown = item if isinstance(item, dict) else {"title": item}
        parts = [f"<strong>{escape(str(shown.get('title', '')))}</strong>"]
        parts += [escape(str(shown[name])) for name in ("url", "text") if shown.get(name)]
        found.append(f"<li>{'<br>'.join(parts)}</li>")
    return f"<ol>{''.join(found)}</ol>"


def _paragraphs(text: str) -> str:
    """Each in the direction of its own first letter; line breaks are kept."""
    parts = [p for p in re.split(r"\n\s*\n", text) if p.strip()]
    return "".join(
        f'<p dir="auto">{escape(part.strip(chr(10))).replace(chr(10), "<br>")}</p>'
        for part in parts
    )
