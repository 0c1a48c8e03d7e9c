"""The HTML pages, one file per subject; they call the same services as the API."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

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

router = APIRouter(include_in_schema=False)
for module in (sign_in, work, people, dashboard, adjudication, machines, queries, setup):
    router.include_router(module.router)


def install(app: FastAPI) -> None:
    """Add the static files, and the error page of unknown addresses."""
    app.mount(static_files().url, static_files(), name="static")
    app.add_exception_handler(HTTPException, _not_found)


async def _not_found(request: Request, error: Exception) -> Response:
    """Return an unknown address as a page for people, or as JSON for programs."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith(("/api/", "/documents/")) or error.status_code != 404:
        return await http_exception_handler(request, error)
    return await run_in_threadpool(error_page, request, 404, "There is no such page.")
