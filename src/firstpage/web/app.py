"""The application: the API, the documents' frames and the pages."""

from __future__ import annotations

import hmac

from fastapi import FastAPI, HTTPException, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from sqlalchemy.exc import IntegrityError

from firstpage import __version__
from firstpage.errors import FirstpageError
from firstpage.web import frames, pages
from firstpage.web.analysis.choosing import wish
from firstpage.web.api import (
    accounts,
    admin,
    assignment,
    findings,
    judging,
    projects,
    reference,
    team,
)
from firstpage.web.guard import Guard
from firstpage.web.security import ServeSettings, headers_of, set_login_cookie, status_of, store_of
from firstpage.web.sign_in import Gate
from firstpage.web.store import assigning, logins, people
from firstpage.web.store.connect import Store
from firstpage.web.store.judging import Desk, Repeated
from firstpage.web.store.projects import every_project, members
from firstpage.web.store.sessions import Conflict

LOCAL = people.LOCAL
API = "/api/v1"


def create_app(store: Store, settings: ServeSettings | None = None) -> FastAPI:
    """The application on one store, whose tables are ready."""
    given = settings or ServeSettings()
    app = FastAPI(
        title="Firstpage", version=__version__, docs_url=None, redoc_url=None,
        openapi_url=f"{API}/openapi.json",
        description="Label queries and documents; see who agrees; take the truth out.",
    )  # fmt: skip
    attach(app, store, given)
    for part in (accounts, judging, projects, team, assignment, findings, admin):
        app.include_router(part.router, prefix=API)
    app.include_router(frames.router)
    reference.serve(app, f"{API}/docs")
    app.add_api_route("/health", _health, include_in_schema=False)
    if given.open:
        app.add_api_route("/open", _let_in, include_in_schema=False)
    app.include_router(pages.router)
    pages.install(app)
    app.add_exception_handler(FirstpageError, _say)
    app.add_exception_handler(Repeated, _say)
    app.add_exception_handler(RequestValidationError, _say_invalid)
    app.add_exception_handler(IntegrityError, _say_late)
    app.add_middleware(Guard, settings=given)
    return app


def attach(app: FastAPI, store: Store, settings: ServeSettings) -> None:
    """Let an application work on a store, with nothing left of another one."""
    app.state.store, app.state.settings, app.state.desk = store, settings, Desk(store, wish)
    app.state.token, app.state.gate = settings.token, Gate()


def ready_for_one(store: Store) -> None:
    """For `--open`: the local person, who leads all there is and judges what nobody else does."""
    with store.write() as tx:
        you = people.ensure(tx, LOCAL, "You", admin=True)
        for project in every_project(tx):
            if not any(row["role"] == "assessor" and row["person"] != you.id and not row["departed_at"]
                       for row in members(tx, project)):  # fmt: skip
                assigning.work_alone(tx, project, you)


def _health(request: Request) -> dict[str, str]:
    """For monitoring of the server: it runs, and its database answers."""
    with store_of(request).read() as tx:
        people.anybody(tx)
    return {"state": "fine"}


def _let_in(request: Request, token: str = "") -> RedirectResponse:
    """Trade the one-time token for a login, then go to the first page."""
    want = request.app.state.token
    if want is None or not hmac.compare_digest(token.encode("utf-8", "replace"), want.encode()):
        raise HTTPException(404, "This address was used already; take the one that is printed now.")
    request.app.state.token = None
    with store_of(request).write() as tx:
        person = people.by_login(tx, LOCAL)
        assert person is not None
        cookie, _ = logins.start(tx, person)
    response = RedirectResponse("/", status_code=303)
    set_login_cookie(request, response, cookie)
    return response


def _say(request: Request, error: Exception) -> JSONResponse:
    """Errors of users, in one line; a repeated answer is no error."""
    if isinstance(error, Repeated):
        return JSONResponse(jsonable_encoder(error.state))
    detail = " ".join(str(error).split())
    if isinstance(error, Conflict):
        return JSONResponse({"detail": detail, "state": jsonable_encoder(error.state)}, 409)
    return JSONResponse({"detail": detail}, status_of(error), headers_of(error))


def _say_invalid(request: Request, error: Exception) -> JSONResponse:
    """What does not fit, and where; what was sent is not repeated: it may be a password."""
    assert isinstance(error, RequestValidationError)
    found = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:20]]
    detail = "; ".join(found).encode("utf-8", "replace").decode()
    return JSONResponse({"detail": detail}, 422)


def _say_late(request: Request, error: Exception) -> JSONResponse:
    """Two people made the same thing at once, and the database took the other's."""
    return JSONResponse({"detail": "Somebody was just faster; look again, and try again."}, 409)
