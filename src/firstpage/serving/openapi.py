"""The OpenAPI 3.1 document, with the features of the model in service and the server's limits."""

from __future__ import annotations

from typing import Any

from msgspec.json import schema_components

from firstpage.serving import json_messages as messages
from firstpage.serving.binary_formats import ARROW, NPY, has_arrow
from firstpage.serving.limits import Limits
from firstpage.serving.metrics import MEDIA_TYPE
from firstpage.serving.ranking import ANSWERS, JSON
from firstpage.serving.searching import DEPTH
from firstpage.serving.served_model import ServedModel

Json = dict[str, Any]
TEXT, HTML = {"type": "string"}, "text/html; charset=utf-8"
COUNT = {"type": "integer", "minimum": 0}
LENGTHS = {"type": "string", "pattern": "^[0-9]{1,9}(,[0-9]{1,9})*$"}
STATUSES = {
    401: "The token is missing or wrong.",
    403: "The server was started without a token.",
    408: "The body did not arrive in time.",
    413: "The request exceeds a limit of the server.",
    415: "The format of the body is not supported.",
    421: "The host name is not one of this server; see --allow-host.",
    422: "The request is invalid; `detail` names the query, candidate and feature.",
    500: "The model has no score for features of ordinary size.",
    503: "There is no model yet, or too many concurrent requests.",
}
MESSAGES = (
    messages.QueryMessage, messages.BatchMessage, messages.QueryAnswer, messages.BatchAnswer,
    messages.Health, messages.ModelDescription, messages.ReloadReport, messages.ErrorMessage,
)  # fmt: skip


TEXT_MESSAGES = (messages.SearchMessage, messages.SearchAnswer)


def openapi(model: ServedModel | None, limits: Limits, depth: int | None = None) -> Json:
    """Return the document; without a model it does not describe the features.

    `depth` is the greatest depth of a search; None: there is no index.
    """
    description = "Ranks the candidates of a query by their features."
    if model is not None:
        description += f" In service: {model.model.ranker}, {len(model.names)} features."
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "firstpage serve",
            "version": "1" if model is None else model.digest[:12],
            "description": f"{description} Invalid HTTP is answered with 400 in plain text.",
        },
        "paths": {
            "/rank": {"post": _ranking(limits, batch=False)},
            "/batch": {"post": _ranking(limits, batch=True)},
            **PATHS,
            **({} if depth is None else _text_paths(limits, depth)),
        },
        "components": {
            "schemas": _schemas(model, limits, depth),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(model: ServedModel | None, limits: Limits, depth: int | None) -> Json:
    """Return the schemas of the messages, with this model's features and this server's limits."""
    listed = MESSAGES if depth is None else (*MESSAGES, *TEXT_MESSAGES)
    schemas: Json = schema_components(listed, ref_template="#/components/schemas/{name}")[1]
    if depth is not None:
        fields = schemas["SearchMessage"]["properties"]
        fields["q"] |= {"minLength": 1, "maxLength": limits.text}
        fields["depth"] |= {"maximum": depth, "default": min(DEPTH, depth)}
    number: Json = {"type": "number"}
    by_name: Json = {
        "type": "object",
        "description": "Values by feature name; other names are ignored.",
    }
    in_order: Json = {
        "type": "array",
        "items": number,
        "description": "Values in the order of GET /model.",
    }
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
    schemas["Features"] = {"anyOf": [by_name, in_order]}
    schemas["Candidate"]["properties"]["features"] = _ref("Features")
    for name, field, limit in (
        ("QueryMessage", "candidates", limits.candidates),
        ("BatchQuery", "candidates", limits.candidates),
        ("BatchMessage", "queries", limits.queries),
    ):
        schemas[name]["properties"][field] |= {"minItems": 1, "maxItems": limit}
    return schemas | {"QueryList": schemas["BatchMessage"]["properties"]["queries"]}


def _ranking(limits: Limits, batch: bool) -> Json:
    """Return the description of POST /rank or POST /batch."""
    batch_body = {"anyOf": [_ref("QueryList"), _ref("BatchMessage")]}
    bodies = {
        JSON: batch_body if batch else _ref("QueryMessage"),
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
        JSON: _ref("BatchAnswer" if batch else "QueryAnswer"),
        NPY: _binary("A score per row, or the positions of rows (the first is 0), best first."),
        ARROW: _binary("Columns `score` and `rank`, with `query` and `id` if sent."),
    }
    if not has_arrow():
        del bodies[ARROW], answers[ARROW]
    ranked = _response("The ranking, in the format of the body unless ?answer= is json.", answers)
    digest = {"description": "SHA-256 digest of the model file.", "schema": TEXT}
    parameters = [  # for binary bodies; in JSON they are fields of the body
        ("query", "answer", {"enum": list(ANSWERS)}, "Content of the answer to a binary body."),
        (
            "query",
            "explain",
            {"anyOf": [{"type": "boolean"}, COUNT]},
            "Number of features in each explanation; needs ?answer=json.",
        ),
        (
            "query",
            "top",
            {**COUNT, "minimum": 1},
            "Number of candidates per query in the answer; NumPy needs ?answer=order or json, and "
            "Arrow a column `id`.",
        ),
        ("query", "lengths", LENGTHS, "Number of rows of each query of a batch, as in 100,50."),
        ("header", "X-Lengths", LENGTHS, "Same as `lengths`, as a header."),
    ]
    return {
        "operationId": "batch" if batch else "rank",
        "summary": f"Rank the candidates of {'several queries' if batch else 'a query'}.",
        "description": f"The body has at most {limits.bytes:,} bytes and must arrive within "
        f"{limits.body_seconds:g} seconds.",
        "parameters": [
            {"in": location, "name": name, "schema": schema, "description": text}
            for location, name, schema, text in parameters[: None if batch else 3]
        ],
        "requestBody": {"required": True, "content": _content(bodies)},
        "responses": {
            "200": {**ranked, "headers": {"X-Model": digest}},
            **_refusals(408, 413, 415, 422, 500, 503),
        },
    }


def _text_paths(limits: Limits, depth: int) -> Json:
    """Return the descriptions of the routes of an index."""
    found = _response("The results.", "SearchAnswer")
    digest = {"description": "SHA-256 digest of the model file.", "schema": TEXT}
    responses = {"200": {**found, "headers": {"X-Model": digest}}}
    flag = {"type": "boolean"}
    parameters = [
        ("q", {**TEXT, "minLength": 1, "maxLength": limits.text}, "What was typed."),
        (
            "depth",
            {**COUNT, "minimum": 1, "maximum": depth},
            f"Number of documents; default: {min(DEPTH, depth)}.",
        ),
        ("explain", {"anyOf": [flag, COUNT]}, "Number of features in each explanation."),
        ("model", flag, "false: the results of the first stage."),
        ("snippets", flag, "Whether titles and snippets are answered."),
    ]
    return {
        "/search": {
            "get": {
                "operationId": "search",
                "summary": "Search the index by a typed query.",
                "parameters": [
                    {
                        "in": "query",
                        "name": name,
                        "schema": schema,
                        "description": text,
                        "required": name == "q",
                    }
                    for name, schema, text in parameters
                ],
                "responses": {**responses, **_refusals(413, 421, 422, 500, 503)},
            },
            "post": {
                "operationId": "searchByBody",
                "summary": "Search the index by a typed query.",
                "requestBody": {
                    "required": True,
                    "content": _content({JSON: _ref("SearchMessage")}),
                },
                "responses": {**responses, **_refusals(408, 413, 415, 421, 422, 500, 503)},
            },
        },
        "/": _get(
            "page",
            "The page to search and to compare.",
            _response("The page.", {HTML: TEXT}),
            _response("There is no model yet.", {HTML: TEXT}),
        ),
        "/about": PATHS["/"],
    }


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _binary(text: str) -> Json:
    return {"type": "string", "format": "binary", "description": text}


def _content(schemas: Json) -> Json:
    return {media_type: {"schema": schema} for media_type, schema in schemas.items()}


def _response(text: str, schemas: Json | str) -> Json:
    """Return a response with these schemas, or in JSON by the name of its message."""
    schemas = {JSON: _ref(schemas)} if isinstance(schemas, str) else schemas
    return {"description": text, "content": _content(schemas)}


def _refusals(*codes: int) -> Json:
    return {str(code): _response(STATUSES[code], "ErrorMessage") for code in codes}


def _get(name: str, summary: str, success: Json, failure: Json | None = None) -> Json:
    responses = {"200": success, **({} if failure is None else {"503": failure})}
    return {"get": {"operationId": name, "summary": summary, "responses": responses}}


PATHS: Json = {
    "/reload": {
        "post": {
            "operationId": "reload",
            "summary": "Reload the model file.",
            "security": [{"token": []}],
            "responses": {
                "200": _response("In service; `old` and `new` show what changed.", "ReloadReport"),
                "422": _response("Refused; the old model stays in service.", "ReloadReport"),
                **_refusals(401, 403),
            },
        }
    },
    "/": _get(
        "page",
        "Home page.",
        _response("The model and an example request.", {HTML: TEXT}),
        _response("There is no model yet.", {HTML: TEXT}),
    ),
    "/health": _get(
        "health",
        "Health check.",
        _response("A model is in service.", "Health"),
        _response("No model is in service.", "Health"),
    ),
    "/model": _get(
        "model",
        "The model in service.",
        _response("The model.", "ModelDescription"),
        _response(STATUSES[503], "ErrorMessage"),
    ),
    "/metrics": _get(
        "metrics", "Metrics for Prometheus.", _response("The metrics.", {MEDIA_TYPE: TEXT})
    ),
    "/openapi.json": _get(
        "openapi", "This document.", _response("OpenAPI 3.1.", {JSON: {"type": "object"}})
    ),
}
