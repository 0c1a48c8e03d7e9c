"""The API as OpenAPI 3.1, with the features of the model in service and the server's limits."""

from __future__ import annotations

from typing import Any

import msgspec

from firstpage.serving import json_messages as messages
from firstpage.serving.binary_formats import ARROW, NPY, has_arrow
from firstpage.serving.limits import Limits
from firstpage.serving.metrics import MEDIA_TYPE
from firstpage.serving.rank_request import DEFAULT_REASONS
from firstpage.serving.ranking import ANSWERS, JSON
from firstpage.serving.served_model import ServedModel

Json = dict[str, Any]
HTML = "text/html; charset=utf-8"
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
            "/rank": {"post": _ranking(model, limits, batch=False)},
            "/batch": {"post": _ranking(model, limits, batch=True)},
            **_PATHS,
        },
        "components": {
            "schemas": _schemas(model, limits),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _schemas(model: ServedModel | None, limits: Limits) -> Json:
    """Return the schemas of the messages, with the sizes that this server takes."""
    schemas: Json = msgspec.json.schema_components(
        MESSAGES, ref_template="#/components/schemas/{name}"
    )[1]
    schemas["Features"] = _features(model)
    schemas["Candidate"]["properties"]["features"] = _ref("Features")
    for name in ("Query", "BatchQuery"):
        schemas[name]["properties"]["candidates"] |= {"minItems": 1, "maxItems": limits.candidates}
    schemas["Batch"]["properties"]["queries"] |= {"minItems": 1, "maxItems": limits.queries}
    schemas["QueryList"] = schemas["Batch"]["properties"]["queries"]
    return schemas


def _features(model: ServedModel | None) -> Json:
    number = {"type": "number"}
    by_name: Json = {"type": "object", "description": "By name; others are ignored."}
    in_order: Json = {
        "type": "array", "items": number,
        "description": "In the model's order, as GET /model shows it.",
    }  # fmt: skip
    if model is not None:
        names = list(dict.fromkeys(model.names))
        by_name |= {"required": names, "properties": dict.fromkeys(names, number)}
        in_order |= {"minItems": len(model.names), "maxItems": len(model.names)}
    return {"anyOf": [by_name, in_order]}


def _ranking(model: ServedModel | None, limits: Limits, batch: bool) -> Json:
    width = "one" if model is None else str(len(model.names))
    bodies: Json = {
        JSON: {"schema": {"anyOf": [_ref("QueryList"), _ref("Batch")]} if batch else _ref("Query")},
        NPY: _binary(
            f"float32 or float64, a row per candidate, {width} columns, as numpy.save writes it"
            + ("; ?lengths= or X-Lengths gives the rows of each query." if batch else ".")
        ),
        ARROW: _binary(
            "Arrow's stream format, not compressed: a column per feature, or one column `features` "
            "of lists of fixed size; `id` if wanted" + (", and `query`." if batch else ".")
        ),
    }
    answers: Json = {
        JSON: {"schema": _ref("BatchAnswer" if batch else "Answer")},
        NPY: _binary("Scores row by row, or positions from 0 on, the best first."),
        ARROW: _binary("`score` and `rank` beside `query` and `id`."),
    }
    if not has_arrow():
        del bodies[ARROW], answers[ARROW]
    model_header = {
        "description": "The sha256 of the file of the model that ranked.",
        "schema": {"type": "string"},
    }
    return {
        "operationId": "batch" if batch else "rank",
        "summary": f"Rank {'the queries' if batch else 'the candidates of one query'}.",
        "description": f"At most {limits.bytes:,} bytes, within {limits.seconds:g} seconds.",
        "parameters": _parameters(batch),
        "requestBody": {"required": True, "content": bodies},
        "responses": {
            "200": {
                "description": "Ranked, in the format of the body unless ?answer= says otherwise.",
                "headers": {"X-Model": model_header},
                "content": answers,
            },
            **_refusals(408, 413, 415, 422, 503),
        },
    }


def _parameters(batch: bool) -> list[Json]:
    """Return the parameters of binary bodies; in JSON they are fields of the body."""
    lengths = {"type": "string", "pattern": "^[0-9]{1,9}(,[0-9]{1,9})*$"}
    parameters = [
        ("query", "answer", {"enum": list(ANSWERS)}, "What a binary body is answered with."),
        (
            "query", "explain", {"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 0}]},
            f"Features named per candidate, with ?answer=json; true: {DEFAULT_REASONS}.",
        ),
        ("query", "top", {"type": "integer", "minimum": 1}, "Candidates per query in the answer."),
    ] + [
        ("query", "lengths", lengths, "Rows of each query: 100,50."),
        ("header", "X-Lengths", lengths, "The same, as a header."),
    ] * batch  # fmt: skip
    return [
        {"in": place, "name": name, "schema": schema, "description": text}
        for place, name, schema, text in parameters
    ]


def _ref(name: str) -> Json:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(text: str, schema: str) -> Json:
    return {"description": text, "content": {JSON: {"schema": _ref(schema)}}}


def _text(text: str, media_type: str) -> Json:
    return {"description": text, "content": {media_type: {"schema": {"type": "string"}}}}


def _binary(text: str) -> Json:
    return {"schema": {"type": "string", "format": "binary", "description": text}}


def _refusals(*codes: int) -> Json:
    return {str(code): _json(STATUSES[code], "Problem") for code in codes}


def _get(name: str, summary: str, responses: Json) -> Json:
    return {"get": {"operationId": name, "summary": summary, "responses": responses}}


_PATHS: Json = {
    "/reload": {"post": {
        "operationId": "reload", "summary": "Look at the model file now.",
        "security": [{"token": []}],
        "responses": {
            "200": _json("Served; `old` and `new` say what changed.", "ReloadReport"),
            "422": _json("Refused; the old model stays.", "ReloadReport"),
            **_refusals(401, 403),
        },
    }},
    "/": _get("page", "A page for people.", {
        "200": _text("The model and how to ask it.", HTML), "503": _text(STATUSES[503], HTML),
    }),
    "/health": _get("health", "Whether a model is in service.", {
        "200": _json("It is.", "Health"), "503": _json("It is not.", "Health"),
    }),
    "/model": _get("model", "What is in service.", {
        "200": _json("Ranker, parameters, features, training.", "ModelDescription"),
        **_refusals(503),
    }),
    "/metrics": _get("metrics", "Metrics for Prometheus.", {
        "200": _text("Text format 0.0.4.", MEDIA_TYPE),
    }),
    "/openapi.json": _get("openapi", "This description.", {
        "200": {"description": "OpenAPI 3.1.", "content": {JSON: {"schema": {"type": "object"}}}},
    }),
}  # fmt: skip
