"""Coming in and going out: sign-in, invitation, password."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData

from firstpage.errors import FirstpageError
from firstpage.web import sign_in
from firstpage.web.pages.rendering import Form, PageRoute, field, go, here, render, sentence
from firstpage.web.security import (
    LoggedIn,
    MaybeLogin,
    device_of,
    drop_login_cookie,
    gate_of,
    headers_of,
    let_in,
    network_of,
    session_of,
    status_of,
    store_of,
)
from firstpage.web.store import invitations, logins
from firstpage.web.store.invitations import Invitation

router = APIRouter(route_class=PageRoute, include_in_schema=False)
LONGEST = 600  # characters of a password field or a link; what is longer cannot be right


@router.get("/login")
def login_page(request: Request, login: MaybeLogin, next: str = "/") -> Response:
    if login is not None:
        return go(here(next))
    return render(request, "login.html", next=here(next), given="")


@router.post("/login")
async def log_in(request: Request, form: Form, before: MaybeLogin) -> Response:
    """A wrong password says no more than that, and keeps the login typed in."""
    login, target = field(form, "login"), here(form.get("next"))
    source = await device_of(request, login)
    try:
        entered = await gate_of(request).run(
            source, sign_in.log_in, store_of(request), login, _secret(form, "password"), source,
            before,
        )  # fmt: skip
    except FirstpageError as error:
        return await _again(request, "login.html", error, next=target, given=login)
    response = go(target)
    let_in(request, response, entered)
    return response


@router.post("/logout")
def log_out(request: Request, form: Form, login: LoggedIn) -> Response:
    with store_of(request).write() as tx:
        logins.end(tx, login.id)
    response = go("/login", "out")
    drop_login_cookie(response)
    return response


@router.get("/invitation/{token}")
def invited(request: Request, token: str) -> Response:
    """What the link offers; to join as who one is, or with a new account."""
    offer = _offer(request, token, "join")
    return render(request, "invitation.html", invitation=offer, given={"login": "", "name": ""})


@router.post("/invitation/{token}")
async def accept(request: Request, token: str, form: Form, login: MaybeLogin) -> Response:
    given = {"login": field(form, "login"), "name": field(form, "name")}
    try:
        entered = await gate_of(request).run(
            session_of(request, login) if login else network_of(request),
            sign_in.accept, store_of(request), token[:LONGEST], **given,
            password=_secret(form, "password"), person=login.person if login else None,
        )  # fmt: skip
    except FirstpageError as error:
        offer = await run_in_threadpool(_offer, request, token, "join")
        return await _again(request, "invitation.html", error, invitation=offer, given=given)
    response = go(f"/p/{entered.project.slug}" if entered.project else "/")
    let_in(request, response, entered)
    return response


@router.get("/reset/{token}")
def reset_page(request: Request, token: str) -> Response:
    return render(request, "reset.html", account=_offer(request, token, "reset").login)


@router.post("/reset/{token}")
async def reset(request: Request, token: str, form: Form) -> Response:
    try:
        entered = await gate_of(request).run(
            network_of(request), sign_in.reset, store_of(request), token[:LONGEST],
            _secret(form, "password"),
        )  # fmt: skip
    except FirstpageError as error:
        offer = await run_in_threadpool(_offer, request, token, "reset")
        return await _again(request, "reset.html", error, account=offer.login)
    response = go("/login", "reset")
    let_in(request, response, entered)
    return response


@router.get("/account")
def account(request: Request, login: LoggedIn) -> Response:
    return render(request, "account.html")


@router.post("/account/password")
async def change_password(request: Request, form: Form, login: LoggedIn) -> Response:
    source = session_of(request, login)
    try:
        entered = await gate_of(request).run(
            source, sign_in.change_password, store_of(request), login, _secret(form, "old"),
            _secret(form, "new"), source,
        )  # fmt: skip
    except FirstpageError as error:
        return await _again(request, "account.html", error)
    response = go("/account", "password")
    let_in(request, response, entered)
    return response


def _secret(form: FormData, name: str) -> str:
    return str(form.get(name) or "")[:LONGEST]


def _offer(request: Request, token: str, kind: str) -> Invitation:
    with store_of(request).read() as tx:
        return invitations.look(tx, token[:LONGEST], kind)


async def _again(
    request: Request, template: str, error: FirstpageError, **context: Any
) -> Response:
    """Show the form again with what is wrong, and when to try again."""
    status = status_of(error)
    page = await run_in_threadpool(
        render, request, template, problem=sentence(error),
        status=status if status in (429, 503) else 400, **context,
    )  # fmt: skip
    page.headers.update(headers_of(error))
    return page
