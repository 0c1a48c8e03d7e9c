"""Authentication: the login of a request, its cookies and its CSRF tokens.

The API and the pages share the status codes and headers of user errors.  Who may do what is decided
in `firstpage.labeling.app.admission`.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Concatenate, ParamSpec, cast

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from firstpage.core.http import FORGED, equal_tokens, guest_csrf
from firstpage.labeling.app import programs, sign_in
from firstpage.labeling.app.analysis.analyst import Analyst
from firstpage.labeling.app.sign_in import SignInBusy, SignInPool, SignInResult, WrongLogin
from firstpage.labeling.app.store import Login, Store, attempts, logins
from firstpage.labeling.app.store.attempts import RequestSource, TooMany
from firstpage.labeling.app.store.failures import StoreUnavailable
from firstpage.labeling.app.store.judging import JudgingService
from firstpage.labeling.app.store.sessions import NotFound

STATUS: dict[type[Exception], int] = {
    NotFound: 404,
    WrongLogin: 401,
    TooMany: 429,
    SignInBusy: 503,
    StoreUnavailable: 503,
}  # any other user error is a 400
RETRY_AFTER = 2  # seconds, unless the error has its own


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error."""
    return next((code for kind, code in STATUS.items() if isinstance(error, kind)), 400)


def headers_of(error: Exception) -> dict[str, str]:
    """Return the headers of an error: `Retry-After` where trying again may help."""
    if status_of(error) not in (429, 503):
        return {}
    return {"Retry-After": str(getattr(error, "retry_after", RETRY_AFTER))}


P = ParamSpec("P")
COOKIE = "firstpage_login"
GUEST = "firstpage_guest"  # the CSRF token of people who are not signed in belongs to it


@dataclass(frozen=True)
class ServeSettings:
    """How the application is served.

    Attributes
    ----------
    single_user : bool
        A single user on this machine without accounts; `token` signs their browser in once.
    hosts : tuple of str
        Host names of the server, in addition to those of this machine.
    proxy : bool
        Whether to trust the address and scheme that a reverse proxy forwards.
    max_upload, max_unpacked, max_body : int
        Maximum bytes of an import, of one unpacked file, and of any other body.
    max_connections : int
        Maximum open connections; a new one replaces the one that is idle longest.
    body_timeout, min_body_rate : float
        Seconds to wait for a body, plus one second for every `min_body_rate` bytes received.
    separate_analysis : bool
        Whether pages of leads are computed in another process.
    auth_header : str, optional
        Header in which an authenticating proxy names the person.
    auth_from : tuple of str
        Addresses and networks of that proxy; the header is refused from all others.
    auth_create : bool
        Whether a person whom the proxy names gets an account if there is none.
    private_webhooks : bool
        Whether webhooks may have addresses that are not public.
    """

    single_user: bool = False
    token: str | None = None
    hosts: tuple[str, ...] = ()
    proxy: bool = False
    max_upload: int = 64 << 20
    max_unpacked: int = 512 << 20
    max_body: int = 1 << 20
    max_connections: int = 1000
    body_timeout: float = 10.0
    min_body_rate: float = 16 << 10
    separate_analysis: bool = False
    auth_header: str | None = None
    auth_from: tuple[str, ...] = ()
    auth_create: bool = False
    private_webhooks: bool = False


def store_of(request: Request) -> Store:
    return cast(Store, request.app.state.store)


def service_of(request: Request) -> JudgingService:
    return cast(JudgingService, request.app.state.judging_service)


def analyst_of(request: Request) -> Analyst:
    return cast(Analyst, request.app.state.analyst)


async def run_sign_in(
    request: Request,
    source: RequestSource,
    work: Callable[Concatenate[Store, P], SignInResult],
    *args: P.args,
    **kwargs: P.kwargs,
) -> SignInResult:
    """Run a function of `sign_in` on the store, on a thread that hashes passwords."""
    pool = cast(SignInPool, request.app.state.sign_in_pool)
    return await pool.run(source, work, store_of(request), *args, **kwargs)


def settings_of(request: Request) -> ServeSettings:
    return cast(ServeSettings, request.app.state.settings)


def current_login(request: Request) -> Login | None:
    """Return the login of a request; None if nobody is signed in.

    An API token comes first, then the header of an authenticating proxy, then the cookie: what a
    browser sends on its own never adds to what a program or a proxy may do.
    """
    api_token = programs.token_of(request)
    if api_token is not None:
        return programs.login_by_token(store_of(request), api_token, address_of(request))
    user = getattr(request.state, "remote_user", None)
    if user is not None:
        create = settings_of(request).auth_create
        return programs.login_by_proxy(store_of(request), user, create, address_of(request))
    return _login_by_cookie(request)


def _login_by_cookie(request: Request) -> Login | None:
    token = request.cookies.get(COOKIE)
    if not token or len(token) > 200:
        return None
    store = store_of(request)
    with store.read() as tx:
        login = logins.find(tx, token)
    if login is not None and login.stale:
        with suppress(StoreUnavailable), store.write() as tx:  # reading needs no writing
            logins.touch(tx, login.id)
    return login


def check_csrf(request: Request, login: Login) -> None:
    """Raise unless the header of a request has the CSRF token of its login (for the JSON API)."""
    if login.scope is not None:
        return  # an API token, which no browser sends on its own
    if not equal_tokens(request.headers.get("x-csrf-token", ""), login.csrf):
        raise HTTPException(403, FORGED)


def csrf_token(request: Request, login: Login | None) -> str:
    """Return the CSRF token of a page's forms and meta tag.

    Without a login it is derived from a guest cookie, which other sites can neither read nor set.
    """
    if login is not None:
        return login.csrf
    guest = request.cookies.get(GUEST) or getattr(request.state, "guest", None)
    if not guest:
        guest = secrets.token_urlsafe(32)
        request.state.guest = guest  # the middleware sets the cookie
    return guest_csrf(guest)


def form_csrf(request: Request) -> str:
    """Return the CSRF token that a form of an admitted request must have; empty if it has none."""
    login: Login | None = request.state.login
    if login is not None:
        return login.csrf
    guest = request.cookies.get(GUEST)
    return guest_csrf(guest) if guest else ""


def set_login_cookie(request: Request, response: Response, token: str) -> None:
    """Set the cookie of a session."""
    _set_cookie(request, response, COOKIE, token, logins.DAYS)


def signed_in(request: Request, response: Response, result: SignInResult) -> Response:
    """Return a response with the cookies of a sign-in: the session and the known device."""
    if result.token is not None:
        set_login_cookie(request, response, result.token)
    if result.device is not None:
        _set_cookie(request, response, *result.device, sign_in.DAYS)
    return response


def _set_cookie(request: Request, response: Response, name: str, value: str, days: int) -> None:
    """Set a cookie that scripts and other sites' forms cannot use; secure if served over https."""
    response.set_cookie(
        name,
        value,
        max_age=days * 86400,
        httponly=True,
        samesite="lax",
        secure=request.url.scheme == "https",
        path="/",
    )


def delete_login_cookie(response: Response) -> None:
    """Delete the cookie of the session."""
    response.delete_cookie(COOKIE, path="/")


def address_of(request: Request) -> str:
    """Return the address of a request, for the audit log."""
    return request.client.host[:64] if request.client else "unknown"


def network_of(request: Request) -> RequestSource:
    """Return the source of a request by somebody who is not signed in, for rate limits."""
    return attempts.network(address_of(request))


def session_of(request: Request, login: Login) -> RequestSource:
    """Return the source of a signed-in person's request: their session."""
    return RequestSource(address_of(request), f"session {login.id}", known=True)


async def device_of(request: Request, login: str) -> RequestSource:
    """Return the source of a sign-in: a known device of the account, or the network."""
    return await run_in_threadpool(
        sign_in.source, store_of(request), login, address_of(request), request.cookies
    )
