"""The web application: the API, the frames of documents, and the pages."""

from __future__ import annotations

import hmac

from fastapi import FastAPI, HTTPException, Request
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse
from sqlalchemy.exc import IntegrityError

from firstpage import __version__
from firstpage.core import FirstpageError, plain_text
from firstpage.labeling.app import frames, pages
from firstpage.labeling.app.analysis.analyst import Analyst
from firstpage.labeling.app.analysis.choosing import choose_pair
from firstpage.labeling.app.api import (
    accounts,
    admin,
    analysis,
    assignment,
    judging,
    projects,
    reference,
    team,
    webhooks,
)
from firstpage.labeling.app.guard import RequestGuard
from firstpage.labeling.app.security import (
    ServeSettings,
    headers_of,
    set_login_cookie,
    status_of,
    store_of,
)
from firstpage.labeling.app.sign_in import SignInPool
from firstpage.labeling.app.store import assigning, logins, people
from firstpage.labeling.app.store.connect import Store
from firstpage.labeling.app.store.judging import JudgingService, RepeatedRequest
from firstpage.labeling.app.store.projects import all_projects
from firstpage.labeling.app.store.sessions import Conflict

LOCAL = people.LOCAL
API = "/api/v1"


def create_app(store: Store, settings: ServeSettings | None = None) -> FastAPI:
    """Return the application on one store, whose tables exist."""
    settings = settings or ServeSettings()
    app = FastAPI(
        title="Firstpage",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        openapi_url=f"{API}/openapi.json",
        description="Judge documents per query, measure agreement, and export the labels.",
    )
    attach(app, store, settings)
    app.include_router(judging.task_router, prefix=API)  # first, as routes are tried in order
    for module in (accounts, judging, projects, team, assignment, analysis, webhooks, admin):
        app.include_router(module.router, prefix=API)
    app.include_router(frames.router)
    reference.serve(app, f"{API}/docs")
    app.add_api_route("/health", _health, include_in_schema=False)
    if settings.single_user:
        app.add_api_route("/open", _open_session, include_in_schema=False)
    app.include_router(pages.router)
    pages.install(app)
    app.add_exception_handler(FirstpageError, _error_response)
    app.add_exception_handler(RepeatedRequest, _error_response)
    app.add_exception_handler(RequestValidationError, _invalid_response)
    app.add_exception_handler(IntegrityError, _conflict_response)
    app.add_middleware(RequestGuard, settings=settings)
    return app


def attach(app: FastAPI, store: Store, settings: ServeSettings) -> None:
    """Attach an application to a store, with no state of another one."""
    app.state.store, app.state.settings = store, settings
    app.state.judging_service = JudgingService(store, choose_pair)
    app.state.analyst = Analyst(store, settings.separate_analysis)
    app.state.token, app.state.sign_in_pool = settings.token, SignInPool()


def prepare_single_user(store: Store) -> list[str]:
    """Prepare `--open`: the local user leads all projects, and judges those without assessors.

    Returns the names of projects that only others judge.
    """
    assigned_to_others = []
    with store.write() as tx:
        user = people.ensure(tx, LOCAL, "You", admin=True)
        for project in all_projects(tx):
            assessors = set(assigning.present_assessors(tx, project))
            if assessors <= {user.id}:
                assigning.assign_to_single_person(tx, project, user)
            elif user.id not in assessors:
                assigned_to_others.append(project.slug)
    return assigned_to_others


def _health(request: Request) -> dict[str, str]:
    """Report to monitoring that the server runs and its database answers."""
    with store_of(request).read() as tx:
        people.any_account(tx)
    return {"state": "fine"}


def _open_session(request: Request, token: str = "") -> RedirectResponse:
    """Exchange the one-time token for a login, then redirect to the home page."""
    expected = request.app.state.token
    if expected is None or not hmac.compare_digest(
        token.encode("utf-8", "replace"), expected.encode()
    ):
        raise HTTPException(404, "This address was used already; restart to print a new one.")
    request.app.state.token = None
    with store_of(request).write() as tx:
        person = people.by_login(tx, LOCAL)
        assert person is not None
        cookie, _ = logins.start(tx, person)
    response = RedirectResponse("/", status_code=303)
    set_login_cookie(request, response, cookie)
    return response


def _error_response(request: Request, error: Exception) -> JSONResponse:
    """Return a user error in one line; a repeated answer is not an error."""
    if isinstance(error, RepeatedRequest):
        return JSONResponse(jsonable_encoder(error.state))
    detail = plain_text(error)
    if isinstance(error, Conflict):
        return JSONResponse({"detail": detail, "state": jsonable_encoder(error.state)}, 409)
    return JSONResponse({"detail": detail}, status_of(error), headers_of(error))


def _invalid_response(request: Request, error: Exception) -> JSONResponse:
    """Return what is invalid, and where; values are not repeated, they may be passwords."""
    assert isinstance(error, RequestValidationError)
    problems = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()[:20]]
    detail = "; ".join(problems).encode("utf-8", "replace").decode()
    return JSONResponse({"detail": detail}, 422)


def _conflict_response(request: Request, error: Exception) -> JSONResponse:
    """Report that a concurrent request created the same row first."""
    return JSONResponse(
        {"detail": "Another request changed this at the same time; reload and try again."}, 409
    )
