"""Page rendering: templates, static files, redirects, and errors as pages."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from jinja2 import Environment
from markupsafe import Markup
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from firstpage.core import DataError, FirstpageError, plain_text
from firstpage.core.http import (
    SMALL_BODY,
    CachedStaticFiles,
    InvalidRequest,
    Routes,
    page_templates,
    sentence,
)
from firstpage.labeling.app import admission
from firstpage.labeling.app.admission import Access, api_error, as_user_error
from firstpage.labeling.app.security import (
    csrf_token,
    current_login,
    headers_of,
    settings_of,
    status_of,
)
from firstpage.labeling.app.store import Login, Member, Project, texts
from firstpage.labeling.app.store.connect import Tx, storable
from firstpage.labeling.app.store.failures import StoreUnavailable
from firstpage.labeling.app.store.scales import scale_title

STATIC = Path(__file__).parents[1] / "static"
SHEETS = {
    "page.css": ("base.css", "forms.css"),
    "judge-page.css": ("base.css", "forms.css", "judge.css"),
}


@cache
def static_files() -> CachedStaticFiles:
    """Return the static files, with the address under which they are served."""
    return CachedStaticFiles(STATIC, sheets=SHEETS)


TEMPLATES = Path(__file__).parents[1] / "templates"
# Who may use a page; the CSRF token of a change is in its form.
LOGIN, MEMBER, LEAD, ADMIN = (
    replace(access, header=False)
    for access in (admission.LOGIN, admission.MEMBER, admission.LEAD, admission.ADMIN)
)
PUBLIC: dict[str, Any] = {"admit": Access("public", header=False), "max_bytes": SMALL_BODY}

# Confirmations after an action; the URL has the name, never the text.
NOTES = {
    "saved": "Saved.",
    "password": "Your password was changed. Other devices are signed out.",
    "imported": "Imported.",
    "opened": "The project is open; assessors can start.",
    "closed": "The project is closed.",
    "assigned": "The queries are assigned.",
    "revoked": "The link was revoked; it no longer works.",
    "token": "The token was revoked; it no longer works.",
    "departed": "Removed from the project; open and started queries were reassigned.",
    "deleted": "The data of this person were deleted.",
    "trained": "Well done: you passed the practice. Now start with the real queries.",
    "toured": "That was the tour. On every question, ? shows the keys and G the guidelines.",
    "out": "You are signed out.",
    "expired": "You were signed out, so nothing was saved. Sign in, then send it again.",
    "switched": "Switched; the answers so far are kept.",
    "archived": "The project is archived; it can be restored.",
    "restored": "The project is restored; open it to continue.",
    "project-deleted": "The project was deleted.",
    "settled": "The verdict is recorded; the truth takes it into account.",
    "withdrawn": "The verdict is undone.",
    "webhook-removed": "The webhook is removed; nothing more is sent.",
    "reset": "Your password is set, and you are signed in.",
}
TITLES = {
    403: "Not allowed",
    404: "Not found",
    413: "Too large",
    429: "Please wait a moment",
    503: "Please wait a moment",
}


def tool_labels(project: Project) -> dict[str, str]:
    """Return what the tools are called on the pages of a project."""
    return {
        "pairs": "side by side",
        "grades": scale_title(project.options.grades),
        "lists": "two lists",
    }


@cache
def templates() -> Environment:
    """Return the templates of the pages."""
    return page_templates(TEMPLATES)


def render(
    request: Request, name: str, *, member: Member | None = None, status: int = 200, **context: Any
) -> HTMLResponse:
    """Render a template with the variables that all pages share."""
    login = _login(request)
    csrf = csrf_token(request, login)
    field = Markup('<input type="hidden" name="csrf" value="{}">').format(csrf)
    shared: dict[str, Any] = {
        "request": request,
        "here": request.url.path,
        "person": login.person if login else None,
        "csrf": csrf,
        "static": static_files().url,
        "single_user": settings_of(request).single_user,
        "by_proxy": login is not None and login.by_proxy,
        "token": lambda: field,
        "project": member.project if member else None,
        "links": navigation(member) if member else [],
        "note": NOTES.get(request.query_params.get("note", "")),
        "note_kind": "warn" if request.query_params.get("note") == "expired" else "good",
        "problem": None,
    }
    page = templates().get_template(name).render({**shared, **context})
    return HTMLResponse(page, status)


def _login(request: Request) -> Login | None:
    """Return the login of a page; None also if the page says why nobody is signed in."""
    try:
        login: Login | None = request.state.login
    except AttributeError:  # the request was not admitted
        with suppress(HTTPException, StoreUnavailable):
            return current_login(request)
        return None
    return login


def navigation(member: Member) -> list[tuple[str, str]]:
    """Return the labels and URLs of a project's pages for this person."""
    start = f"/p/{member.project.slug}"
    links = []
    if member.is_lead:
        links += [
            ("Dashboard", f"{start}/dashboard"),
            ("Answers", f"{start}/answers"),
            ("Adjudicate", f"{start}/adjudicate"),
            ("Agreement", f"{start}/agreement"),
            ("Truth", f"{start}/truth"),
            *([("Measure", f"{start}/measure")] if "lists" in member.project.tools else []),
            ("People", f"{start}/people"),
            ("Set up", f"{start}/setup"),
            ("Audit", f"{start}/audit"),
        ]
    if "assessor" in member.roles:
        links += [("My queries", start)]
    return [*links, ("Guidelines", f"{start}/guidelines")]


def query_texts(tx: Tx, project: Project) -> dict[str, str]:
    """Return the texts of a project's queries by their ids, also of archived ones."""
    return {row["key"]: row["text"] for row in texts.of_project(tx, project.id, archived=True)}


def redirect(path: str, note: str | None = None) -> RedirectResponse:
    """Redirect after a form, so that a reload does not submit it again."""
    return RedirectResponse(f"{path}?note={note}" if note else path, status_code=303)


def local_path(path: object) -> str:
    """Return a path to redirect to if it is on this site; otherwise the home page."""
    text = path if isinstance(path, str) else ""
    unsafe = any(c in text for c in "\\\r\n\t") or not text.isprintable()
    return text if text.startswith("/") and not text.startswith("//") and not unsafe else "/"


def field(form: FormData, name: str, default: str = "") -> str:
    """Return a stripped text of a form; one that the databases cannot store is refused."""
    value = form.get(name, default)
    if not isinstance(value, str):
        return default
    try:
        return storable(value.strip())
    except ValueError as error:
        raise DataError(f"{name}: {error}; remove it.") from error


def page_routes(admit: Access) -> Routes:
    """Return routes of pages, to be declared: their errors are pages."""
    return Routes(admission.DEFAULTS, admit=admit, hidden=True, on_error=page_error)


def page_error(request: Request, error: Exception) -> Response:
    """Return an error as a page; without a login a redirect to the sign-in page."""
    error = as_user_error(request, error)
    if isinstance(error, InvalidRequest):
        return error_page(request, 404, "There is no such page.")
    if isinstance(error, HTTPException):
        return error_page(request, error.status_code, str(error.detail))
    if not isinstance(error, FirstpageError):
        return api_error(request, error)
    page = error_page(request, status_of(error), plain_text(error))
    page.headers.update(headers_of(error))
    return page


def error_page(request: Request, status: int, detail: str) -> Response:
    """Return the page of an error, or a redirect to the sign-in page."""
    if status == 401:
        return RedirectResponse(_login_path(request), status_code=303)
    title = TITLES.get(status, "Something went wrong")
    return render(request, "error.html", status=status, title=title, detail=sentence(detail))


def _login_path(request: Request) -> str:
    """Return the address to sign in and then return to the page; a form that was sent is lost."""
    if request.method in ("GET", "HEAD"):
        return f"/login?next={quote(request.url.path)}"
    try:
        page = local_path(unquote(urlsplit(request.headers.get("referer", "")).path))
    except ValueError:  # the header is not an address
        page = "/"
    return f"/login?next={quote(page)}&note=expired"
