"""Coming in and going out: login, invitation, password."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from firstpage.errors import FirstpageError
from firstpage.web import entry
from firstpage.web.pages.shell import Form, PageRoute, field, go, here, render, sentence
from firstpage.web.security import (
    LoggedIn,
    MaybeLogin,
    address_of,
    drop_login_cookie,
    set_login_cookie,
    store_of,
)
from firstpage.web.store import invitations, logins

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/login")
def login_page(request: Request, login: MaybeLogin, next: str = "/") -> Response:
    if login is not None:
        return go(here(next))
    return render(request, "login.html", next=here(next), given="")


@router.post("/login")
def log_in(request: Request, form: Form, before: MaybeLogin) -> Response:
    """A wrong password says no more than that, and keeps the login typed in."""
    login, target = field(form, "login"), here(form.get("next"))
    password = form.get("password")
    try:
        token, _ = entry.log_in(
            store_of(request), login, str(password or "")[:600], address_of(request), before
        )
    except FirstpageError as error:
        return render(
            request, "login.html", status=400, next=target, given=login, problem=sentence(error)
        )
    response = go(target)
    set_login_cookie(request, response, token)
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
    with store_of(request).read() as tx:
        offer = invitations.look(tx, token[:200], "join")
    return render(request, "invitation.html", invitation=offer, given={"login": "", "name": ""})


@router.post("/invitation/{token}")
def accept(request: Request, token: str, form: Form, login: MaybeLogin) -> Response:
    given = {"login": field(form, "login"), "name": field(form, "name")}
    try:
        cookie, project = entry.accept(
            store_of(request), token[:200], **given,
            password=str(form.get("password") or "")[:600],
            person=login.person if login else None,
        )  # fmt: skip
    except FirstpageError as error:
        with store_of(request).read() as tx:
            offer = invitations.look(tx, token[:200], "join")
        return render(
            request, "invitation.html", status=400, invitation=offer, given=given,
            problem=sentence(error),
        )  # fmt: skip
    response = go(f"/p/{project.slug}" if project else "/")
    if cookie is not None:
        set_login_cookie(request, response, cookie)
    return response


@router.get("/reset/{token}")
def reset_page(request: Request, token: str) -> Response:
    with store_of(request).read() as tx:
        invitations.look(tx, token[:200], "reset")
    return render(request, "reset.html")


@router.post("/reset/{token}")
def reset(request: Request, token: str, form: Form) -> Response:
    try:
        entry.reset(store_of(request), token[:200], str(form.get("password") or "")[:600])
    except FirstpageError as error:
        return render(request, "reset.html", status=400, problem=sentence(error))
    return go("/login", "reset")


@router.get("/account")
def account(request: Request, login: LoggedIn) -> Response:
    return render(request, "account.html")


@router.post("/account/password")
def change_password(request: Request, form: Form, login: LoggedIn) -> Response:
    old, new = (str(form.get(name) or "")[:600] for name in ("old", "new"))
    try:
        entry.change_password(store_of(request), login, old, new, address_of(request))
    except FirstpageError as error:
        return render(request, "account.html", status=400, problem=sentence(error))
    return go("/account", "password")
