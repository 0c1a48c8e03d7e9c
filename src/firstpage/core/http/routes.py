"""One declaration per route: who is admitted, what it takes, what it answers, how it is described.

```text
   head ──admit──▶ who sends it ──▶ body read, within its limit ──decoded──▶ handler ──▶ answer
             └──▶ refused, without its body
```

A handler is a function `(request, admitted, **parameters)`: `admitted` is what its admission
returns (left out if the route has none).  The names of its further parameters say where they come
from: names in braces of the path, `body` (a struct, sent as JSON), `upload` (a struct, sent as a
form with files), `form` (a form of a page, with its CSRF token); all others are of the query.

A handler that is not a coroutine runs in a thread, with its admission.  For a small body of JSON
these are one step in one thread: it is read first, which costs no more than its head.
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, TypeVar, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct, defstruct, json, structs
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from firstpage.core.http.decoding import CheckText, InvalidRequest, decode_json, decode_texts
from firstpage.core.http.openapi import JSON, DeclaredResponse, Operation, Parameter, refusals
from firstpage.core.http.same_site import FORGED, equal_tokens

Handler = TypeVar("Handler", bound=Callable[..., Any])
SMALL_BODY = 1 << 16  # bytes of a body that may be read before its request is admitted
FORM_HEAD = 1 << 16  # first bytes of a form, which must contain its CSRF token
INVALID = "The path, the query or the body is invalid; `detail` says where."
MULTIPART = "multipart/form-data"
PATH_NAME = re.compile(r"{(\w+)}")


class Admission(Protocol):
    """Decides by the head of a request whether it is read and answered."""

    @property
    def refusals(self) -> Mapping[int, str]:
        """The statuses of refused requests, and what they mean."""

    def __call__(self, request: Request) -> Any:
        """Return what the handler has to know of the sender; raise to refuse the request."""


def as_json(request: Request, error: Exception) -> Response:
    """Return a refusal as one line of JSON; errors that are not refusals are raised again."""
    if isinstance(error, InvalidRequest):
        return error_response(422, str(error))
    if isinstance(error, HTTPException):
        return error_response(error.status_code, str(error.detail), error.headers)
    raise error


def error_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """Return an error with its detail, in which lone surrogates are replaced."""
    sendable = detail.encode("utf-8", "replace").decode()
    return json_response({"detail": sendable, **more}, status, headers)


def json_response(
    content: Any, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a value as JSON: records, arrays of them, and NumPy's numbers."""
    return Response(json.encode(content, enc_hook=_plain), status, headers, JSON)


def _plain(value: Any) -> Any:
    """Return a value of which msgspec does not know the type as one that it does."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be sent as JSON")


@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What is declared of a route beside its handler; `Routes` has defaults for all of its own.

    Attributes
    ----------
    admit : Admission or None
        Who may use the route; None: everybody.
    status : int
        The status of a successful answer.
    statuses : mapping
        Further statuses, and what they mean.
    max_bytes : int or None
        Greatest length of a body; None: the limit of the server.
    threads : Executor or None
        Where handlers run; None: in the threads that all servers share.
    within : callable
        Returns the context in which a request is admitted and handled, such as a connection.
    tag : str or None
        The group of the route in the description.
    hidden : bool
        Whether the description omits the route, as it does pages.
    path_types : mapping
        Types of names in the path that the handler does not take.
    on_error : callable
        Returns the response to an error, or raises it.
    check_text : callable or None
        Raises `ValueError` for a text that the application cannot store, given with its place.
    form_token : callable or None
        Returns the CSRF token that a form must have in its field `csrf`; empty: it is refused.
    """

    admit: Admission | None = None
    status: int = 200
    statuses: Mapping[int, str] = field(default_factory=dict)
    max_bytes: int | None = None
    threads: Executor | None = None
    within: Callable[[Request], AbstractContextManager[Any]] = lambda request: nullcontext()
    tag: str | None = None
    hidden: bool = False
    path_types: Mapping[str, Any] = field(default_factory=dict)
    on_error: Callable[[Request, Exception], Response] = as_json
    check_text: CheckText | None = None
    form_token: Callable[[Request], str] | None = None


class Routes:
    """Routes with the same prefix and the same defaults, in the order in which they are tried.

    Its methods `get`, `post` and so on are decorators of handlers, which they return unchanged.
    """

    def __init__(self, defaults: Declaration | None = None, prefix: str = "", **changes: Any):
        self._defaults = replace(defaults or Declaration(), **changes)
        self._prefix = prefix
        self._listed: list[tuple[Route, Operation | None]] = []

    def route(self, method: str, path: str, **changes: Any) -> Callable[[Handler], Handler]:
        """Declare the route of a handler; `changes` are fields of its `Declaration`."""
        declared = replace(self._defaults, **changes)

        def declare(handler: Handler) -> Handler:
            endpoint = Endpoint(handler, method, self._prefix + path, declared)
            operation = None if declared.hidden else endpoint.operation()
            self._add(method, endpoint.path, endpoint, operation)
            return handler

        return declare

    def get(self, path: str, **changes: Any) -> Callable[[Handler], Handler]:
        return self.route("GET", path, **changes)

    def post(self, path: str, **changes: Any) -> Callable[[Handler], Handler]:
        return self.route("POST", path, **changes)

    def put(self, path: str, **changes: Any) -> Callable[[Handler], Handler]:
        return self.route("PUT", path, **changes)

    def patch(self, path: str, **changes: Any) -> Callable[[Handler], Handler]:
        return self.route("PATCH", path, **changes)

    def delete(self, path: str, **changes: Any) -> Callable[[Handler], Handler]:
        return self.route("DELETE", path, **changes)

    def app(self, operation: Operation, app: ASGIApp) -> None:
        """Add an ASGI application with admission of its own, and its description."""
        path = self._prefix + operation.path
        self._add(operation.method, path, app, replace(operation, path=path))

    def _add(self, method: str, path: str, app: ASGIApp, operation: Operation | None) -> None:
        route = Route(path, app, methods=[method])
        route.app = app  # of a function, Starlette would make an application
        self._listed.append((route, operation))

    def __iter__(self) -> Iterator[BaseRoute]:
        return (route for route, _ in self._listed)

    def operations(self) -> Iterator[Operation]:
        """Yield the descriptions of the routes, except hidden ones."""
        return (operation for _, operation in self._listed if operation is not None)


NOT_ADMITTED: Any = object()  # the head of the request was not checked yet


class Endpoint:
    """The ASGI application of a handler and its declaration."""

    def __init__(
        self, handler: Callable[..., Any], method: str, path: str, declared: Declaration
    ) -> None:
        self.handler, self.method, self.path, self.declared = handler, method, path, declared
        hints = get_type_hints(handler, include_extras=True)
        first = 1 if declared.admit is None else 2
        listed = list(inspect.signature(handler).parameters.values())[first:]
        in_path = set(PATH_NAME.findall(path))
        own = {p.name: hints[p.name] for p in listed}
        self.sent = next((name for name in ("body", "upload", "form") if name in own), None)
        self.kind: Any = own.get(self.sent or "")  # a struct, except of a form
        self.returns = hints.get("return")
        self.path_kind = _struct([p for p in listed if p.name in in_path], hints)
        in_query = [p for p in listed if p.name not in in_path and p.name != self.sent]
        self.whole_query = next((p.name for p in in_query if _is_struct(hints[p.name])), None)
        self.query_kind = (
            _struct(in_query, hints) if self.whole_query is None else hints[self.whole_query]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive, send)
        response = await self._response(request)
        await response(scope, receive, send)

    async def _response(self, request: Request) -> Response:
        admitted: Any = NOT_ADMITTED
        content: bytes | FormData | None = None
        try:
            if self.sent == "body" and _is_small_json(request):
                content = await request.body()
            elif self.sent is not None:
                admitted = await self._in_thread(self._admitted, request)
                content = await self._content(request)
        except Exception as error:
            return await run_in_threadpool(self.declared.on_error, request, error)
        try:
            if inspect.iscoroutinefunction(self.handler):
                return await self._awaited(request, admitted, content)
            response: Response = await self._in_thread(self._answered, request, admitted, content)
            return response
        finally:
            if isinstance(content, FormData):
                await content.close()

    async def _in_thread(self, function: Callable[..., Any], *args: Any) -> Any:
        if self.declared.threads is None:
            return await run_in_threadpool(function, *args)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.declared.threads, function, *args)

    def _admitted(self, request: Request) -> Any:
        return None if self.declared.admit is None else self.declared.admit(request)

    def _answered(self, request: Request, admitted: Any, content: Any) -> Response:
        """Return the response of a handler that runs in this thread."""
        try:
            with self.declared.within(request):
                if admitted is NOT_ADMITTED:
                    admitted = self._admitted(request)
                return self._reply(self._call(request, admitted, content)())
        except Exception as error:
            return self.declared.on_error(request, error)

    async def _awaited(self, request: Request, admitted: Any, content: Any) -> Response:
        """Return the response of a coroutine."""
        try:
            if admitted is NOT_ADMITTED and self.declared.admit is not None:
                admitted = await self._in_thread(self._admitted, request)
            return self._reply(await self._call(request, admitted, content)())
        except Exception as error:
            return await run_in_threadpool(self.declared.on_error, request, error)

    def _call(self, request: Request, admitted: Any, content: Any) -> Callable[[], Any]:
        """Return the handler with its decoded arguments."""
        check = self.declared.check_text
        args: dict[str, Any] = {}
        if self.path_kind is not None:
            args |= structs.asdict(decode_texts(request.path_params, self.path_kind, "path", check))
        if self.query_kind is not None:
            query = decode_texts(dict(request.query_params), self.query_kind, "query", check)
            whole = self.whole_query
            args |= structs.asdict(query) if whole is None else {whole: query}
        if self.sent == "body":
            args["body"] = decode_json(content, self.kind, check)
        elif self.sent == "upload":
            args["upload"] = decode_texts(_fields(content, self.kind), self.kind, "body", check)
        elif self.sent == "form":
            args["form"] = content
        sender = () if self.declared.admit is None else (admitted,)
        return partial(self.handler, request, *sender, **args)

    def _reply(self, result: Any) -> Response:
        if isinstance(result, Response):
            return result
        if result is None and self.declared.status == 204:
            return Response(status_code=204)
        return json_response(result, self.declared.status)

    async def _content(self, request: Request) -> bytes | FormData:
        """Return the body of an admitted request, as far as its limit and its token allow."""
        receive = request.receive
        if self.declared.max_bytes is not None:
            receive = _limited(receive, self.declared.max_bytes)
        if self.sent == "form" and self.declared.form_token is not None:
            token = self.declared.form_token(request)
            receive = await _with_token(receive, token)
            form = await Request(request.scope, receive).form()
            submitted = form.get("csrf")
            if not isinstance(submitted, str) or not equal_tokens(submitted, token):
                await form.close()
                raise HTTPException(403, FORGED)
            return form
        if self.sent != "body":
            return await Request(request.scope, receive).form()
        content = await Request(request.scope, receive).body()
        if not _is_json(request):
            raise InvalidRequest(f"body: send JSON, with the header Content-Type: {JSON}.")
        return content

    def operation(self) -> Operation:
        """Return the description of the route; its text is the handler's docstring."""
        summary, _, description = inspect.getdoc(self.handler).partition("\n\n")  # type: ignore[union-attr]
        words = re.findall(r"\w+", self.path)
        content = self._answer_content()
        parameters = tuple(self._parameters())
        meanings = dict(self.declared.admit.refusals) if self.declared.admit is not None else {}
        if not PATH_NAME.search(self.path):
            meanings.pop(404, None)
        if parameters or self.sent:
            meanings[422] = INVALID
        success = DeclaredResponse("Done." if not content else "The answer.", content)
        media = {"body": JSON, "upload": MULTIPART, "form": MULTIPART}
        return Operation(
            self.method,
            self.path,
            "_".join([self.method.lower(), *words]),
            " ".join(summary.split()),
            description,
            self.declared.tag,
            parameters,
            {media[self.sent]: self.kind} if self.sent is not None else {},
            {self.declared.status: success, **refusals({**meanings, **self.declared.statuses})},
        )

    def _answer_content(self) -> dict[str, Any]:
        if self.declared.status == 204:
            return {}
        if isinstance(self.returns, type) and issubclass(self.returns, Response):
            return {"*/*": {}}
        return {JSON: self.returns}

    def _parameters(self) -> Iterator[Parameter]:
        typed = {f.name: f.type for f in structs.fields(self.path_kind)} if self.path_kind else {}
        for name in PATH_NAME.findall(self.path):
            kind = typed.get(name, self.declared.path_types.get(name, str))
            yield Parameter(name, "path", kind, required=True)
        for query in structs.fields(self.query_kind) if self.query_kind else ():
            yield Parameter(query.encode_name, "query", query.type, required=query.required)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _struct(parameters: list[inspect.Parameter], hints: Mapping[str, Any]) -> type[Struct] | None:
    """Return the type of a record of parameters; None without any."""
    fields = [
        (p.name, hints[p.name], NODEFAULT if p.default is p.empty else p.default)
        for p in parameters
    ]
    return defstruct("Parameters", fields, kw_only=True) if fields else None


def _fields(form: FormData, kind: type[Struct]) -> dict[str, Any]:
    """Return the fields of a form; only those that are lists may occur several times."""
    lists = {f.encode_name for f in structs.fields(kind) if _is_list(f.type)}
    values = {name: form.getlist(name) for name in form}
    for name, several in values.items():
        if len(several) > 1 and name not in lists:
            raise InvalidRequest(f"body.{name[:100]}: occurs {len(several)} times.")
    return {name: many if name in lists else many[0] for name, many in values.items()}


def _is_list(kind: Any) -> bool:
    return list in (get_origin(kind), *(get_origin(inner) for inner in get_args(kind)))


def _is_json(request: Request) -> bool:
    sent = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    return sent == JSON or (sent.startswith("application/") and sent.endswith("+json"))


def _is_small_json(request: Request) -> bool:
    length = request.headers.get("content-length", "")
    small = length.isascii() and length.isdigit() and int(length) <= SMALL_BODY
    return small and _is_json(request)


def _limited(receive: Receive, max_bytes: int) -> Receive:
    """Return a `receive` that raises for a body of more bytes."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > max_bytes:
            raise HTTPException(
                413, f"The request is too large; at most {max_bytes:,} bytes are accepted."
            )
        return message

    return counted


async def _with_token(receive: Receive, token: str) -> Receive:
    """Check the CSRF token of a form in the first bytes of its body, which are then repeated."""
    messages: list[Message] = []
    size = 0
    while size < FORM_HEAD:
        messages.append(await receive())
        size += len(messages[-1].get("body", b""))
        if not messages[-1].get("more_body", False):
            break
    start = b"".join(message.get("body", b"") for message in messages)[:FORM_HEAD]
    if not token or token.encode() not in start:
        raise HTTPException(403, FORGED)
    repeated = iter(messages)

    async def replay() -> Message:
        message = next(repeated, None)
        return await receive() if message is None else message

    return replay
