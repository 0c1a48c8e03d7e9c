"""Who may send a request, decided by its head before its body is read; and the API's routes.

Objects that a person may not know of are reported as not found (404).  Every change needs the CSRF
token of the login: in the header `X-CSRF-Token`, or in the hidden form field `csrf` of a page.
Only programs with an API token need none (`firstpage.labeling.app.programs`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy.exc import IntegrityError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from firstpage.core import FirstpageError, plain_text
from firstpage.core.http import (
    SAFE_METHODS,
    SMALL_BODY,
    Declaration,
    Routes,
    as_json,
    error_response,
    json_response,
)
from firstpage.labeling.app.api.bodies import Slug
from firstpage.labeling.app.programs import API, check_scope
from firstpage.labeling.app.security import (
    check_csrf,
    current_login,
    form_csrf,
    headers_of,
    status_of,
    store_of,
)
from firstpage.labeling.app.store import Login, Person, projects
from firstpage.labeling.app.store.connect import storable
from firstpage.labeling.app.store.failures import disk_failure
from firstpage.labeling.app.store.judging import RepeatedRequest
from firstpage.labeling.app.store.projects import SLUG, Member
from firstpage.labeling.app.store.sessions import Conflict
from firstpage.labeling.app.store.tokens import Scope

TIMES = ("shown_at", "answered_at", "start")
CHANGED = "Another request changed this at the same time; reload and try again."
REFUSALS = {
    401: "Nobody is signed in, or the API token is invalid.",
    403: "This person or API token may not do this, or the CSRF token is wrong.",
    404: "There is no such object, or this person may not know that there is.",
}


def _lead(request: Request, login: Login) -> Member:
    member = _member(request, login)
    if not member.is_lead:  # an assessor knows that the project exists
        raise HTTPException(403, "Only a lead of this project can do this.")
    return member


def _member(request: Request, login: Login) -> Member:
    return member_of(request, request.path_params["slug"], login.person)


def member_of(request: Request, slug: str, person: Person) -> Member:
    """Return a person's membership of a project; 404 if they may not know of it."""
    member = None
    if SLUG.fullmatch(slug):
        with store_of(request).read() as tx:
            member = projects.member(tx, slug, person)
    if member is None:
        raise HTTPException(404, "There is no such project.")
    return member


def _admin(request: Request, login: Login) -> Login:
    if not login.person.admin:
        raise HTTPException(403, "Only an admin can do this.")
    return login


ROLES: dict[str, Callable[[Request, Login], Login | Member]] = {
    "login": lambda request, login: login,
    "member": _member,
    "lead": _lead,
    "admin": _admin,
}


@dataclass(frozen=True)
class Access:
    """Admits requests by their role.

    Attributes
    ----------
    role : str
        Handlers get the `Login` of a `login` or `admin`, the `Member` of a `member` or `lead`;
        with `public` the login, or None.
    scope : str or None
        The scope that an API token needs for a change; None: no token may use the route, since a
        leaked one must not become an account.
    header : bool
        Whether a change needs the CSRF token in a header; otherwise it is in a form.
    """

    role: Literal["public", "login", "member", "lead", "admin"]
    scope: Scope | None = "lead"
    header: bool = True

    @property
    def refusals(self) -> Mapping[int, str]:
        return {403: REFUSALS[403]} if self.role == "public" else REFUSALS

    def __call__(self, request: Request) -> Login | Member | None:
        login = request.state.login = current_login(request)
        if login is not None and login.scope is not None:
            safe = request.method in SAFE_METHODS and self.scope is not None
            check_scope(login.scope, "read" if safe else self.scope)
        if self.role == "public":
            return login
        if login is None:
            raise HTTPException(401, "Please sign in first.")
        admitted = ROLES[self.role](request, login)
        if self.header and request.method not in SAFE_METHODS:
            check_csrf(request, login)
        return admitted


LOGIN, MEMBER, LEAD, ADMIN = Access("login"), Access("member"), Access("lead"), Access("admin")
JUDGE, JUDGING_MEMBER = Access("login", scope="judge"), Access("member", scope="judge")
ACCOUNT = Access("login", scope=None)
PUBLIC: dict[str, Any] = {"admit": Access("public", scope=None), "max_bytes": SMALL_BODY}


def as_user_error(request: Request, error: Exception) -> Exception:
    """Return an error as it is; as a failure of the store if the disk for uploads is full."""
    failure = disk_failure(error)
    if failure is None:
        return error
    store_of(request).report(failure)
    return failure


def api_error(request: Request, error: Exception) -> Response:
    """Return a user error in one line of JSON; a repeated answer is not an error."""
    error = as_user_error(request, error)
    if isinstance(error, RepeatedRequest):
        return json_response(error.state)
    if isinstance(error, Conflict):
        return error_response(409, plain_text(error), state=error.state)
    if isinstance(error, FirstpageError):
        return error_response(status_of(error), plain_text(error), headers_of(error))
    if isinstance(error, IntegrityError):
        return error_response(409, CHANGED)
    return as_json(request, error)


def check_text(text: str, place: str) -> None:
    """Refuse a text that a database cannot store; a time is corrected instead (`api.judging`)."""
    if not place.endswith(TIMES):
        storable(text)


DEFAULTS = Declaration(
    check_text=check_text, on_error=api_error, form_token=form_csrf, path_types={"slug": Slug}
)


def api_routes(tag: str, prefix: str = "", **changes: Any) -> Routes:
    """Return routes of the API, to be declared."""
    return Routes(DEFAULTS, prefix=API + prefix, tag=tag, **changes)
