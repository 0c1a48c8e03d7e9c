"""The API reference: a table of all routes, from the OpenAPI description, without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse

from firstpage.core import Table
from firstpage.interop.report import page, paragraph

HEAD = ("route", "description", "request fields", "status codes")


def rows(description: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield method and path, summary, request fields (required ones with *), status codes."""
    schemas = description.get("components", {}).get("schemas", {})
    for path, methods in description["paths"].items():
        for method, route in methods.items():
            text = route.get("description") or route.get("summary", "")
            yield (
                f"{method.upper()} {path}",
                text.strip().splitlines()[0] if text else "",
                ", ".join(_fields(route, schemas)),
                ", ".join(sorted(route["responses"])),
            )


def _fields(route: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[str]:
    query = [p["name"] + "?" for p in route.get("parameters", ()) if p["in"] == "query"]
    for content in route.get("requestBody", {}).get("content", {}).values():
        name = content.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
        schema = schemas.get(name, {})
        required = schema.get("required", ())
        return query + [f + "*" if f in required else f for f in schema.get("properties", {})]
    return query


def serve(app: FastAPI, path: str) -> None:
    """Add the reference page to the application."""

    def reference(request: Request) -> HTMLResponse:
        table = Table(HEAD, list(rows(app.openapi())), left_aligned=len(HEAD))
        lead = "All routes of this server; openapi.json describes them for programs."
        authentication = paragraph(
            "Sign in with POST login, which sets the session cookie. Every change must send the "
            "header X-CSRF-Token with the token that login and me return. A program sends its API "
            "token instead, as Authorization: Bearer, and needs neither. * marks required fields."
        )
        html = page("Firstpage: HTTP API", lead, [("Routes", [authentication, table.html()])])
        # The page has an inline style and loads nothing.
        policy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
        return HTMLResponse(html, headers={"content-security-policy": policy})

    app.add_api_route(path, reference, include_in_schema=False)
