"""Accounts: sign in and out, accept an invitation, change passwords, delete data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response

from firstpage.labeling.app import sign_in
from firstpage.labeling.app.admission import AdmissionRoute
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.security import (
    LoggedIn,
    OptionalLogin,
    check_csrf,
    csrf_header,
    delete_login_cookie,
    device_of,
    network_of,
    session_of,
    set_sign_in_cookies,
    sign_in_pool_of,
    store_of,
)
from firstpage.labeling.app.store import deletion, invitations, logins, people, projects, tokens
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.sessions import NotFound

router = APIRouter(tags=["people"], route_class=AdmissionRoute)
Changing = Annotated[Login, Depends(csrf_header)]


@router.post("/login")
async def log_in(
    request: Request, response: Response, body: bodies.LoginBody, before: OptionalLogin
) -> dict[str, Any]:
    """Sign in: set a cookie, and return the token that changes must send as `X-CSRF-Token`."""
    source = await device_of(request, body.login)
    result = await sign_in_pool_of(request).run(
        source, sign_in.log_in, store_of(request), body.login, body.password, source, before
    )
    set_sign_in_cookies(request, response, result)
    assert result.login is not None
    return me(result.login)


@router.get("/me")
def me(login: LoggedIn) -> dict[str, Any]:
    """Return the signed-in person, and the token for changes."""
    return {**asdict(login.person), "csrf": login.csrf}


@router.post("/logout", status_code=204)
def log_out(request: Request, response: Response, login: Changing) -> None:
    """End this session."""
    with store_of(request).write() as tx:
        logins.end(tx, login.id)
    delete_login_cookie(response)


@router.post("/password", status_code=204)
async def change_password(
    request: Request, response: Response, body: bodies.PasswordBody, login: Changing
) -> None:
    """Change one's own password; other sessions end."""
    source = session_of(request, login)
    result = await sign_in_pool_of(request).run(
        source, sign_in.change_password, store_of(request), login, body.old, body.new, source
    )
    set_sign_in_cookies(request, response, result)


@router.get("/tokens")
def api_tokens(request: Request, login: LoggedIn) -> dict[str, Any]:
    """Return one's own API tokens without their secrets, newest first."""
    with store_of(request).read() as tx:
        return {"tokens": [asdict(token) for token in tokens.listed(tx, login.person.id)]}


@router.post("/tokens", status_code=201)
def create_token(request: Request, body: bodies.TokenBody, login: Changing) -> dict[str, Any]:
    """Create an API token of one's own; the response is the only one that contains it."""
    with store_of(request).write() as tx:
        secret, row = tokens.create(tx, login.person, body.name, body.scope, body.days)
    return {**asdict(row), "token": secret}


@router.delete("/tokens/{token}", status_code=204)
def revoke_token(request: Request, token: bodies.Id, login: Changing) -> None:
    """Revoke one of one's own API tokens."""
    with store_of(request).write() as tx:
        if not tokens.revoke(tx, token, login.person.id, login.person.id):
            raise NotFound("there is no such token.")


@router.post("/invitations/accept")
async def accept(
    request: Request, response: Response, body: bodies.AcceptBody, login: OptionalLogin
) -> dict[str, Any]:
    """Accept an invitation, as the signed-in person or with a new account."""
    if login is not None:
        check_csrf(request, login)
    result = await sign_in_pool_of(request).run(
        session_of(request, login) if login else network_of(request),
        sign_in.accept,
        store_of(request),
        body.token,
        login=body.login,
        name=body.name,
        password=body.password,
        person=login.person if login else None,
    )
    set_sign_in_cookies(request, response, result)
    return {"project": result.project.slug if result.project else None}


@router.post("/reset", status_code=204)
async def reset(request: Request, response: Response, body: bodies.ResetBody) -> None:
    """Set a new password with a link from a lead."""
    result = await sign_in_pool_of(request).run(
        network_of(request), sign_in.reset, store_of(request), body.token, body.password
    )
    set_sign_in_cookies(request, response, result)


@router.post("/people/{person}/reset", status_code=201)
def reset_link(request: Request, person: bodies.Id, login: Changing) -> dict[str, Any]:
    """Create a link to set a new password; for admins and for leads of the person."""
    with store_of(request).write() as tx:
        target = _managed(tx, login.person, person)
        return asdict(invitations.reset_link(tx, target, login.person))


@router.delete("/people/{person}/data")
def delete_data(
    request: Request, person: bodies.Id, body: bodies.DeleteBody, login: Changing
) -> dict[str, int]:
    """Delete an account; judgments are removed or anonymized."""
    with store_of(request).write() as tx:
        target = _managed(tx, login.person, person)
        if target.id == login.person.id:
            raise HTTPException(400, "You cannot delete your own account; another admin can.")
        return deletion.forget(tx, target, body.judgments, login.person)


def _managed(tx: Tx, by: Person, person: int) -> Person:
    """Return a person whom `by` may manage; all others are reported as not found."""
    target = people.get(tx, person)
    if target is None or not projects.may_manage(tx, by, target):
        raise NotFound("there is no such person.")
    return target
