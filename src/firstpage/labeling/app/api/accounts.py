"""Accounts: sign in and out, accept an invitation, change passwords, delete data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from msgspec import structs
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from firstpage.core.http import json_response
from firstpage.labeling.app import sign_in
from firstpage.labeling.app.admission import ACCOUNT, LOGIN, PUBLIC, api_routes
from firstpage.labeling.app.api import bodies
from firstpage.labeling.app.security import (
    check_csrf,
    delete_login_cookie,
    device_of,
    network_of,
    run_sign_in,
    session_of,
    signed_in,
    store_of,
)
from firstpage.labeling.app.store import deletion, invitations, logins, people, projects, tokens
from firstpage.labeling.app.store.connect import Tx
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.people import Person
from firstpage.labeling.app.store.sessions import NotFound

routes = api_routes("people", admit=ACCOUNT)
SIGN_IN_REFUSALS = {
    401: "The login or the password is wrong.",
    429: "There were too many attempts; Retry-After says when to try again.",
}


@routes.post("/login", statuses=SIGN_IN_REFUSALS, **PUBLIC)
async def log_in(request: Request, before: Login | None, body: bodies.LoginBody) -> Response:
    """Sign in: set a cookie, and return the token that changes must send as `X-CSRF-Token`."""
    source = await device_of(request, body.login)
    secrets = body.login, body.password
    result = await run_sign_in(request, source, sign_in.log_in, *secrets, source, before)
    assert result.login is not None
    return signed_in(request, json_response(me(request, result.login)), result)


@routes.get("/me", admit=LOGIN)
def me(request: Request, login: Login) -> dict[str, Any]:
    """Return the signed-in person, and the token for changes."""
    return {**asdict(login.person), "csrf": login.csrf}


@routes.post("/logout", status=204)
def log_out(request: Request, login: Login) -> Response:
    """End this session."""
    with store_of(request).write() as tx:
        logins.end(tx, login.id)
    response = Response(status_code=204)
    delete_login_cookie(response)
    return response


@routes.post("/password", status=204)
async def change_password(request: Request, login: Login, body: bodies.PasswordBody) -> Response:
    """Change one's own password; other sessions end."""
    source = session_of(request, login)
    secrets = body.old, body.new
    result = await run_sign_in(request, source, sign_in.change_password, login, *secrets, source)
    return signed_in(request, Response(status_code=204), result)


@routes.get("/tokens")
def api_tokens(request: Request, login: Login) -> dict[str, Any]:
    """Return one's own API tokens without their secrets, newest first."""
    with store_of(request).read() as tx:
        return {"tokens": [asdict(token) for token in tokens.listed(tx, login.person.id)]}


@routes.post("/tokens", status=201)
def create_token(request: Request, login: Login, body: bodies.TokenBody) -> dict[str, Any]:
    """Create an API token of one's own; the response is the only one that contains it."""
    with store_of(request).write() as tx:
        secret, row = tokens.create(tx, login.person, body.name, body.scope, body.days)
    return {**asdict(row), "token": secret}


@routes.delete("/tokens/{token}", status=204)
def revoke_token(request: Request, login: Login, token: bodies.Id) -> None:
    """Revoke one of one's own API tokens."""
    with store_of(request).write() as tx:
        if not tokens.revoke(tx, token, login.person.id, login.person.id):
            raise NotFound("there is no such token.")


@routes.post("/invitations/accept", **PUBLIC)
async def accept(request: Request, login: Login | None, body: bodies.AcceptBody) -> Response:
    """Accept an invitation, as the signed-in person or with a new account."""
    if login is not None:
        check_csrf(request, login)
    source = session_of(request, login) if login else network_of(request)
    person = login.person if login else None
    fields = structs.asdict(body)
    result = await run_sign_in(request, source, sign_in.accept, person=person, **fields)
    response = json_response({"project": result.project.slug if result.project else None})
    return signed_in(request, response, result)


@routes.post("/reset", status=204, **PUBLIC)
async def reset(request: Request, login: Login | None, body: bodies.ResetBody) -> Response:
    """Set a new password with a link from a lead, and sign in."""
    source = network_of(request)
    secrets = body.token, body.password
    result = await run_sign_in(request, source, sign_in.reset, *secrets, login)
    return signed_in(request, Response(status_code=204), result)


@routes.post("/people/{person}/reset", status=201)
def reset_link(request: Request, login: Login, person: bodies.Id) -> dict[str, Any]:
    """Create a link to set a new password; for admins and for leads of the person."""
    with store_of(request).write() as tx:
        target = _managed(tx, login.person, person)
        return asdict(invitations.reset_link(tx, target, login.person))


@routes.delete("/people/{person}/data")
def delete_data(
    request: Request, login: Login, person: bodies.Id, body: bodies.DeleteBody
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
