"""People: log in and out, passwords."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from firstpage.web import entry
from firstpage.web.api.bodies import LoginBody
from firstpage.web.security import (
    LoggedIn,
    MaybeLogin,
    address_of,
    csrf_header,
    drop_login_cookie,
    set_login_cookie,
    store_of,
)
from firstpage.web.store import logins
from firstpage.web.store.logins import Login

router = APIRouter(tags=["people"])
Changing = Annotated[Login, Depends(csrf_header)]


@router.post("/login")
def log_in(
    request: Request, response: Response, body: LoginBody, before: MaybeLogin
) -> dict[str, Any]:
    """A cookie, and the token that every change must carry in `X-CSRF-Token`."""
    token, login = entry.log_in(
        store_of(request), body.login, body.password, address_of(request), before
    )
    set_login_cookie(request, response, token)
    return me(login)


@router.get("/me")
def me(login: LoggedIn) -> dict[str, Any]:
    """Who one is, and the token for changes."""
    person = login.person
    return {"id": person.id, "login": person.login, "name": person.name, "admin": person.admin,
            "csrf": login.csrf}  # fmt: skip


@router.post("/logout", status_code=204)
def log_out(request: Request, response: Response, login: Changing) -> None:
    with store_of(request).write() as tx:
        logins.end(tx, login.id)
    drop_login_cookie(response)
