"""A short path for changes of a task, the requests on which assessors wait.

FastAPI's general path solves dependencies in several threads, one after another, and authenticates
twice (`labeling.app.admission`).  `TaskRoute` does the same checks in one thread on one database
connection.  The declared function stays the endpoint and the source of the API's description.

Few threads answer, and further requests wait for one of them: more threads would only compete for
the interpreter, which costs time and lets an early request finish after a late one.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_type_hints

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import TypeAdapter, ValidationError

from firstpage.labeling.app.admission import ANONYMOUS_BODY, AdmissionRoute, Handler, parse_json
from firstpage.labeling.app.api.bodies import Id
from firstpage.labeling.app.security import csrf_header, current_login, require_login, store_of

TASK = TypeAdapter(Id)
THREADS = ThreadPoolExecutor(4, thread_name_prefix="answers")


class TaskRoute(AdmissionRoute):
    """The route of a function `(request, task, body, login)` that returns a state.

    A body that is not JSON, or larger than one without a login may be, takes the general path.
    """

    def get_route_handler(self) -> Handler:
        general = super().get_route_handler()
        hints = get_type_hints(self.endpoint)
        reply = TypeAdapter(hints["return"])

        def respond(request: Request, content: bytes) -> Response:
            with store_of(request).holding_connection():
                login = require_login(current_login(request))
                csrf_header(login, request.headers.get("x-csrf-token"))
                task = _validated(
                    TASK.validate_strings, request.path_params["task"], "path", "task"
                )
                body = _validated(hints["body"].model_validate_json, content, "body")
                parse_json(content)  # refuses repeated keys, which the validation accepts
                state = self.endpoint(request=request, task=task, body=body, login=login)
            return Response(reply.dump_json(state), media_type="application/json")

        async def handle(request: Request) -> Response:
            if not _is_small_json(request):
                return await general(request)
            content = await request.body()
            return await asyncio.get_running_loop().run_in_executor(
                THREADS, respond, request, content
            )

        return handle


def _is_small_json(request: Request) -> bool:
    headers = request.headers
    length = headers.get("content-length", "")
    return (
        headers.get("content-type", "").partition(";")[0].strip() == "application/json"
        and length.isdigit()
        and int(length) <= ANONYMOUS_BODY
    )


def _validated(validate: Any, value: Any, *place: str) -> Any:
    """Return a validated value; what is invalid is reported as FastAPI reports it."""
    try:
        return validate(value)
    except ValidationError as error:
        problems = [
            {**problem, "loc": (*place, *problem["loc"])}
            for problem in error.errors(include_url=False)
        ]
        raise RequestValidationError(problems) from error
