"""The HTML pages: one file a subject; they call the services that the API calls."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from firstpage.web.pages import dashboard, people, setup, sign_in, work
from firstpage.web.pages.rendering import Files, address, failed

router = APIRouter(include_in_schema=False)
for part in (sign_in, work, people, dashboard, setup):
    router.include_router(part.router)


def install(app: FastAPI) -> None:
    """Scripts and styles, and a page where there is none."""
    app.mount(address(), Files(), name="static")
    app.add_exception_handler(HTTPException, _lost)


async def _lost(request: Request, error: Exception) -> Response:
    """Addresses that lead nowhere: a page for people, JSON for programs."""
    assert isinstance(error, HTTPException)
    if request.url.path.startswith(("/api/", "/documents/")) or error.status_code != 404:
        return await http_exception_handler(request, error)
    return await run_in_threadpool(failed, request, 404, "There is no such page.")
