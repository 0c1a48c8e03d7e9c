"""Descriptions of the routes, and OpenAPI with the features of the model in service."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from msgspec import Meta, Struct

from firstpage.core.http import (
    JSON,
    DeclaredResponse,
    Operation,
    Parameter,
    openapi_document,
    refusals,
)
from firstpage.serving import json_messages as messages
from firstpage.serving.binary_formats import ARROW, NPY, has_arrow
from firstpage.serving.event_rows import EventRow, EventsAnswer
from firstpage.serving.limits import Limits
from firstpage.serving.metrics import MEDIA_TYPE
from firstpage.serving.ranking import ANSWERS
from firstpage.serving.searching import DEPTH
from firstpage.serving.served_model import ServedModel

Json = dict[str, Any]
TEXT, FLAG = {"type": "string"}, {"type": "boolean"}
COUNT: Json = {"type": "integer", "minimum": 0}
LENGTHS = {"type": "string", "pattern": "^[0-9]{1,9}(,[0-9]{1,9})*$"}
EXPLAIN = {"anyOf": [FLAG, COUNT]}
STATUSES = {
    401: "The token is missing or wrong.",
    403: "The server was started without a token, or the request comes from another site.",
    408: "The body did not arrive in time.",
    413: "The request exceeds a limit of the server.",
    415: "The format of the body is not supported.",
    421: "The host name is not one of this server; see --allow-host.",
    422: "The request is invalid; `detail` names the query, candidate and feature.",
    429: "The network sends too many events.",
    500: "The model has no score for features of ordinary size.",
    503: "There is no model yet, or too many concurrent requests.",
    507: "The disk or the event log is full.",
}
X_MODEL = {"X-Model": {"description": "SHA-256 digest of the model file.", "schema": TEXT}}


def _refused(*statuses: int) -> dict[int, DeclaredResponse]:
    return refusals({status: STATUSES[status] for status in statuses})


def _binary(text: str) -> Json:
    return {"type": "string", "format": "binary", "description": text}


def _get(
    path: str,
    name: str,
    summary: str,
    answer: DeclaredResponse,
    without_model: DeclaredResponse | None = None,
) -> Operation:
    """Return the description of a route without parameters."""
    answers = {200: answer} if without_model is None else {200: answer, 503: without_model}
    return Operation("GET", path, name, summary, answers=answers)


def _page(path: str, name: str, summary: str) -> Operation:
    html = {"text/html; charset=utf-8": TEXT}
    no_model = DeclaredResponse("There is no model yet.", html)
    return _get(path, name, summary, DeclaredResponse("The page.", html), no_model)


def _report(text: str, message: type[Struct]) -> DeclaredResponse:
    return DeclaredResponse(text, {JSON: message})


RELOAD = Operation(
    "POST",
    "/reload",
    "reload",
    "Reload the model file.",
    security=("token",),
    answers={
        200: _report("In service; `old` and `new` show what changed.", messages.ReloadReport),
        422: _report("Refused; the old model stays in service.", messages.ReloadReport),
        **_refused(401, 403),
    },
)
SEARCH_PAGE = _page("/", "page", "The page to search and to compare.")
_HEALTH = [_report(f"{n} model is in service.", messages.Health) for n in ("A", "No")]
HEALTH = _get("/health", "health", "Health check.", *_HEALTH)
_MODEL = _report("The model.", messages.ModelDescription)
MODEL = _get("/model", "model", "The model in service.", _MODEL, _refused(503)[503])
DRIFT = _page("/drift", "drift", "Features and scores in service, against the training data.")
_METRICS = DeclaredResponse("The metrics.", {MEDIA_TYPE: TEXT})
METRICS = _get("/metrics", "metrics", "Metrics for Prometheus.", _METRICS)
_OPENAPI = DeclaredResponse("OpenAPI 3.1.", {JSON: {"type": "object"}})
OPENAPI = _get("/openapi.json", "openapi", "This document.", _OPENAPI)


def about(path: str) -> Operation:
    """Return the description of the page about the server."""
    return _page(path, "about", "The model, and an example request.")


def ranking(limits: Limits, batch: bool) -> Operation:
    """Return the description of POST /rank or POST /batch."""
    queries: Any = Annotated[
        list[messages.BatchQuery], Meta(min_length=1, max_length=limits.queries)
    ]
    bodies = {
        JSON: queries | messages.BatchMessage if batch else messages.QueryMessage,
        NPY: _binary(
            "A float32 or float64 matrix in the format of numpy.save, with a row per candidate and "
            "a column per feature; a batch needs the number of rows per query in ?lengths= or "
            "X-Lengths."
        ),
        ARROW: _binary(
            "An uncompressed Arrow stream with a column per feature, or one column `features` of "
            "fixed-size lists; a column `id` is optional, and a batch needs a column `query`."
        ),
    }
    answers = {
        JSON: messages.BatchAnswer if batch else messages.QueryAnswer,
        NPY: _binary("A score per row, or the positions of rows (the first is 0), best first."),
        ARROW: _binary("Columns `score` and `rank`, with `query` and `id` if sent."),
    }
    if not has_arrow():
        del bodies[ARROW], answers[ARROW]
    ranked = "The ranking, in the format of the body unless ?answer= is json."
    parameters = [  # for binary bodies; in JSON they are fields of the body
        ("answer", {"enum": list(ANSWERS)}, "Content of the answer to a binary body."),
        ("explain", EXPLAIN, "Number of features in each explanation; needs ?answer=json."),
        (
            "top",
            {**COUNT, "minimum": 1},
            "Number of candidates per query in the answer; NumPy needs ?answer=order or json, and "
            "Arrow a column `id`.",
        ),
        ("lengths", LENGTHS, "Number of rows of each query of a batch, as in 100,50."),
        ("X-Lengths", LENGTHS, "Same as `lengths`, as a header."),
    ]
    return Operation(
        "POST",
        "/batch" if batch else "/rank",
        "batch" if batch else "rank",
        f"Rank the candidates of {'several queries' if batch else 'a query'}.",
        f"The body has at most {limits.bytes:,} bytes and must arrive within "
        f"{limits.body_seconds:g} seconds.",
        parameters=tuple(
            Parameter(name, "header" if name == "X-Lengths" else "query", schema, False, text)
            for name, schema, text in parameters[: None if batch else 3]
        ),
        body=bodies,
        answers={
            200: DeclaredResponse(ranked, answers, X_MODEL),
            **_refused(408, 413, 415, 422, 500, 503),
        },
    )


def events(limits: Limits) -> Operation:
    """Return the description of POST /events."""
    rows: Any = Annotated[list[EventRow], Meta(max_length=limits.queries)]
    return Operation(
        "POST",
        "/events",
        "events",
        "Store queries and events of User Behavior Insights (UBI) 1.3.0.",
        "They are on disk when this is answered.  A row without an action_name is a query, with "
        "query_id, user_query, timestamp and query_response_hit_ids.",
        body={JSON: EventRow | rows},
        answers={
            200: _report("The events are on disk.", EventsAnswer),
            **_refused(403, 408, 413, 415, 421, 422, 429, 503, 507),
        },
    )


def searches(limits: Limits, depth: int) -> tuple[Operation, Operation]:
    """Return the descriptions of GET /search and POST /search."""
    text, summary = {**TEXT, "minLength": 1, "maxLength": limits.text}, "Search by a typed query."
    count = {**COUNT, "minimum": 1}
    parameters = [
        ("q", text, "What was typed."),
        ("depth", count | {"maximum": depth}, f"Number of results; default: {min(DEPTH, depth)}."),
        ("explain", EXPLAIN, "Number of features in each explanation."),
        ("model", FLAG, "false: the results of the first stage."),
        ("snippets", FLAG, "Whether titles and snippets are answered."),
        ("client", TEXT, "Id of the user: the query is logged, and may be of an experiment."),
        ("page", count, "Page of the results, from 1."),
        ("query_id", TEXT, "With a further page: the id that the first one was answered with."),
    ]
    results = DeclaredResponse("The results.", {JSON: messages.SearchAnswer}, X_MODEL)
    read = tuple(Parameter(n, "query", s, n == "q", t) for n, s, t in parameters)
    answers = {200: results, **_refused(413, 421, 422, 500, 503)}
    get = Operation("GET", "/search", "search", summary, parameters=read, answers=answers)
    answers = answers | _refused(408, 415)
    body = {JSON: messages.SearchMessage}
    return get, Operation("POST", "/search", "searchByBody", summary, body=body, answers=answers)


def openapi(
    operations: Iterable[Operation], model: ServedModel | None, limits: Limits, depth: int | None
) -> Json:
    """Return the document; without a model it does not describe the features.

    `depth` is the greatest depth of a search; None: there is no index.
    """
    description = "Ranks the candidates of a query by their features."
    if model is not None:
        description += f" In service: {model.model.ranker}, {len(model.names)} features."
    document = openapi_document(
        operations,
        title="firstpage serve",
        version="1" if model is None else model.digest[:12],
        description=f"{description} Invalid HTTP is answered with 400 in plain text.",
        security={"token": {"type": "http", "scheme": "bearer"}},
    )
    schemas = document["components"]["schemas"]
    schemas["Features"] = _features(model)
    schemas["Candidate"]["properties"]["features"] = {"$ref": "#/components/schemas/Features"}
    for name, field, limit in (
        ("QueryMessage", "candidates", limits.candidates),
        ("BatchQuery", "candidates", limits.candidates),
        ("BatchMessage", "queries", limits.queries),
    ):
        schemas[name]["properties"][field] |= {"minItems": 1, "maxItems": limit}
    if depth is not None:
        fields = schemas["SearchMessage"]["properties"]
        fields["q"] |= {"minLength": 1, "maxLength": limits.text}
        fields["depth"] |= {"maximum": depth, "default": min(DEPTH, depth)}
    return document


def _features(model: ServedModel | None) -> Json:
    """Return the schema of the features of a candidate."""
    number: Json = {"type": "number"}
    about = "Values by feature name; other names are ignored."
    by_name: Json = {"type": "object", "description": about}
    about = "Values in the order of GET /model."
    in_order: Json = {"type": "array", "items": number, "description": about}
    if model is not None:
        names = list(dict.fromkeys(model.names))
        number = {"type": ["number", "null"]} if model.model.reads_missing else number
        category: Json = {"type": ["string", "integer", "null"]}
        properties = {
            name: category if column in model.category_codes else number
            for column, name in enumerate(model.names)
        }
        by_name |= {"required": names, "properties": properties}
        in_order["items"] = {"anyOf": [number, category]} if model.category_codes else number
        in_order |= {"minItems": len(model.names), "maxItems": len(model.names)}
    return {"anyOf": [by_name, in_order]}
