"""The HTML pages, one file per subject; they call the same services as the API."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount

from firstpage.core.http import as_json
from firstpage.labeling.app.pages import (
    adjudication,
    dashboard,
    machines,
    people,
    queries,
    setup,
    sign_in,
    work,
)
from firstpage.labeling.app.pages.rendering import error_page, static_files

MODULES = (sign_in, work, people, dashboard, adjudication, machines, queries, setup)


def page_routes() -> list[BaseRoute]:
    """Return the routes of all pages, and of the static files."""
    pages = [route for module in MODULES for route in module.routes]
    return [*pages, Mount(static_files().url, static_files(), name="static")]


def not_found(request: Request, error: Exception) -> Response:
    """Return an unknown address as a page for people, or as JSON for programs."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith(("/api/", "/documents/")) or error.status_code != 404:
        return as_json(request, error)
    return error_page(request, 404, "There is no such page.")
