"""Who may send a body: asked before the body is read.

FastAPI reads and parses a body before it calls the dependencies that say who is asking, and an
upload is written to disk while it is parsed.  So a route of ours runs those dependencies first, on
the request's head alone.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.types import Message, Receive

from firstpage.web.security import (
    FORGED,
    csrf_form,
    csrf_header,
    current_login,
    expected_csrf,
    lead_of,
    member_of,
    needed_login,
)
from firstpage.web.store.logins import Login
from firstpage.web.store.projects import SLUG

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
STRANGER_BODY = 1 << 16  # bytes of a body that anybody may send
FORM_HEAD = 1 << 16  # bytes of a form in which its token must have come; ours have it first


class AdmissionRoute(APIRoute):
    """A route that reads no body of a request which it refuses, and of strangers a short one."""

    def get_route_handler(self) -> Handler:
        inner = super().get_route_handler()
        calls = set(_calls(self.dependant))
        if self.body_field is None and csrf_form not in calls:
            return inner

        async def handle(request: Request) -> Response:
            head = Request(request.scope)  # there is no body to read in it
            login = await run_in_threadpool(_admitted, head, calls)
            receive = request.receive if needed_login in calls else _short(request.receive)
            if csrf_form in calls:
                receive = await _with_token(receive, expected_csrf(head, login))
            whole = Request(request.scope, receive)
            try:
                return await inner(whole)
            finally:
                await whole.close()  # files of a form

        return handle


async def _with_token(receive: Receive, token: str) -> Receive:
    """The token of a form is in its body, so the first bytes of it are read, and no more."""
    messages = [message async for message in _first(receive, FORM_HEAD)]
    sent = b"".join(message.get("body", b"") for message in messages)[:FORM_HEAD]
    if not token or token.encode() not in sent:
        raise HTTPException(403, FORGED)
    return _replayed(messages, receive)


def _short(receive: Receive) -> Receive:
    """Receive a body of a login, a name and a password, and none that is longer."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > STRANGER_BODY:
            raise HTTPException(
                413, f"This is too large; at most {STRANGER_BODY:,} bytes are taken."
            )
        return message

    return counted


def _admitted(request: Request, calls: set[Any]) -> Login | None:
    """The login of a request that these dependencies let pass; it is asked by its head alone."""
    login = current_login(request)
    if needed_login in calls:
        login = needed_login(login)
        if member_of in calls:
            slug = request.path_params["slug"]
            if not SLUG.fullmatch(slug):
                raise HTTPException(404, "There is no such project.")
            member = member_of(request, slug, login.person)
            if lead_of in calls:
                lead_of(member)
        if csrf_header in calls:
            csrf_header(login, request.headers.get("x-csrf-token"))
    return login


def _calls(dependant: Dependant) -> Iterator[Any]:
    """The functions that a route depends on, and those that they depend on."""
    for each in dependant.dependencies:
        yield each.call
        yield from _calls(each)


async def _first(receive: Receive, size: int) -> Any:
    """Yield messages until so many bytes have come, or all."""
    while size > 0:
        message = await receive()
        yield message
        size -= len(message.get("body", b""))
        if not message.get("more_body", False):
            return


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    """Receive these messages again, then what follows."""
    ahead = iter(messages)

    async def again() -> Message:
        message = next(ahead, None)
        return await receive() if message is None else message

    return again
