"""The API's routes as a table for people, from its OpenAPI description; no script is needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse

from firstpage.report.page import page, paragraph
from firstpage.table import Table

HEAD = ("route", "what it does", "is sent", "answers")


def rows(description: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Method and path, summary, what is sent (a star: it must be), codes of the answers."""
    schemas = description.get("components", {}).get("schemas", {})
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            text = route.get("description") or route.get("summary", "")
            yield (
                f"{method.upper()} {path}", text.strip().splitlines()[0] if text else "",
                ", ".join(_fields(route, schemas)), ", ".join(sorted(route["responses"])),
            )  # fmt: skip


def _fields(route: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[str]:
    query = [p["name"] + "?" for p in route.get("parameters", ()) if p["in"] == "query"]
    for content in route.get("requestBody", {}).get("content", {}).values():
        name = content.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
        schema = schemas.get(name, {})
        needed = schema.get("required", ())
        return query + [f + "*" if f in needed else f for f in schema.get("properties", {})]
    return query


def serve(app: FastAPI, path: str) -> None:
    """Add the page to the application, beside the description itself."""

    def reference(request: Request) -> HTMLResponse:
        table = Table(HEAD, list(rows(app.openapi())), left_aligned=len(HEAD))
        lead = "Every route of this server; the description for programs is openapi.json."
        how = paragraph(
            "Sign in by POST login; the cookie is the session, and every change carries the header "
            "X-CSRF-Token that login and me tell. A star marks what must be sent."
        )
        made = page("Firstpage: HTTP API", lead, [("Routes", [how, table.html()])])
        # The page brings its own style, and nothing else.
        policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
        return HTMLResponse(made, headers={"content-security-policy": policy})

    app.add_api_route(path, reference, include_in_schema=False)
