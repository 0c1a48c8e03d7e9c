"""The description of the API: OpenAPI for programs, and a table of all routes without scripts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse

from firstpage import __version__
from firstpage.core import Table
from firstpage.core.http import Routes, openapi_document
from firstpage.interop.report import page, paragraph
from firstpage.labeling.app.admission import DEFAULTS
from firstpage.labeling.app.api import (
    accounts,
    admin,
    analysis,
    assignment,
    judging,
    projects,
    team,
    webhooks,
)
from firstpage.labeling.app.programs import API

HEAD = ("route", "description", "request fields", "status codes")
DESCRIBED = (  # in the order in which they are tried
    judging.task_routes, accounts.routes, judging.routes, projects.routes, team.routes,
    assignment.routes, analysis.routes, webhooks.routes, admin.routes,
)  # fmt: skip
routes = Routes(DEFAULTS, prefix=API, hidden=True)


@routes.get("/openapi.json")
def openapi(request: Request) -> dict[str, Any]:
    """Return the OpenAPI document."""
    return description()


def description() -> dict[str, Any]:
    """Return the description of all routes of the API."""
    return openapi_document(
        (operation for described in DESCRIBED for operation in described.operations()),
        title="Firstpage",
        version=__version__,
        description="Judge documents per query, measure agreement, and export the labels.",
    )


@routes.get("/docs")
def reference(request: Request) -> HTMLResponse:
    """Show a table of all routes."""
    table = Table(HEAD, list(rows(description())), left_aligned=len(HEAD))
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


def rows(document: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Yield method and path, summary, request fields (required ones with *), status codes."""
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, route in methods.items():
            yield (
                f"{method.upper()} {path}",
                route["summary"],
                ", ".join(_fields(route, schemas)),
                ", ".join(sorted(route["responses"])),
            )


def _fields(route: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[str]:
    query = [p["name"] + "?" for p in route.get("parameters", ()) if p["in"] == "query"]
    for content in route.get("requestBody", {}).get("content", {}).values():
        schema = schemas[content["schema"]["$ref"].rsplit("/", 1)[-1]]
        required = schema.get("required", ())
        names = sorted(schema["properties"], key=lambda name: name not in required)
        return query + [name + "*" if name in required else name for name in names]
    return query
