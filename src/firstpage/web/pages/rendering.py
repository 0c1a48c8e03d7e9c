"""What all pages share: templates, the frame around them, errors as pages."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import cache
from hashlib import sha256
from os import PathLike, stat_result
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from firstpage.errors import DataError, FirstpageError
from firstpage.web.admission import AdmissionRoute
from firstpage.web.api.bodies import storable
from firstpage.web.security import (
    csrf_form,
    csrf_token,
    current_login,
    headers_of,
    settings_of,
    status_of,
)
from firstpage.web.store.projects import Member

FOLDER = Path(__file__).parents[1] / "static"


@cache
def address() -> str:
    """`/static/` and a digest of all files; modules find each other beside themselves."""
    digest = sha256()
    for path in sorted(FOLDER.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return f"/static/{digest.hexdigest()[:12]}"


class Files(StaticFiles):
    """Files that a browser need not ask for twice."""

    def __init__(self) -> None:
        super().__init__(directory=FOLDER)

    def file_response(
        self, full_path: str | PathLike[str], stat_result: stat_result, scope: Scope,
        status_code: int = 200,
    ) -> Response:  # fmt: skip
        found = super().file_response(full_path, stat_result, scope, status_code)
        found.headers["cache-control"] = "public, max-age=31536000, immutable"
        return found


TEMPLATES = Path(__file__).parents[1] / "templates"
Form = Annotated[FormData, Depends(csrf_form)]

# What a page says after it did something; the address carries the name, never the words.
NOTES = {
    "saved": "Saved.",
    "password": "Your password is changed. Other devices are signed out.",
    "imported": "Imported.",
    "opened": "The project is open: assessors can start.",
    "closed": "The project is closed.",
    "dealt": "The queries are dealt out.",
    "revoked": "The link is taken back; it no longer works.",
    "departed": "They left; finished work stays, open and begun queries went to the others.",
    "deleted": "The data of this person is deleted.",
    "trained": "Well done: you passed the practice. Now the real queries.",
    "out": "You are signed out.",
    "switched": "Switched; the answers so far stay known.",
    "reset": "Your new password is set; sign in with it.",
}
TITLES = {
    403: "Not for you",
    404: "Not there",
    413: "Too large",
    429: "A moment, please",
    503: "A moment, please",
}


@cache
def templates() -> Environment:
    """Everything shown is escaped; a name that a page forgot is an error, not a blank."""
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render(
    request: Request, name: str, *, member: Member | None = None, status: int = 200, **context: Any
) -> HTMLResponse:
    """A template inside the frame of all pages."""
    login = current_login(request)
    csrf = csrf_token(request, login)
    field = Markup('<input type="hidden" name="csrf" value="{}">').format(csrf)
    shared: dict[str, Any] = {
        "request": request,
        "here": request.url.path,
        "person": login.person if login else None,
        "csrf": csrf,
        "static": address(),
        "alone": settings_of(request).open,
        "token": lambda: field,
        "project": member.project if member else None,
        "links": links(member) if member else [],
        "note": NOTES.get(request.query_params.get("note", "")),
        "note_kind": "good",
        "problem": None,
    }
    page = templates().get_template(name).render({**shared, **context})
    return HTMLResponse(page, status)


def links(member: Member) -> list[tuple[str, str]]:
    """The ways through a project, for this person."""
    start = f"/p/{member.project.slug}"
    found = []
    if member.leads:
        found += [
            ("Dashboard", f"{start}/dashboard"),
            ("Agreement", f"{start}/agreement"),
            ("Truth", f"{start}/truth"),
            *([("Measure", f"{start}/measure")] if "lists" in member.project.tools else []),
            ("People", f"{start}/people"),
            ("Set up", f"{start}/setup"),
            ("Audit", f"{start}/audit"),
        ]
    if "assessor" in member.roles:
        found += [("My queries", start)]
    return [*found, ("Guidelines", f"{start}/guidelines")]


def go(path: str, note: str | None = None) -> RedirectResponse:
    """To another page after a form, so that a reload sends nothing twice."""
    return RedirectResponse(f"{path}?note={note}" if note else path, status_code=303)


def here(path: object) -> str:
    """An address to go on to, if it is one of ours; a foreign one leads home."""
    text = path if isinstance(path, str) else ""
    odd = any(sign in text for sign in "\\\r\n\t") or not text.isprintable()
    return text if text.startswith("/") and not text.startswith("//") and not odd else "/"


def field(form: FormData, name: str, default: str = "") -> str:
    """A text of a form, without space around it; one that no database keeps is refused."""
    value = form.get(name, default)
    if not isinstance(value, str):
        return default
    try:
        return storable(value.strip())
    except ValueError as error:
        raise DataError(f"{name}: {error}; take it out.") from error


class PageRoute(AdmissionRoute):
    """A route whose errors are pages: signed out leads to the door, the rest says what is wrong."""

    def __init__(self, *given: Any, **options: Any) -> None:
        """What can be got can be asked for its head."""
        super().__init__(*given, **options)
        if self.methods and "GET" in self.methods:
            self.methods.add("HEAD")

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        inner = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await inner(request)
            except RequestValidationError:
                return await run_in_threadpool(failed, request, 404, "There is no such page.")
            except HTTPException as error:
                return await run_in_threadpool(
                    failed, request, error.status_code, str(error.detail)
                )
            except FirstpageError as error:
                page = await run_in_threadpool(failed, request, status_of(error), str(error))
                page.headers.update(headers_of(error))
                return page

        return handle


def failed(request: Request, status: int, detail: str) -> Response:
    """The page of an error."""
    if status == 401:
        path = request.url.path if request.method in ("GET", "HEAD") else "/"
        return RedirectResponse(f"/login?next={quote(path)}", status_code=303)
    title = TITLES.get(status, "That did not work")
    return render(request, "error.html", status=status, title=title, detail=sentence(detail))


def sentence(error: object) -> str:
    """An error as a sentence of a page."""
    text = " ".join(str(error).split())
    return text[:1].upper() + text[1:]
