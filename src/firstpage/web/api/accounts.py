"""People: log in and out, take up an invitation, passwords, deletion of data."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Depends, HTTPException, Request, Response

from firstpage.web import sign_in
from firstpage.web.admission import AdmissionRoute
from firstpage.web.api import bodies
from firstpage.web.security import (
    LoggedIn,
    MaybeLogin,
    csrf_header,
    device_of,
    drop_login_cookie,
    gate_of,
    let_in,
    network_of,
    same_csrf,
    session_of,
    store_of,
)
from firstpage.web.store import deletion, invitations, logins, people, projects
from firstpage.web.store.connect import Tx
from firstpage.web.store.logins import Login
from firstpage.web.store.people import Person
from firstpage.web.store.sessions import NotThere

router = APIRouter(tags=["people"], route_class=AdmissionRoute)
Changing = Annotated[Login, Depends(csrf_header)]


@router.post("/login")
async def log_in(
    request: Request, response: Response, body: bodies.LoginBody, before: MaybeLogin
) -> dict[str, Any]:
    """A cookie, and the token that every change must carry in `X-CSRF-Token`."""
    source = await device_of(request, body.login)
    entered = await gate_of(request).run(
        source, sign_in.log_in, store_of(request), body.login, body.password, source, before
    )
    let_in(request, response, entered)
    assert entered.login is not None
    return me(entered.login)


@router.get("/me")
def me(login: LoggedIn) -> dict[str, Any]:
    """Who one is, and the token for changes."""
    return {**asdict(login.person), "csrf": login.csrf}


@router.post("/logout", status_code=204)
def log_out(request: Request, response: Response, login: Changing) -> None:
    """End this session."""
    with store_of(request).write() as tx:
        logins.end(tx, login.id)
    drop_login_cookie(response)


@router.post("/password", status_code=204)
async def change_password(
    request: Request, response: Response, body: bodies.PasswordBody, login: Changing
) -> None:
    """Another password; one's other sessions end."""
    source = session_of(request, login)
    entered = await gate_of(request).run(
        source, sign_in.change_password, store_of(request), login, body.old, body.new, source
    )
    let_in(request, response, entered)


@router.post("/invitations/accept")
async def accept(
    request: Request, response: Response, body: bodies.AcceptBody, login: MaybeLogin
) -> dict[str, Any]:
    """Take up an invitation: as who is logged in, or with a new account, which is logged in."""
    if login is not None:
        same_csrf(request, login)
    entered = await gate_of(request).run(
        session_of(request, login) if login else network_of(request),
        sign_in.accept, store_of(request), body.token, login=body.login, name=body.name,
        password=body.password, person=login.person if login else None,
    )  # fmt: skip
    let_in(request, response, entered)
    return {"project": entered.project.slug if entered.project else None}


@router.post("/reset", status_code=204)
async def reset(request: Request, response: Response, body: bodies.ResetBody) -> None:
    """Set a new password by a link that the lead handed out."""
    entered = await gate_of(request).run(
        network_of(request), sign_in.reset, store_of(request), body.token, body.password
    )
    let_in(request, response, entered)


@router.post("/people/{person}/reset", status_code=201)
def reset_link(request: Request, person: bodies.Id, login: Changing) -> dict[str, Any]:
    """A link for somebody who forgot the password; for an admin, or their lead."""
    with store_of(request).write() as tx:
        whom = _managed(tx, login.person, person)
        return asdict(invitations.reset_link(tx, whom, login.person))


@router.delete("/people/{person}/data")
def delete_data(
    request: Request, person: bodies.Id, body: bodies.DeleteBody, login: Changing
) -> dict[str, int]:
    """Delete the account; judgments are removed, or stay without a name."""
    with store_of(request).write() as tx:
        whom = _managed(tx, login.person, person)
        if whom.id == login.person.id:
            raise HTTPException(400, "You cannot delete yourself; another admin can.")
        return deletion.forget(tx, whom, body.judgments, login.person)


def _managed(tx: Tx, by: Person, person: int) -> Person:
    """Somebody whom `by` may manage; for all others there is no such person."""
    whom = people.get(tx, person)
    if whom is None or not projects.may_manage(tx, by, whom):
        raise NotThere("there is no such person.")
    return whom
