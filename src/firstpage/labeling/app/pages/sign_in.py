"""Pages to sign in and out, accept an invitation, and change a password."""

from __future__ import annotations

from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import Response

from firstpage.core import DataError, FirstpageError
from firstpage.core.http import sentence
from firstpage.labeling.app import sign_in
from firstpage.labeling.app.pages.rendering import (
    LOGIN,
    PUBLIC,
    field,
    local_path,
    page_routes,
    redirect,
    render,
)
from firstpage.labeling.app.security import (
    delete_login_cookie,
    device_of,
    headers_of,
    network_of,
    run_sign_in,
    session_of,
    signed_in,
    status_of,
    store_of,
)
from firstpage.labeling.app.store import Login, invitations, logins, tokens
from firstpage.labeling.app.store.invitations import Invitation
from firstpage.labeling.app.store.sessions import NotFound

routes = page_routes(LOGIN)
MAX_LENGTH = 600  # characters of a password or a token


@routes.get("/login", **PUBLIC)
def login_page(request: Request, login: Login | None, next: str = "/") -> Response:
    if login is not None:
        return redirect(local_path(next))
    return render(request, "login.html", next=local_path(next), login_value="")


@routes.post("/login", **PUBLIC)
async def log_in(request: Request, before: Login | None, form: FormData) -> Response:
    """Sign in; after a failure the form is shown again with the login filled in."""
    login, target = field(form, "login"), local_path(form.get("next"))
    source = await device_of(request, login)
    try:
        password = _secret(form, "password")
        result = await run_sign_in(request, source, sign_in.log_in, login, password, source, before)
    except FirstpageError as error:
        return await _retry_form(request, "login.html", error, next=target, login_value=login)
    return signed_in(request, redirect(target), result)


@routes.post("/logout")
def log_out(request: Request, login: Login, form: FormData) -> Response:
    with store_of(request).write() as tx:
        logins.end(tx, login.id)
    response = redirect("/login", "out")
    delete_login_cookie(response)
    return response


@routes.get("/invitation/{token}", **PUBLIC)
def invited(request: Request, login: Login | None, token: str) -> Response:
    """Show an invitation, to be accepted as the signed-in person or with a new account."""
    offer = _offer(request, token, "join")
    return render(request, "invitation.html", invitation=offer, values={"login": "", "name": ""})


@routes.post("/invitation/{token}", **PUBLIC)
async def accept(request: Request, login: Login | None, token: str, form: FormData) -> Response:
    values = {"login": field(form, "login"), "name": field(form, "name")}
    try:
        source = session_of(request, login) if login else network_of(request)
        fields = {**values, "token": token[:MAX_LENGTH], "password": _secret(form, "password")}
        person = login.person if login else None
        result = await run_sign_in(request, source, sign_in.accept, person=person, **fields)
    except FirstpageError as error:
        offer = await run_in_threadpool(_offer, request, token, "join")
        return await _retry_form(request, "invitation.html", error, invitation=offer, values=values)
    page = f"/p/{result.project.slug}" if result.project else "/"
    return signed_in(request, redirect(page), result)


@routes.get("/reset/{token}", **PUBLIC)
def reset_page(request: Request, login: Login | None, token: str) -> Response:
    return render(request, "reset.html", account=_offer(request, token, "reset").login)


@routes.post("/reset/{token}", **PUBLIC)
async def reset(request: Request, login: Login | None, token: str, form: FormData) -> Response:
    try:
        secrets = token[:MAX_LENGTH], _secret(form, "password")
        result = await run_sign_in(request, network_of(request), sign_in.reset, *secrets, login)
    except FirstpageError as error:
        offer = await run_in_threadpool(_offer, request, token, "reset")
        return await _retry_form(request, "reset.html", error, account=offer.login)
    return signed_in(request, redirect("/", "reset"), result)


@routes.get("/account")
def account(request: Request, login: Login) -> Response:
    return _account(request, login)


def _account(request: Request, login: Login, **context: Any) -> Response:
    with store_of(request).read() as tx:
        own_tokens = tokens.listed(tx, login.person.id)
    shown = {"api_tokens": own_tokens, "new_token": None, **context}
    return render(request, "account.html", **shown)


@routes.post("/account/tokens")
def create_token(request: Request, login: Login, form: FormData) -> Response:
    """Create an API token, and show it on the page of this response, once."""
    try:
        with store_of(request).write() as tx:
            secret, _ = tokens.create(
                tx, login.person, field(form, "name"), field(form, "scope"), _days(form)
            )
    except DataError as error:
        return _account(request, login, problem=sentence(error), status=400)
    return _account(request, login, new_token=secret)


@routes.post("/account/tokens/revoke")
def revoke_token(request: Request, login: Login, form: FormData) -> Response:
    number = field(form, "token")
    known = number.isascii() and number.isdigit() and len(number) < 10
    with store_of(request).write() as tx:
        if not known or not tokens.revoke(tx, int(number), login.person.id, login.person.id):
            raise NotFound("there is no such token.")
    return redirect("/account", "token")


def _days(form: FormData) -> float | None:
    """Return for how many days a new token is valid; None if it does not expire."""
    text = field(form, "days")
    if not text:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise DataError("the number of days must be a number, or empty.") from error


@routes.post("/account/password")
async def change_password(request: Request, login: Login, form: FormData) -> Response:
    source = session_of(request, login)
    try:
        secrets = _secret(form, "old"), _secret(form, "new")
        work = sign_in.change_password
        result = await run_sign_in(request, source, work, login, *secrets, source)
    except FirstpageError as error:
        with store_of(request).read() as tx:
            own_tokens = tokens.listed(tx, login.person.id)
        shown = {"api_tokens": own_tokens, "new_token": None}
        return await _retry_form(request, "account.html", error, **shown)
    return signed_in(request, redirect("/account", "password"), result)


def _secret(form: FormData, name: str) -> str:
    return str(form.get(name) or "")[:MAX_LENGTH]


def _offer(request: Request, token: str, kind: str) -> Invitation:
    with store_of(request).read() as tx:
        return invitations.find_offer(tx, token[:MAX_LENGTH], kind)


async def _retry_form(
    request: Request, template: str, error: FirstpageError, **context: Any
) -> Response:
    """Show the form again with the error, and with `Retry-After` where it applies."""
    status = status_of(error)
    page = await run_in_threadpool(
        render,
        request,
        template,
        problem=sentence(error),
        status=status if status in (429, 503) else 400,
        **context,
    )
    page.headers.update(headers_of(error))
    return page
