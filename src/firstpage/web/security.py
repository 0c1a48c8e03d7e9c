"""Who is asking, and may they: cookies, tokens against forgery, roles.

What somebody may not know exists is not there for them (404).  Every change needs the login's
own token: in the header `X-CSRF-Token`, or in a form's hidden field `csrf`.
The API and the pages share how a user's error is answered: its status, and when to try again.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Header, HTTPException, Path, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from firstpage.web import sign_in
from firstpage.web.sign_in import Crowded, Entered, Gate, WrongLogin
from firstpage.web.store import attempts, logins, projects
from firstpage.web.store.attempts import Source, TooMany
from firstpage.web.store.connect import Busy, Store
from firstpage.web.store.judging import Desk
from firstpage.web.store.logins import Login
from firstpage.web.store.people import Person
from firstpage.web.store.projects import Member
from firstpage.web.store.sessions import NotThere

STATUS: dict[type[Exception], int] = {
    NotThere: 404,
    WrongLogin: 401,
    TooMany: 429,
    Crowded: 503,
    Busy: 503,
}  # any other mistake of a user is a 400
RETRY_AFTER = 2  # seconds, where the error does not say


def status_of(error: Exception) -> int:
    """Return the HTTP status of an error."""
    return next((code for kind, code in STATUS.items() if isinstance(error, kind)), 400)


def headers_of(error: Exception) -> dict[str, str]:
    """Return what is sent along: with "later" comes how much later."""
    if status_of(error) not in (429, 503):
        return {}
    return {"Retry-After": str(getattr(error, "retry_after", RETRY_AFTER))}


COOKIE = "firstpage_login"
GUEST = "firstpage_guest"  # lets forms of people who are not logged in carry a token too
FORGED = "This request did not come from our own pages; reload the page and try again."


@dataclass(frozen=True)
class ServeSettings:
    """How the application is served.

    `open`: one person on this machine, no accounts; `token` lets their browser in, once.
    `hosts`: names under which the server may be addressed, beside this machine's own.
    `proxy`: believe the proxy in front about address and https.  Limits are bytes.
    `connections`: open at the same time; more take the place of silent ones.
    `seconds`: that we wait for a body, beside what came of it over `rate` bytes per second.
    """

    open: bool = False
    token: str | None = None
    hosts: tuple[str, ...] = ()
    proxy: bool = False
    upload: int = 64 << 20
    unpacked: int = 512 << 20
    body: int = 1 << 20
    connections: int = 1000
    seconds: float = 10.0
    rate: float = 16 << 10


def store_of(request: Request) -> Store:
    return cast(Store, request.app.state.store)


def desk_of(request: Request) -> Desk:
    return cast(Desk, request.app.state.desk)


def gate_of(request: Request) -> Gate:
    return cast(Gate, request.app.state.gate)


def settings_of(request: Request) -> ServeSettings:
    return cast(ServeSettings, request.app.state.settings)


def current_login(request: Request) -> Login | None:
    """The session of the cookie, if it has one."""
    token = request.cookies.get(COOKIE)
    if not token or len(token) > 200:
        return None
    store = store_of(request)
    with store.read() as tx:
        found = logins.find(tx, token)
    if found is not None and found.stale:
        with store.write() as tx:
            logins.touch(tx, found.id)
    return found


MaybeLogin = Annotated[Login | None, Depends(current_login)]


def needed_login(login: MaybeLogin) -> Login:
    if login is None:
        raise HTTPException(401, "Please log in first.")
    return login


LoggedIn = Annotated[Login, Depends(needed_login)]


def current_person(login: LoggedIn) -> Person:
    """Who is logged in; 401 if nobody is."""
    return login.person


CurrentPerson = Annotated[Person, Depends(current_person)]


def csrf_header(
    login: LoggedIn, x_csrf_token: Annotated[str | None, Header(max_length=200)] = None
) -> Login:
    """For the JSON API: the login, if the header carries its token."""
    if not _same(x_csrf_token or "", login.csrf):
        raise HTTPException(403, FORGED)
    return login


def same_csrf(request: Request, login: Login) -> None:
    """The same, where a login is there but not needed."""
    csrf_header(login, request.headers.get("x-csrf-token"))


def csrf_token(request: Request, login: MaybeLogin) -> str:
    """For pages: what their forms and their meta tag must carry.

    Without a login it belongs to a cookie of its own, which another site can neither read nor set.
    """
    if login is not None:
        return login.csrf
    guest = request.cookies.get(GUEST) or getattr(request.state, "guest", None)
    if not guest:
        guest = secrets.token_urlsafe(32)
        request.state.guest = guest  # the middleware sets the cookie
    return _guest_csrf(guest)


def expected_csrf(request: Request, login: Login | None) -> str:
    """What a form of this browser must carry; empty where it has been given none."""
    if login is not None:
        return login.csrf
    guest = request.cookies.get(GUEST)
    return _guest_csrf(guest) if guest else ""


async def csrf_form(request: Request, login: MaybeLogin) -> FormData:
    """For pages: the form that was sent, if its field `csrf` is the right one."""
    form = await request.form()
    want = expected_csrf(request, login)
    given = form.get("csrf")
    if not want or not isinstance(given, str) or not _same(given, want):
        raise HTTPException(403, FORGED)
    return form


SlugPath = Annotated[str, Path(pattern=r"^[a-z0-9][a-z0-9\-]{0,63}$")]


def member_of(request: Request, slug: SlugPath, person: CurrentPerson) -> Member:
    """The asking person's place in the project; 404 if they have none."""
    with store_of(request).read() as tx:
        found = projects.member(tx, slug, person)
    if found is None:
        raise HTTPException(404, "There is no such project.")
    return found


def lead_of(member: Annotated[Member, Depends(member_of)]) -> Member:
    """The same for leads only; an assessor knows the project, so 403."""
    if not member.leads:
        raise HTTPException(403, "Only a lead of this project may do this.")
    return member


def admin_of(person: CurrentPerson) -> Person:
    """Return who is asking, if they see to the whole server."""
    if not person.admin:
        raise HTTPException(403, "Only an admin may do this.")
    return person


Admin = Annotated[Person, Depends(admin_of)]
Anyone = Annotated[Member, Depends(member_of)]
Lead = Annotated[Member, Depends(lead_of)]


def set_login_cookie(request: Request, response: Response, token: str) -> None:
    """Hand a session to the browser."""
    _set_cookie(request, response, COOKIE, token, logins.DAYS)


def let_in(request: Request, response: Response, entered: Entered) -> None:
    """Hand the browser what it received by coming in."""
    if entered.token is not None:
        set_login_cookie(request, response, entered.token)
    if entered.device is not None:
        _set_cookie(request, response, *entered.device, sign_in.DAYS)


def _set_cookie(request: Request, response: Response, name: str, value: str, days: int) -> None:
    """Set it out of reach of scripts and of other sites' forms; over https only, where we are."""
    response.set_cookie(
        name, value, max_age=days * 86400, httponly=True, samesite="lax",
        secure=request.url.scheme == "https", path="/",
    )  # fmt: skip


def drop_login_cookie(response: Response) -> None:
    response.delete_cookie(COOKIE, path="/")


def address_of(request: Request) -> str:
    """Return where a request comes from, for the audit."""
    return request.client.host[:64] if request.client else "unknown"


def network_of(request: Request) -> Source:
    """Return where somebody who is not signed in comes from, for limits."""
    return attempts.network(address_of(request))


def session_of(request: Request, login: Login) -> Source:
    """Return the source of somebody who is signed in: their own session."""
    return Source(address_of(request), f"session {login.id}", known=True)


async def device_of(request: Request, login: str) -> Source:
    """Return the source of a sign-in: a device that the account knows, or the network."""
    return await run_in_threadpool(
        sign_in.source, store_of(request), login, address_of(request), request.cookies
    )


def _guest_csrf(guest: str) -> str:
    return hashlib.sha256(f"guest:{guest}".encode("utf-8", "replace")).hexdigest()


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
