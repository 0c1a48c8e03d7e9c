"""The web application: the API, the frames of documents, and the pages."""

from __future__ import annotations

import hmac

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import RedirectResponse

from firstpage.core.http import Routes
from firstpage.labeling.app import frames, pages
from firstpage.labeling.app.admission import DEFAULTS
from firstpage.labeling.app.analysis.analyst import Analyst
from firstpage.labeling.app.analysis.choosing import choose_pair
from firstpage.labeling.app.api import reference
from firstpage.labeling.app.guard import RequestGuard
from firstpage.labeling.app.security import ServeSettings, set_login_cookie, store_of
from firstpage.labeling.app.sign_in import SignInPool
from firstpage.labeling.app.store import Store, assigning, logins, people, projects
from firstpage.labeling.app.store.judging import JudgingService

LOCAL = people.LOCAL
monitoring = Routes(DEFAULTS, hidden=True)
single_user = Routes(DEFAULTS, hidden=True)


def create_app(store: Store, settings: ServeSettings | None = None) -> Starlette:
    """Return the application on one store, whose tables exist."""
    settings = settings or ServeSettings()
    listed = [*reference.DESCRIBED, frames.routes, reference.routes, monitoring]
    if settings.single_user:
        listed.append(single_user)
    app = Starlette(
        routes=[*(route for group in listed for route in group), *pages.page_routes()],
        exception_handlers={HTTPException: pages.not_found},
        middleware=[Middleware(RequestGuard, settings=settings)],
    )
    attach(app, store, settings)
    return app


def attach(app: Starlette, store: Store, settings: ServeSettings) -> None:
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
        for project in projects.all_projects(tx):
            assessors = set(projects.present(tx, project.id, "assessor"))
            if assessors <= {user.id}:
                assigning.assign_to_single_person(tx, project, user)
            elif user.id not in assessors:
                assigned_to_others.append(project.slug)
    return assigned_to_others


@monitoring.get("/health")
def health(request: Request) -> dict[str, str]:
    """Report to monitoring that the server runs and its database answers."""
    with store_of(request).read() as tx:
        people.any_account(tx)
    return {"state": "fine"}


@single_user.get("/open")
def open_session(request: Request, token: str = "") -> RedirectResponse:
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
