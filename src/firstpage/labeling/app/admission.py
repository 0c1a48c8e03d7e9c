"""Authorization before the body of a request is read.

FastAPI reads and parses a body before it calls the dependencies that authorize the request, and an
upload is written to disk while it is parsed.  `AdmissionRoute` runs those dependencies first, on
the headers alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

from fastapi import HTTPException, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.types import Message, Receive

from firstpage.core.http import FORGED
from firstpage.data.io import RepeatedKey, unique_keys
from firstpage.labeling.app.security import (
    csrf_form,
    csrf_header,
    current_login,
    expected_csrf,
    lead_of,
    member_of,
    require_login,
    store_of,
)
from firstpage.labeling.app.store.failures import disk_failure
from firstpage.labeling.app.store.logins import Login
from firstpage.labeling.app.store.projects import SLUG

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
ANONYMOUS_BODY = 1 << 16  # maximum bytes of a body without a login
FORM_HEAD = 1 << 16  # first bytes of a form, which must contain its CSRF token


def parse_json(content: bytes) -> Any:
    """Return a body of JSON; refuse a repeated key, of which only the last value would count."""
    try:
        return json.loads(content, object_pairs_hook=unique_keys)
    except RepeatedKey as error:
        raise HTTPException(422, str(error)) from error


class UniqueKeysRequest(Request):
    """A request whose JSON body has no repeated keys."""

    async def json(self) -> Any:
        return parse_json(await self.body())


class AdmissionRoute(APIRoute):
    """A route that does not read the body of a request it refuses, and limits anonymous ones."""

    def get_route_handler(self) -> Handler:
        inner = super().get_route_handler()
        calls = set(_calls(self.dependant))
        if self.body_field is None and csrf_form not in calls:
            return inner

        async def handle(request: Request) -> Response:
            head = Request(request.scope)  # without the body
            login = await run_in_threadpool(_admitted, head, calls)
            receive = request.receive if require_login in calls else _limited(request.receive)
            if csrf_form in calls:
                receive = await _with_token(receive, expected_csrf(head, login))
            admitted = UniqueKeysRequest(request.scope, receive)
            try:
                return await inner(admitted)
            except (OSError, StarletteHTTPException) as error:  # FastAPI replaces errors of parsing
                failure = disk_failure(error) or disk_failure(error.__cause__)
                if failure is None:
                    raise
                store_of(request).report(failure)
                raise failure from error
            finally:
                await admitted.close()  # closes the files of a form

        return handle


async def _with_token(receive: Receive, token: str) -> Receive:
    """Check the CSRF token of a form in the first bytes of its body."""
    messages = [message async for message in _first(receive, FORM_HEAD)]
    start = b"".join(message.get("body", b"") for message in messages)[:FORM_HEAD]
    if not token or token.encode() not in start:
        raise HTTPException(403, FORGED)
    return _replayed(messages, receive)


def _limited(receive: Receive) -> Receive:
    """Return a `receive` that raises for a body of more than `ANONYMOUS_BODY` bytes."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > ANONYMOUS_BODY:
            raise HTTPException(
                413, f"The request is too large; at most {ANONYMOUS_BODY:,} bytes are accepted."
            )
        return message

    return counted


def _admitted(request: Request, calls: set[Any]) -> Login | None:
    """Return the login of a request that these dependencies admit, by its headers alone."""
    login = current_login(request)
    if require_login in calls:
        login = require_login(login)
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
    """Yield the functions that a route depends on, recursively."""
    for dependency in dependant.dependencies:
        yield dependency.call
        yield from _calls(dependency)


async def _first(receive: Receive, size: int) -> Any:
    """Yield messages until `size` bytes are received, or all."""
    while size > 0:
        message = await receive()
        yield message
        size -= len(message.get("body", b""))
        if not message.get("more_body", False):
            return


def _replayed(messages: list[Message], receive: Receive) -> Receive:
    """Return a `receive` that repeats these messages before it receives more."""
    replayed = iter(messages)

    async def replay() -> Message:
        message = next(replayed, None)
        return await receive() if message is None else message

    return replay
