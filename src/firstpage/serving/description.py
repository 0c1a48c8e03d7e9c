"""What the service takes and tells, as OpenAPI 3.1: of this very model, with its limits."""

from __future__ import annotations

from typing import Any

from firstpage.serving import arrow_body, npy_body, schemas
from firstpage.serving.answers import ANSWERS, JSON
from firstpage.serving.asked import REASONS
from firstpage.serving.limits import Limits
from firstpage.serving.metrics import MEDIA
from firstpage.serving.served import Served

Told = dict[str, Any]
POSTS = ("/rank", "/batch", "/reload")
GETS = ("/", "/health", "/model", "/metrics", "/openapi.json")
HTML = "text/html; charset=utf-8"
WORDS = {
    401: "The token is missing or wrong.",
    403: "The server was started without a token.",
    408: "The body did not come in time.",
    413: "More than the server takes at once.",
    415: "The body is in a format that is not read here.",
    422: "The request cannot be ranked; `detail` names query, candidate and feature.",
    503: "No model yet, or too many requests at once.",
}


def description(served: Served | None, limits: Limits) -> Told:
    """All of it; the features are those of the model in service."""
    about = "Ranks the candidates of a query by their features."
    if served is not None:
        about += f" In service: {served.model.ranker}, {len(served.names)} features."
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "firstpage serve",
            "version": "1" if served is None else served.digest[:12],
            "description": f"{about} What is no HTTP is answered with 400 and plain text.",
        },
        "paths": {
            "/rank": {"post": _ranking(served, limits, batch=False)},
            "/batch": {"post": _ranking(served, limits, batch=True)},
            "/reload": {"post": _reload()},
            **_looks(),
        },
        "components": {
            "schemas": schemas.schemas(None if served is None else served.names, limits),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _ranking(served: Served | None, limits: Limits, batch: bool) -> Told:
    name = "batch" if batch else "rank"
    what = "the queries" if batch else "the candidates of one query"
    width = "one" if served is None else str(len(served.names))
    forms = {JSON: "Batch" if batch else "Query"}
    content: Told = {JSON: {"schema": schemas.ref(forms[JSON])}}
    content[npy_body.MEDIA] = _bytes(
        f"float32 or float64, a row a candidate, {width} columns a row, as numpy.save writes it"
        + ("; ?lengths= or X-Lengths says how many rows each query has." if batch else ".")
    )
    if arrow_body.available():
        content[arrow_body.MEDIA] = _bytes(
            "Arrow's stream format, not compressed: a column a feature, or one column `features` "
            "of lists of fixed size; `id` if wanted" + (", and `query`." if batch else ".")
        )
    answers: Told = {JSON: {"schema": schemas.ref("Answers" if batch else "Answer")}}
    answers[npy_body.MEDIA] = _bytes("Scores row by row, or places from 0 on, the best first.")
    if arrow_body.available():
        answers[arrow_body.MEDIA] = _bytes("`score` and `rank` beside `query` and `id`.")
    return {
        "operationId": name,
        "summary": f"Rank {what}.",
        "description": f"At most {limits.bytes:,} bytes, within {limits.seconds:g} seconds.",
        "parameters": _parameters(batch),
        "requestBody": {"required": True, "content": content},
        "responses": {
            "200": {
                "description": "Ranked, in the format of the body unless ?answer= says otherwise.",
                "headers": {
                    "X-Model": {
                        "description": "The sha256 of the file of the model that ranked.",
                        "schema": {"type": "string"},
                    }
                },
                "content": answers,
            },
            **_refused(408, 413, 415, 422, 503),
        },
    }


def _parameters(batch: bool) -> list[Told]:
    """Of binary bodies; in JSON the body says it."""
    found = [
        _parameter("answer", {"enum": list(ANSWERS)}, "What a binary body is answered with."),
        _parameter(
            "explain", {"anyOf": [{"type": "boolean"}, {"type": "integer", "minimum": 0}]},
            f"Features named for every candidate, with ?answer=json; true: {REASONS}.",
        ),
        _parameter("top", {"type": "integer", "minimum": 1}, "The first so many of each query."),
    ]  # fmt: skip
    if batch:
        lengths = {"type": "string", "pattern": "^[0-9]{1,9}(,[0-9]{1,9})*$"}
        found.append(_parameter("lengths", lengths, "Rows of each query: 100,50."))
        found.append(_parameter("X-Lengths", lengths, "The same, as a header.", "header"))
    return found


def _parameter(name: str, schema: Told, words: str, place: str = "query") -> Told:
    return {"name": name, "in": place, "schema": schema, "description": words}


def _reload() -> Told:
    return {
        "operationId": "reload",
        "summary": "Look at the model file now.",
        "security": [{"token": []}],
        "responses": {
            "200": _json("Served; `old` and `new` say what changed.", "Reloaded"),
            "422": _json("Refused; the old model stays.", "NotReloaded"),
            **_refused(401, 403),
        },
    }


def _looks() -> Told:
    """What can be looked at."""
    page = {"schema": {"type": "string"}}
    return {
        "/": _get("page", "A page for people.", {
            "200": {"description": "The model and how to ask it.", "content": {HTML: page}},
            "503": {"description": WORDS[503], "content": {HTML: page}},
        }),
        "/health": _get("health", "Whether a model is in service.", {
            "200": _json("It is.", "Health"), "503": _json("It is not.", "Health"),
        }),
        "/model": _get("model", "What is in service.", {
            "200": _json("Ranker, parameters, features, training.", "Model"), **_refused(503),
        }),
        "/metrics": _get("metrics", "Counters for Prometheus.", {
            "200": {"description": "Text format 0.0.4.", "content": {MEDIA: page}},
        }),
        "/openapi.json": _get("openapi", "This description.", {
            "200": _json("OpenAPI 3.1.", "Description"),
        }),
    }  # fmt: skip


def _get(name: str, summary: str, responses: Told) -> Told:
    return {"get": {"operationId": name, "summary": summary, "responses": responses}}


def _json(words: str, schema: str) -> Told:
    return {"description": words, "content": {JSON: {"schema": schemas.ref(schema)}}}


def _bytes(words: str) -> Told:
    return {"schema": {"type": "string", "format": "binary", "description": words}}


def _refused(*codes: int) -> Told:
    return {str(code): _json(WORDS[code], "Refusal") for code in codes}
