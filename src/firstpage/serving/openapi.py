"""The API as OpenAPI 3.1, with the features of the model in service and the server's limits."""

from __future__ import annotations

from typing import Any

from msgspec.json import schema_components

from firstpage.serving import json_messages as messages
from firstpage.serving.binary_formats import ARROW, NPY, has_arrow
from firstpage.serving.limits import Limits
from firstpage.serving.metrics import MEDIA_TYPE
from firstpage.serving.ranking import ANSWERS, JSON
from firstpage.serving.served_model import ServedModel

Json = dict[str, Any]
TEXT, HTML = {"type": "string"}, "text/html; charset=utf-8"
COUNT = {"type": "integer", "minimum": 0}
LENGTHS = {"type": "string", "pattern": "^[0-9]{1,9}(,[0-9]{1,9})*$"}
STATUSES = {
    401: "The token is missing or wrong.",
    403: "The server was started without a token.",
    408: "The body did not arrive in time.",
    413: "More than the server takes at once.",
    415: "The body has a format that is not read here.",
    422: "The request cannot be ranked; `detail` names query, candidate and feature.",
    503: "No model yet, or too many requests at once.",
}
MESSAGES = (
    messages.Query, messages.Batch, messages.Answer, messages.BatchAnswer, messages.Health,
    messages.ModelDescription, messages.ReloadReport, messages.Problem,
)  # fmt: skip


def openapi(model: ServedModel | None, limits: Limits) -> Json:
    """Return the whole document; without a model nothing is known of the features."""
    about = "Ranks the candidates of a query by their features."
    if model is not None:
        about += f" In service: {model.model.ranker}, {len(model.names)} features."
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "firstpage serve",
            "version": "1" if model is None else model.digest[:12],
            "description": f"{about} What is no HTTP is answered with 400 and plain text.",
        },
        "paths": {
            "/rank": {"post": _ranking(limits, batch=False)},
            "/batch": {"post": _ranking(limits, batch=True)},
            **PATHS,
        },
        "components": {
            "schemas": _schemas(model, limits),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(model: ServedModel | None, limits: Limits) -> Json:
    """Return the schemas of the messages, with this model's features and this server's limits."""
    schemas: Json = schema_components(MESSAGES, ref_template="#/components/schemas/{name}")[1]
    number = {"type": "number"}
    by_name: Json = {"type": "object", "description": "By name; others are ignored."}
    in_order: Json = {"type": "array", "items": number, "description": "As GET /model shows them."}
    if model is not None:
        names = list(dict.fromkeys(model.names))
        by_name |= {"required": names, "properties": dict.fromkeys(names, number)}
        in_order |= {"minItems": len(model.names), "maxItems": len(model.names)}
    schemas["Features"] = {"anyOf": [by_name, in_order]}
    schemas["Candidate"]["properties"]["features"] = _ref("Features")
    for name, field, limit in (
        ("Query", "candidates", limits.candidates), ("BatchQuery", "candidates", limits.candidates),
        ("Batch", "queries", limits.queries),
    ):  # fmt: skip
        schemas[name]["properties"][field] |= {"minItems": 1, "maxItems": limit}
    return schemas | {"QueryList": schemas["Batch"]["properties"]["queries"]}


def _ranking(limits: Limits, batch: bool) -> Json:
    """Return the description of POST /rank or POST /batch."""
    lists = {"anyOf": [_ref("QueryList"), _ref("Batch")]}
    bodies = {
        JSON: lists if batch else _ref("Query"),
        NPY: _binary(
            "A float32 or float64 matrix as numpy.save writes it, a row per candidate, a column "
            "per feature; in a batch ?lengths= or X-Lengths gives the rows of each query."
        ),
        ARROW: _binary(
            "Arrow's stream format, not compressed: a column per feature, or one column `features` "
            "of lists of fixed size; `id` if wanted, and in a batch `query`."
        ),
    }
    answers = {
        JSON: _ref("BatchAnswer" if batch else "Answer"),
        NPY: _binary("Scores row by row, or positions from 0 on, the best first."),
        ARROW: _binary("`score` and `rank` beside `query` and `id`."),
    }
    if not has_arrow():
        del bodies[ARROW], answers[ARROW]
    ranked = _response("Ranked, in the format of the body unless ?answer= says otherwise.", answers)
    digest = {"description": "The sha256 of the model's file.", "schema": TEXT}
    parameters = [  # in JSON they are fields of the body
        ("query", "answer", {"enum": list(ANSWERS)}, "What a binary body is answered with."),
        ("query", "explain", {"anyOf": [{"type": "boolean"}, COUNT]}, "With ?answer=json."),
        ("query", "top", {**COUNT, "minimum": 1}, "Candidates per query in the answer."),
        ("query", "lengths", LENGTHS, "Rows of each query of a batch: 100,50."),
        ("header", "X-Lengths", LENGTHS, "The same, as a header."),
    ]
    return {
        "operationId": "batch" if batch else "rank",
        "summary": f"Rank {'the queries' if batch else 'the candidates of one query'}.",
        "description": f"At most {limits.bytes:,} bytes, within {limits.seconds:g} seconds.",
        "parameters": [
            {"in": place, "name": name, "schema": schema, "description": text}
            for place, name, schema, text in parameters[: None if batch else 3]
        ],
        "requestBody": {"required": True, "content": _content(bodies)},
        "responses": {
            "200": {**ranked, "headers": {"X-Model": digest}},
            **_refusals(408, 413, 415, 422, 503),
        },
    }


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _binary(text: str) -> Json:
    return {"type": "string", "format": "binary", "description": text}


def _content(schemas: Json) -> Json:
    return {media_type: {"schema": schema} for media_type, schema in schemas.items()}


def _response(text: str, schemas: Json | str) -> Json:
    """Return a response in the formats given, or in JSON by the name of its message."""
    schemas = {JSON: _ref(schemas)} if isinstance(schemas, str) else schemas
    return {"description": text, "content": _content(schemas)}


def _refusals(*codes: int) -> Json:
    return {str(code): _response(STATUSES[code], "Problem") for code in codes}


def _get(name: str, summary: str, success: Json, failure: Json | None = None) -> Json:
    responses = {"200": success, **({} if failure is None else {"503": failure})}
    return {"get": {"operationId": name, "summary": summary, "responses": responses}}


PATHS: Json = {
    "/reload": {"post": {
        "operationId": "reload", "summary": "Look at the model file now.",
        "security": [{"token": []}],
        "responses": {
            "200": _response("Served; `old` and `new` say what changed.", "ReloadReport"),
            "422": _response("Refused; the old model stays.", "ReloadReport"),
            **_refusals(401, 403),
        },
    }},
    "/": _get(
        "page", "A page for people.", _response("The model and how to ask it.", {HTML: TEXT}),
        _response("No model yet.", {HTML: TEXT}),
    ),
    "/health": _get(
        "health", "Whether a model is in service.", _response("It is.", "Health"),
        _response("It is not.", "Health"),
    ),
    "/model": _get(
        "model", "What is in service.", _response("The model.", "ModelDescription"),
        _response(STATUSES[503], "Problem"),
    ),
    "/metrics": _get("metrics", "For Prometheus.", _response("Metrics.", {MEDIA_TYPE: TEXT})),
    "/openapi.json": _get("openapi", "This.", _response("OpenAPI.", {JSON: {"type": "object"}})),
}  # fmt: skip
